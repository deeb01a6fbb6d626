"""Options of every benchmark that describes images: how these are prepared, what networks are given, which codecs.

Also which of them would do nothing where a job begins at vectors or at results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raybench.benchmarks.images.named_models import OF_NAMES, PREPROCESSING
from raybench.benchmarks.job import DescribedOptions, Job
from raybench.benchmarks.options import asked, option
from raybench.descriptors.precision import DTYPES, Precision
from raybench.descriptors.sscd_backbones import BACKBONES
from raybench.descriptors.token_pooling import POOLINGS
from raybench.errors import ConfigError
from raybench.formats.images import INTERPOLATIONS

# What the other ways in have no use for. Options that published commands always give (--size …) are let pass.
OF_NETWORKS = ("dtype", "tf32", "compile", "mean", "std", "interpolation", *OF_NAMES)
OF_PICTURES = ("queries", "references", "training", "distractors", "exif_rotate", *OF_NETWORKS)
OF_SEARCH = ("codecs", "score_norm", "k", "global_candidates", "export_descriptors")
IDLE = {"features": OF_PICTURES, "results": OF_PICTURES + OF_SEARCH}


@dataclass(frozen=True)
class ImageOptions(DescribedOptions):
    """Options of every benchmark of copy detection: how images are prepared, and of what network weights are."""

    features: str | None = option(
        None, "folder of vector files (.h5, .npz, .parquet), or SSCD's .pt file", "input", is_uri=True
    )
    training: str | None = option(
        None,
        "images that codecs and score norms are trained on: folder, archives or list",
        "input",
        is_uri=True,
    )
    size: int = option(288, "edge in px to which a model's images are resized", "method")
    preserve_aspect_ratio: bool = option(True, "true: the short edge to --size, false: a square of --size", "method")
    resize_long_edge: bool = option(False, "the long edge to --size, whatever --preserve-aspect-ratio says", "method")
    mean: str | None = option(
        None,
        "of a model's images by channel R,G,B, of levels from 0 to 1; or one number for all",
        "method",
        default_words="ImageNet's, 0.485,0.456,0.406",
        separator=",",
    )
    std: str | None = option(
        None, "standard deviation likewise", "method", default_words="ImageNet's, 0.229,0.224,0.225", separator=","
    )
    interpolation: str | None = option(
        None,
        "filter by which a model's images are resized",
        "method",
        default_words="bilinear, as published",
        choices=INTERPOLATIONS,
    )
    exif_rotate: bool = option(False, "turn images as their EXIF says (published figures don't)", "method")
    backbone: str | None = option(None, "network of an sscd:URI weight file", "method", choices=BACKBONES)
    dims: int | None = option(None, "dimension of the descriptors of an sscd:URI weight file", "method")
    pool_param: float | None = option(
        None, "GeM power of an sscd:URI weight file, or with --pooling gem", "method", default_words="3.0"
    )
    preprocess: str | None = option(
        None,
        "of hf:, timm:, torchvision: models: by the model's own steps, or by the published ones with --size …",
        "method",
        default_words="model",
        choices=PREPROCESSING,
    )
    pooling: str | None = option(
        None,
        "of hf:, timm:, torchvision: models: the class token, or a mean over patches (plain, or generalised: GeM)",
        "method",
        default_words="what the model itself gives for a picture",
        choices=POOLINGS,
    )
    weights: str | None = option(
        None,
        "file with the weights of timm:NAME or torchvision:NAME (.safetensors, .pth)",
        "method",
        default_words="those in the library's local cache",
        is_uri=True,
    )
    dtype: str = option("float32", "precision of a model on a GPU", "method", choices=DTYPES)
    tf32: bool = option(False, "multiply a model's float32 as TF32 on a GPU: faster, to ten bits", "method")
    compile: bool = option(False, "let torch.compile make the kernels of sscd:URI, or of a model by name", "method")
    codecs: str | None = option(
        None,
        "FAISS index_factory strings ending in Flat, separated by ;",
        "protocol",
        default_words="the published list",
        separator=";",
    )
    metadata: str | None = option(None, "text for a last column `metadata` of the main table", "protocol")
    export_descriptors: bool = option(
        False, "write the descriptors to results/ as ISC HDF5 files, a submission", "protocol"
    )

    @property
    def precision(self) -> Precision:
        return Precision(self.dtype, self.tf32, self.compile)


def check_ways_in(job: Job[ImageOptions], ways: Sequence[str]) -> None:
    """That one of the ways in (keys of options) is given, without anything that would do nothing there."""
    given = [way for way in ways if getattr(job.options, way)]
    if len(given) != 1:
        expected, found = (", ".join(f"--{way}" for way in some) for some in (ways, given))
        raise ConfigError(f"{job.benchmark}: give one of {expected}; got {found or 'none of them'}")
    if job.options.descriptor is None and job.options.descriptor_args:
        raise ConfigError(f"{job.benchmark}: --descriptor-args goes with --descriptor")
    idle = asked(job.options, IDLE.get(given[0], ()))
    if given[0] == "results" and job.limit is not None:
        idle.append("--limit")
    if idle:
        raise ConfigError(f"{job.benchmark}: {', '.join(idle)}: would do nothing with --{given[0]}; leave it out")
