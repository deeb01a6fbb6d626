"""Image descriptors: the protocol, and how a spec becomes an object with a digest.

`prepare` takes one picture at a time, on a CPU, since pictures differ in size; `describe` takes a batch of one shape,
on the device. A row must not depend on the other pictures of its batch, beyond float rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors import IMAGE_DESCRIPTORS, IMAGE_MODEL_FILES, IMAGE_MODEL_NAMES, OF_IMAGES, kinds_but
from raybench.descriptors.libraries import libraries_of
from raybench.descriptors.model_folders import FoundModel
from raybench.descriptors.model_preprocessing import Steps
from raybench.descriptors.precision import EXACT, Precision
from raybench.descriptors.specs import (
    DescriptorSpec,
    Family,
    is_model_file,
    resolve_in,
    resolve_named,
    with_options,
)
from raybench.descriptors.user_classes import class_of
from raybench.digests import digest_of
from raybench.errors import ConfigError
from raybench.formats.images import Preprocess

FAMILY = Family(IMAGE_DESCRIPTORS, IMAGE_MODEL_FILES, ("describe",), kinds_but(OF_IMAGES), IMAGE_MODEL_NAMES)
DISTANCES = ("L2", "hamming")


class ImageDescriptor(Protocol):
    """What every image descriptor has once it is open.

    Optional: `name`, `distance` ("L2"; "hamming" for packed bits), `uses_gpu` (True), `version` (1), `digest` (in the
    place of that of code and files, see `own_identity`), `to(device)`, `shape(width, height)` of what `prepare` makes
    of a picture, by which pictures of one shape are brought together, and `describe_each(batches)`, which may copy one
    batch to the device while it computes another.
    """

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[Any]:
        """On a CPU: what `describe` takes, from one RGB picture (height, width, 3)."""
        ...

    def describe(self, batch: NDArray[Any]) -> NDArray[Any]:
        """On the device: (n, dim) floats, or uint8 for packed bits, from prepared pictures of one shape."""
        ...


@dataclass(frozen=True)
class ImageSpec(DescriptorSpec):
    """An image descriptor as the user named it; `preprocess` is what it is fed with, unless a class has its own."""

    preprocess: Steps | None = None
    rows: str = ""  # of a model by name: what a row is, in words

    def open(self) -> ImageDescriptor:
        """The descriptor itself, a model file fetched to this node first."""
        descriptor: Any = super().open()
        if self.preprocess is None:
            found: ImageDescriptor = descriptor
            return found
        if not hasattr(type(descriptor), "prepare"):
            assert isinstance(self.preprocess, Preprocess), "a model's own steps are for models"
            return Preprocessed(descriptor, self.preprocess)
        descriptor.preprocess = self.preprocess
        network: ImageDescriptor = descriptor
        return network


class Preprocessed:
    """A class of the user's without `prepare`, fed with the published preprocessing: float32 (n, 3, h, w)."""

    def __init__(self, descriptor: Any, preprocess: Preprocess) -> None:
        self.shape, self.prepare = preprocess.shape, preprocess.apply
        self.describe = descriptor.describe
        if hasattr(descriptor, "to"):
            self.to = descriptor.to


def resolve_by_name(
    spec: str, arguments: dict[str, Any], preprocess: Preprocess | None, precision: Precision = EXACT
) -> ImageSpec:
    """Check `kind:NAME`, a model that a library knows, and open it once; without `preprocess` its own is taken."""
    kind, _, given = spec.partition(":")
    target = FAMILY.model_names[kind]
    if not given:
        raise ConfigError(f"--descriptor {spec}: names no model; give {kind}:NAME")
    libraries_of(target)  # says which extra is missing
    by_name: Any = class_of(target, "")
    weights = arguments.get("weights")
    if weights is not None and not by_name.takes_weights:
        raise ConfigError(f"--weights: for timm:NAME and torchvision:NAME; {kind}: brings its own; leave it out")
    found: FoundModel = by_name.found(given, weights, preprocess is None)
    rest = {key: value for key, value in arguments.items() if key != "weights"}
    named = resolve_named(FAMILY, spec, rest, precision, found)
    steps = preprocess or found.preprocess
    assert steps is not None, "whoever asks for a model's own steps gets them, or an error"
    digest = digest_of("image descriptor", named.digest, steps.facts)
    resolved = ImageSpec(**{**vars(named), "digest": digest}, preprocess=steps)
    opened: Any = resolved.open()
    opened.check()
    return replace(resolved, rows=opened.rows)


def resolve_images(
    spec: str, arguments: dict[str, Any], preprocess: Preprocess, precision: Precision = EXACT
) -> ImageSpec:
    """Check a `--descriptor` of images; a model file is opened once, so that a wrong one is found at once."""
    is_model = is_model_file(FAMILY, spec)
    if is_model:
        arguments = with_options(spec, arguments, {"size": preprocess.size, "mode": preprocess.mode})
    named = resolve_in(FAMILY, spec, arguments, precision)
    _check_distance(spec, named.distance)
    fed = preprocess if is_model or not hasattr(class_of(named.target, named.folder), "prepare") else None
    if fed is None and preprocess.options:
        raise ConfigError(
            f"{preprocess.options}: for a model file, or a class without `prepare`; {spec} prepares images by itself"
        )
    digest = digest_of("image descriptor", named.digest, fed.facts if fed else None)
    resolved = ImageSpec(**{**vars(named), "digest": digest}, preprocess=fed)
    if is_model:
        opened: Any = resolved.open()
        opened.check()
    return resolved


def _check_distance(spec: str, distance: str) -> None:
    """Images are searched by L2, which for packed bits is the Hamming distance."""
    if distance not in DISTANCES:
        raise ConfigError(
            f"--descriptor {spec}: its distance is {distance!r}, but images are compared by {DISTANCES[0]}, or by "
            f"{DISTANCES[1]} for packed bits; leave it out, and for cosine give --codecs L2norm,Flat"
        )
