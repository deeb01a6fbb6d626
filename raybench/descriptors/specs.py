"""How what the user names (`--descriptor`) becomes a spec: checked and digested here, opened in each worker.

Patch and image descriptors are two families with names, model files and methods of their own; the rest is the same.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from raybench import storage
from raybench.descriptors import IMAGE_MODEL_NAMES
from raybench.descriptors.argument_files import FETCHED, NamedFile, file_digest, found_again
from raybench.descriptors.cuda import device_for_torch
from raybench.descriptors.libraries import libraries_of
from raybench.descriptors.own_errors import blamed_on_class
from raybench.descriptors.own_identity import OwnIdentity, own_identity
from raybench.descriptors.own_imports import Digests, opened_as_digested
from raybench.descriptors.precision import EXACT, Precision
from raybench.descriptors.user_classes import class_of
from raybench.digests import digest_of
from raybench.errors import ConfigError, suggestion

if TYPE_CHECKING:
    from raybench.descriptors.model_folders import FoundModel  # with Pillow, which patches do without

FOUND = (FETCHED, "model", "files")  # arguments that lead to a model, which counts by its content
MODEL_FOLDERS = "hf"  # the kind of models by name that may be folders, and of those on the hub
HUB_PAGE = re.compile(r"https?://huggingface\.co/([\w.-]+/[\w.-]+)(/.*)?")
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
MODEL_SUFFIXES = (".pt", ".pth", ".onnx", ".torchscript", ".ts", ".ckpt", ".safetensors")


@dataclass(frozen=True)
class Family:
    """Descriptors of one kind: names, kinds of model files and of models by name to `module:Class`, and what a class
    must have.

    `others` are the names of other kinds, by what they are.
    """

    built_in: Mapping[str, str]
    model_files: Mapping[str, str]
    methods: tuple[str, ...]
    others: Mapping[str, Mapping[str, str]]
    model_names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DescriptorSpec:
    """A descriptor as the user named it, checked and digested on the driver, opened in each worker."""

    target: str
    arguments: tuple[tuple[str, Any], ...]
    name: str
    distance: str
    uses_gpu: bool
    digest: str
    folder: str
    precision: Precision
    modules: Digests = ()  # of the user's own class: what it is imported from
    files: tuple[NamedFile, ...] = ()  # that its arguments name
    doubts: tuple[str, ...] = ()  # what its digest does not cover, one line each

    def open(self) -> Any:
        """The descriptor itself, a model file fetched first; code and files are those that the run began with."""
        arguments = found_again(dict(self.arguments), self.files, self.folder)
        if isinstance(arguments.get(FETCHED), str):
            arguments[FETCHED] = str(storage.fetch(arguments[FETCHED]))
        with blamed_on_class(self.target):
            return opened_as_digested(self.modules, lambda: class_of(self.target, self.folder)(**arguments))

    @property
    def digest_notes(self) -> tuple[str, ...]:
        """What a reader of the table should know of the digest."""
        return tuple(
            f"DIGEST: {doubt} is no part of the digest of {self.target}; give the class a `digest` if that may change."
            for doubt in self.doubts
        )

    def placed(self, descriptor: Any, gpu: bool) -> Any:
        """The open descriptor on the device that this process has."""
        with blamed_on_class(self.target):
            return moved(descriptor, gpu)

    def prepared(self, descriptor: Any, pixels: NDArray[Any]) -> Any:
        """What the open descriptor's `prepare` makes of patches, or of one picture."""
        with blamed_on_class(self.target):
            return descriptor.prepare(pixels)

    def described_each(self, descriptor: Any, batches: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """The rows of each batch, by the open descriptor's own way to take several if it has one."""
        describe_each = getattr(descriptor, "describe_each", None)
        with blamed_on_class(self.target):
            yield from map(descriptor.describe, batches) if describe_each is None else describe_each(batches)


def moved(descriptor: Any, gpu: bool) -> Any:
    """The descriptor on the device that this process really has: a logical GPU of Ray's is no CUDA device."""
    move = getattr(descriptor, "to", None)
    if move is not None:
        move(device_for_torch(gpu))
    return descriptor


def resolve_in(family: Family, spec: str, arguments: dict[str, Any], precision: Precision = EXACT) -> DescriptorSpec:
    """Check a `--descriptor` and its arguments; unknown names get the list and the nearest one.

    The precision is for model files, to which it goes as arguments.
    """
    spec = _as_module(spec) if not is_model_file(family, spec) else spec
    if precision.options and not is_model_file(family, spec):
        raise ConfigError(f"{precision.options}: goes with a network in a file; {spec} has an arithmetic of its own")
    if spec in family.built_in:
        if arguments:
            raise ConfigError(f"--descriptor {spec}: takes no arguments, got {', '.join(sorted(arguments))}")
        return _spec(family, spec, family.built_in[spec], {}, precision, OwnIdentity(spec, ()))
    if is_model_file(family, spec):
        kind, _, uri = spec.partition(":")
        uri = storage.checked(uri)
        known = _of_file(kind, uri, class_of(family.model_files[kind], _here()))
        arguments = {FETCHED: uri, **with_options(spec, arguments, precision.arguments)}
        return _spec(family, spec, family.model_files[kind], arguments, precision, known)
    if (right := _rightly_spelled(family, spec)) != spec:
        raise ConfigError(f"--descriptor {spec}: unknown (did you mean {right}?); {_choice(family)}")
    if ":" in spec and not _is_other_file(family, spec):
        return _spec(family, spec, spec, arguments, precision, own_identity(spec, arguments, _here()))
    raise ConfigError(f"--descriptor {spec}: {_why_unknown(family, spec)}; {_choice(family)}")


def resolve_named(
    family: Family, spec: str, arguments: dict[str, Any], precision: Precision, found: FoundModel
) -> DescriptorSpec:
    """The spec of a model by name, whose files were found."""
    kind, _, given = spec.partition(":")
    target = family.model_names[kind]
    files = tuple(NamedFile(uri, file_digest(uri)) for uri in found.files.values())
    content = [(name, file.digest) for name, file in zip(found.files, files, strict=True)]
    known = OwnIdentity(digest_of("model by name", kind, found.facts, content), (), files)
    whole = {**with_options(spec, arguments, precision.arguments), "model": given, "files": dict(found.files)}
    return _spec(family, spec, target, whole, precision, known, found.name)


def _as_module(spec: str) -> str:
    """`module:Class` for `FILE.py:Class`, whose file is in the current folder or below it."""
    file, colon, name = spec.rpartition(":")
    if not colon or not file.endswith(".py"):
        return spec
    path = Path(os.path.normpath(Path(_here()) / file))
    if not path.is_file():
        raise ConfigError(f"--descriptor {spec}: {path} does not exist; give module:Class, or FILE.py:Class")
    if not path.is_relative_to(_here()):
        raise ConfigError(
            f"--descriptor {spec}: is not below the current folder; go to {path.parent} and give {path.stem}:{name}"
        )
    return f"{'.'.join(path.relative_to(_here()).with_suffix('').parts)}:{name}"


def _why_unknown(family: Family, spec: str) -> str:
    """What is wrong with a name that is none of the family's."""
    for what, names in family.others.items():
        if spec in names or (_is_other_file(family, spec) and spec.split(":")[0] in names):
            return f"is {what}, which this benchmark does not take"
    if spec.endswith(".py"):
        return "is a file; name the class in it, too, as FILE.py:Class"
    if spec.endswith(MODEL_SUFFIXES) and family.model_files:
        return f"is a file; say of what kind, as {' or '.join(f'{kind}:{spec}' for kind in family.model_files)}"
    if MODEL_FOLDERS in family.model_names and (Path(_here()) / spec / "config.json").is_file():
        return f"is a folder with a model (did you mean {MODEL_FOLDERS}:{os.path.normpath(spec)}?)"
    if MODEL_FOLDERS in family.model_names and HUB_NAME.fullmatch(spec):
        return f"unknown (did you mean {MODEL_FOLDERS}:{spec}?)"
    return f"unknown{suggestion(spec, family.built_in)}"


def _rightly_spelled(family: Family, spec: str) -> str:
    """`kind:NAME` for `KIND:NAME`, unless that is a module of the user's; `hf:NAME` for a page of the hub."""
    if MODEL_FOLDERS in family.model_names and (page := HUB_PAGE.fullmatch(spec)):
        return f"{MODEL_FOLDERS}:{page[1]}"
    kind, _, name = spec.partition(":")
    is_known = kind.lower() in (*family.model_files, *family.model_names)
    is_own = any((Path(_here()) / own).exists() for own in (kind, f"{kind}.py"))
    return f"{kind.lower()}:{name}" if name and is_known and not is_own else spec


def _is_other_file(family: Family, spec: str) -> bool:
    """Whether a spec is a model that another kind of descriptor has: `kind:URI`, where a class has no URI's name, or
    a model by name."""
    kind, _, uri = spec.partition(":")
    is_model = not uri.isidentifier() or kind in IMAGE_MODEL_NAMES
    return is_model and any(kind in names for names in family.others.values())


def _choice(family: Family) -> str:
    files = ", ".join(
        [*(f"{kind}:URI" for kind in family.model_files), *(f"{kind}:NAME" for kind in family.model_names)]
    )
    named = f"give one of {', '.join(family.built_in)}, or module:Class of your own"
    return f"{named}, or a model {files}" if files else named


def _of_file(kind: str, uri: str, opens: type[Any]) -> OwnIdentity:
    """What identifies a model in a file: its content, and that of files beside it which hold parts of it."""
    files = [NamedFile(uri, file_digest(uri))]
    local = storage.local_path(uri)
    named = opens.files_beside(storage.read_mapped(uri)) if local and hasattr(opens, "files_beside") else []
    beside = [str(local.parent / name) for name in named if local and (local.parent / name).is_file()]
    files += [NamedFile(path, file_digest(path)) for path in beside]
    content = files[0].digest if not beside else digest_of([file.digest for file in files], named)
    return OwnIdentity(f"{kind}:{content}", (), tuple(files))


def with_options(spec: str, arguments: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a model's constructor with those that have an option of their own, which may not come twice."""
    for key in sorted((options.keys() | vars(EXACT).keys()) & arguments.keys()):
        raise ConfigError(f"--descriptor {spec}: {key} is no argument of the model; give it as an option")
    return {**arguments, **options}


def is_model_file(family: Family, spec: str) -> bool:
    """Whether a spec is `kind:URI` of a file that holds a model."""
    return spec.split(":")[0] in family.model_files


def is_model_name(family: Family, spec: str) -> bool:
    """Whether a spec is `kind:NAME` of a model that a library knows."""
    kind, colon, _ = spec.partition(":")
    return bool(colon) and kind in family.model_names


def _spec(
    family: Family,
    spec: str,
    target: str,
    arguments: dict[str, Any],
    precision: Precision,
    known: OwnIdentity,
    named: str = "",
) -> DescriptorSpec:
    kind = class_of(target, _here())
    missing = [f"{method}()" for method in family.methods if not callable(getattr(kind, method, None))]
    if missing:
        raise ConfigError(
            f"--descriptor {spec}: the class has no method {' and no '.join(missing)}; see the README for the protocol"
        )
    try:
        inspect.signature(kind).bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"--descriptor {spec}: {error}") from None
    if target in (*family.model_files.values(), *family.model_names.values()):
        kind(**arguments)  # checks its arguments; the model itself is loaded by the workers
    own = getattr(kind, "name", None)
    by_file = Path(str(arguments[FETCHED])).stem if FETCHED in arguments else None
    name = named or by_file or (own if isinstance(own, str) else kind.__name__)
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        raise ConfigError(f"--descriptor {spec}: its name {name!r} names folders; use letters, digits and _ . + - only")
    plain = {} if target == spec else {key: value for key, value in arguments.items() if key not in FOUND}
    return DescriptorSpec(
        target=target,
        arguments=tuple(sorted(arguments.items())),
        name=name,
        distance=str(getattr(kind, "distance", "L2")),
        uses_gpu=bool(getattr(kind, "uses_gpu", True)),
        digest=digest_of("descriptor", known.digest, getattr(kind, "version", 1), plain, libraries_of(target)),
        folder=_here(),
        precision=precision,
        modules=known.modules,
        files=known.files,
        doubts=known.doubts,
    )


def _here() -> str:
    return os.getcwd()  # noqa: PTH109 (a plain string for the workers)
