"""Descriptors: the protocol, the built-in ones by name, and how a spec becomes an object with a digest.

A descriptor is a class with a `name` and two methods. `prepare` runs in CPU load tasks, `describe` on the device. What
it returns must not depend on which other patches stand in the batch, beyond float rounding.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, DataError, nearest

DESCRIPTORS = {
    "meanstd": "raybench.descriptors.pixels:MeanStd",
    "resize": "raybench.descriptors.pixels:Resize",
    "sift": "raybench.descriptors.opencv:Sift",
    "rootsift": "raybench.descriptors.opencv:RootSift",
    "orb": "raybench.descriptors.opencv:Orb",
}
MODEL_FILES = {
    "torchscript": "raybench.descriptors.torchscript:TorchScript",
}


class Descriptor(Protocol):
    """What every descriptor has. Optional: `distance` ("L2"), `uses_gpu` (True), `version` (1), `to(device)`."""

    @property
    def name(self) -> str: ...

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[Any]:
        """On a CPU: what `describe` takes, from patches (n, side, side)."""
        ...

    def describe(self, prepared: NDArray[Any]) -> NDArray[Any]:
        """On the device: (n, dim) floats, or uint8 for binary descriptors."""
        ...


@dataclass(frozen=True)
class DescriptorSpec:
    """A descriptor as the user named it, checked and digested on the driver, opened in each worker."""

    spec: str
    target: str
    arguments: tuple[tuple[str, Any], ...]
    name: str
    distance: str
    uses_gpu: bool
    digest: str
    folder: str

    def open(self) -> Descriptor:
        """The descriptor itself, a model file fetched to this node first."""
        arguments = dict(self.arguments)
        if "path" in arguments:
            arguments["path"] = str(storage.fetch(arguments["path"]))
        descriptor: Descriptor = _class(self.target, self.folder)(**arguments)
        return descriptor


def moved(descriptor: Descriptor, gpu: bool) -> Descriptor:
    """The descriptor on the device that this process really has: a logical GPU of Ray's is no CUDA device."""
    move = getattr(descriptor, "to", None)
    if move is not None:
        import torch

        move("cuda" if gpu and torch.cuda.is_available() else "cpu")
    return descriptor


def resolve(
    spec: str,
    arguments: dict[str, Any],
    known: dict[str, str] = DESCRIPTORS,
    model_files: dict[str, str] = MODEL_FILES,
    methods: tuple[str, ...] = ("prepare", "describe"),
) -> DescriptorSpec:
    """Check a `--descriptor` and its arguments; unknown names get the list and the nearest one.

    Other kinds than patch descriptors give their own `known` names, model files and the methods that a class must have.
    """
    if spec in known:
        target, identity = known[spec], spec
        if arguments:
            raise ConfigError(f"--descriptor {spec}: takes no arguments, got {', '.join(sorted(arguments))}")
    elif spec.split(":")[0] in model_files:
        kind, _, uri = spec.partition(":")
        target, uri = model_files[kind], storage.checked(uri)
        identity = f"{kind}:{_file_digest(uri)}"
        arguments = {"path": uri, **arguments}
    elif ":" in spec:
        target = spec
        identity = f"{spec}:{_source_digest(spec)}"
    else:
        files = f", or one of {', '.join(f'{kind}:URI' for kind in model_files)}" if model_files else ""
        raise ConfigError(
            f"--descriptor {spec}: unknown{nearest(spec, known)}; the built-in ones are {', '.join(known)}; "
            f"or give module:Class{files}"
        )
    return _spec(spec, target, identity, arguments, methods)


def _spec(spec: str, target: str, identity: str, arguments: dict[str, Any], methods: tuple[str, ...]) -> DescriptorSpec:
    kind = _class(target, os.getcwd())  # noqa: PTH109 (a plain string for the workers)
    for method in methods:
        if not callable(getattr(kind, method, None)):
            raise ConfigError(
                f"--descriptor {spec}: {target} has no method {method}(); see the README for the protocol"
            )
    try:
        inspect.signature(kind).bind(**arguments)
    except TypeError as error:
        raise ConfigError(f"--descriptor {spec}: {error}") from None
    if target in MODEL_FILES.values():
        kind(**arguments)  # checks its arguments; the model itself is loaded by the workers
    own = getattr(kind, "name", None)
    name = Path(str(arguments["path"])).stem if "path" in arguments else own if isinstance(own, str) else kind.__name__
    if not re.fullmatch(r"[\w.+-]+", name) or name.startswith("."):
        raise ConfigError(f"--descriptor {spec}: its name {name!r} names folders; use letters, digits and _ . + - only")
    return DescriptorSpec(
        spec=spec,
        target=target,
        arguments=tuple(sorted(arguments.items())),
        name=name,
        distance=str(getattr(kind, "distance", "L2")),
        uses_gpu=bool(getattr(kind, "uses_gpu", True)),
        digest=digest_of("descriptor", identity, getattr(kind, "version", 1), _plain(arguments), _library(target)),
        folder=os.getcwd(),  # noqa: PTH109
    )


def _plain(arguments: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in arguments.items() if key != "path"}
    json.dumps(plain)  # what can't be digested can't be an argument
    return plain


def _library(target: str) -> str:
    """The version of the library that computes, where it may change figures."""
    if not target.startswith("raybench.descriptors."):
        return ""
    import cv2

    torch = f", torch {version('torch')}" if target in MODEL_FILES.values() else ""
    return f"opencv {cv2.__version__}{torch}"


def _class(target: str, folder: str) -> type[Any]:
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
                f"--descriptor {target}: {module_name} has no class {class_name}{nearest(class_name, known)}"
            ) from None
        raise ConfigError(f"--descriptor {target}: can't be imported ({type(error).__name__}: {error})") from error
    if not isinstance(found, type):
        raise ConfigError(f"--descriptor {target}: {class_name} is no class")
    return found


def _source_digest(target: str) -> str:
    kind = _class(target, os.getcwd())  # noqa: PTH109
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        file = None
    if file is None:
        raise ConfigError(f"--descriptor {target}: its source can't be found, so results can't be kept apart")
    return digest_of_bytes(Path(file).read_bytes())


def _file_digest(uri: str) -> str:
    try:
        return digest_of_bytes(storage.read(uri))
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected a model file") from None
