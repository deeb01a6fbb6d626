"""How images are prepared for a network of copy detection: from options to steps, and to words below a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from raybench.descriptors.image_descriptors import ImageSpec
from raybench.formats.images import FILTER, MEAN, STD, Preprocess, channel_values

if TYPE_CHECKING:
    from raybench.benchmarks.images.image_options import ImageOptions


def preprocess_of(options: ImageOptions) -> Preprocess:
    """The steps that are asked for; raises ConfigError."""
    mode = "long_edge" if options.resize_long_edge else "short_edge" if options.preserve_aspect_ratio else "square"
    mean, std = (
        channel_values(f"--{name}", given) if given else usual
        for name, given, usual in (("mean", options.mean, MEAN), ("std", options.std, STD))
    )
    return Preprocess(options.size, mode, mean, std, options.interpolation or FILTER)


def preprocessing_notes(options: ImageOptions, descriptor: ImageSpec | None) -> Iterable[str]:
    """What a table says of how a network's images were prepared."""
    if descriptor is not None and descriptor.preprocess is not None:
        yield f"Images as the network got them: {descriptor.preprocess.words}."
    if descriptor is not None and descriptor.rows:
        yield f"Rows of {options.descriptor}: {descriptor.rows}."
    if options.resize_long_edge and not options.preserve_aspect_ratio:
        yield (
            "resize_long_edge: the long edge is resized and the aspect kept, as the published text has it; "
            "the published code ignores this flag unless the aspect is preserved."
        )
