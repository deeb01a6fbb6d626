"""How what the user names (`--descriptor`) becomes a spec: checked and digested here, opened in each worker.

Patch and image descriptors are two families with names, model files and methods of their own; the rest is the same.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from raybench import storage
from raybench.descriptors.cuda import device_for_torch
from raybench.descriptors.libraries import libraries_of
from raybench.descriptors.precision import EXACT, Precision
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, DataError, suggestion


@dataclass(frozen=True)
class Family:
    """Descriptors of one kind: names and kinds of model files to `module:Class`, and what a class must have."""

    built_in: Mapping[str, str]
    model_files: Mapping[str, str]
    methods: tuple[str, ...]


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

    def open(self) -> Any:
        """The descriptor itself, a model file fetched to this node first."""
        arguments = dict(self.arguments)
        if "path" in arguments:
            arguments["path"] = str(storage.fetch(arguments["path"]))
        return class_of(self.target, self.folder)(**arguments)


def moved(descriptor: Any, gpu: bool) -> Any:
    """The descriptor on the device that this process really has: a logical GPU of Ray's is no CUDA device."""
    move = getattr(descriptor, "to", None)
    if move is not None:
        move(device_for_torch(gpu))
    return descriptor


def described_each(descriptor: Any, batches: Iterable[NDArray[Any]]) -> Iterator[NDArray[Any]]:
    """The rows of each batch, by the descriptor's own way to take several if it has one."""
    describe_each = getattr(descriptor, "describe_each", None)
    return iter(map(descriptor.describe, batches) if describe_each is None else describe_each(batches))


def resolve_in(family: Family, spec: str, arguments: dict[str, Any], precision: Precision = EXACT) -> DescriptorSpec:
    """Check a `--descriptor` and its arguments; unknown names get the list and the nearest one.

    The precision is for model files, to which it goes as arguments.
    """
    if precision.options and not is_model_file(family, spec):
        raise ConfigError(f"{precision.options}: goes with a network in a file; {spec} has an arithmetic of its own")
    if spec in family.built_in:
        target, identity = family.built_in[spec], spec
        if arguments:
            raise ConfigError(f"--descriptor {spec}: takes no arguments, got {', '.join(sorted(arguments))}")
    elif is_model_file(family, spec):
        kind, _, uri = spec.partition(":")
        target, uri = family.model_files[kind], storage.checked(uri)
        identity = f"{kind}:{_file_digest(uri)}"
        arguments = {"path": uri, **with_options(spec, arguments, precision.arguments)}
    elif ":" in spec:
        target = spec
        identity = f"{spec}:{_source_digest(spec)}"
    else:
        known = ", ".join(family.built_in)
        raise ConfigError(
            f"--descriptor {spec}: unknown{suggestion(spec, family.built_in)}; the built-in ones are {known}; "
            f"or give module:Class, or one of {', '.join(f'{kind}:URI' for kind in family.model_files)}"
        )
    return _spec(family, spec, target, identity, arguments, precision)


def with_options(spec: str, arguments: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a model's constructor with those that have an option of their own, which may not come twice."""
    for key in sorted((options.keys() | vars(EXACT).keys()) & arguments.keys()):
        raise ConfigError(f"--descriptor {spec}: {key} is no argument of the model; give it as an option")
    return {**arguments, **options}


def is_model_file(family: Family, spec: str) -> bool:
    """Whether a spec is `kind:URI` of a file that holds a model."""
    return spec.split(":")[0] in family.model_files


def _spec(
    family: Family, spec: str, target: str, identity: str, arguments: dict[str, Any], precision: Precision
) -> DescriptorSpec:
    kind = class_of(target, os.getcwd())  # noqa: PTH109 (a plain string for the workers)
    for method in family.methods:
        if not callable(getattr(kind, method, None)):
            raise ConfigError(
                f"--descriptor {spec}: {target} has no method {method}(); see the README for the protocol"
            )
    try:
        inspect.signature(kind).bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"--descriptor {spec}: {error}") from None
    if target in family.model_files.values():
        kind(**arguments)  # checks its arguments; the model itself is loaded by the workers
    own = getattr(kind, "name", None)
    name = Path(str(arguments["path"])).stem if "path" in arguments else own if isinstance(own, str) else kind.__name__
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        raise ConfigError(f"--descriptor {spec}: its name {name!r} names folders; use letters, digits and _ . + - only")
    version = getattr(kind, "version", 1)
    return DescriptorSpec(
        target=target,
        arguments=tuple(sorted(arguments.items())),
        name=name,
        distance=str(getattr(kind, "distance", "L2")),
        uses_gpu=bool(getattr(kind, "uses_gpu", True)),
        digest=digest_of("descriptor", identity, version, _plain(arguments), libraries_of(target)),
        folder=os.getcwd(),  # noqa: PTH109
        precision=precision,
    )


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in arguments.items() if key != "path"}
    json.dumps(plain)  # what can't be digested can't be an argument
    return plain


def class_of(target: str, folder: str) -> type[Any]:
    """The class that `module:Class` names; the module may be in `folder` or in the current one."""
    module_name, _, class_name = target.partition(":")
    for place in (folder, os.getcwd()):  # noqa: PTH109 (on another node the job's folder has another name)
        if place not in sys.path:
            sys.path.insert(0, place)
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        raise ConfigError(f"--descriptor {target}: {error}; is {module_name}.py in {folder} or installed?") from error
    except Exception as error:
        if isinstance(error, AttributeError) and module_name in sys.modules:
            known = dir(sys.modules[module_name])
            raise ConfigError(
                f"--descriptor {target}: {module_name} has no class {class_name}{suggestion(class_name, known)}"
            ) from None
        raise ConfigError(f"--descriptor {target}: can't be imported ({type(error).__name__}: {error})") from error
    if not isinstance(found, type):
        raise ConfigError(f"--descriptor {target}: {class_name} is no class")
    return found


def _source_digest(target: str) -> str:
    kind = class_of(target, os.getcwd())  # noqa: PTH109
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        file = None
    if file is None:
        raise ConfigError(f"--descriptor {target}: its source can't be found, so results can't be kept apart")
    return digest_of_bytes(Path(file).read_bytes())


def _file_digest(uri: str) -> str:
    try:
        return digest_of_bytes(storage.read_mapped(uri))  # whose node-local copy `open` finds
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected a model file") from None
    except IsADirectoryError:
        raise DataError(f"{uri}: is a folder; expected a model file") from None
