"""Models by name (`hf:`, `timm:`, `torchvision:`): from options to a spec; which options go with which descriptor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raybench.benchmarks.images.preprocessing import preprocess_of
from raybench.benchmarks.options import asked
from raybench.descriptors import IMAGE_MODEL_NAMES
from raybench.descriptors.image_descriptors import ImageSpec, resolve_by_name
from raybench.errors import ConfigError

if TYPE_CHECKING:
    from raybench.benchmarks.images.image_options import ImageOptions

MODEL, PUBLISHED = PREPROCESSING = ("model", "published")
OF_WEIGHTS = ("backbone", "dims", "pool_param")
OF_NAMES = ("preprocess", "pooling", "weights")
OF_PUBLISHED = ("size", "preserve_aspect_ratio", "resize_long_edge", "mean", "std", "interpolation")
KINDS = ", ".join(f"{kind}:" for kind in IMAGE_MODEL_NAMES)


def is_by_name(descriptor: str) -> bool:
    """Whether `--descriptor` is `KIND:NAME` of a model that a library knows."""
    kind, colon, _ = descriptor.partition(":")
    return bool(colon) and kind in IMAGE_MODEL_NAMES


def check_goes_together(options: ImageOptions) -> None:
    """Refuse options of networks that would do nothing with this descriptor."""
    descriptor = options.descriptor or ""
    by_name = is_by_name(descriptor)
    if not by_name and (idle := asked(options, OF_NAMES)):
        raise ConfigError(f"{', '.join(idle)}: for --descriptor {KINDS} only")
    if by_name and (idle := asked(options, ("backbone", "dims"))):
        raise ConfigError(f"{', '.join(idle)}: for --descriptor sscd:URI only")
    if not by_name and not descriptor.startswith("sscd:") and (idle := asked(options, OF_WEIGHTS)):
        raise ConfigError(f"{', '.join(idle)}: for --descriptor sscd:URI only")


def model_by_name(options: ImageOptions, descriptor: str) -> ImageSpec:
    """The spec of a model by name, with its own preprocessing unless the published one is asked for."""
    is_published = options.preprocess == PUBLISHED
    idle = asked(options, OF_PUBLISHED)
    if idle and not is_published:
        raise ConfigError(
            f"{', '.join(idle)}: would do nothing with the model's own preprocessing; leave it out, or give "
            f"--preprocess {PUBLISHED}"
        )
    chosen = {
        key: value for key in ("pooling", "pool_param", "weights") if (value := getattr(options, key)) is not None
    }
    arguments: dict[str, Any] = {**options.descriptor_args, **chosen}
    return resolve_by_name(descriptor, arguments, preprocess_of(options) if is_published else None, options.precision)
