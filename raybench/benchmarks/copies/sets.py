"""Sets of images that copy detection compares: pictures in a folder, or vectors of theirs on disk; and how each becomes
a set of vectors. What the sets are to each other, and what is true of them, the benchmarks say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.job import DescribedOptions, Job, device_for
from raybench.benchmarks.options import asked, option
from raybench.descriptors.image_descriptors import ImageSpec, resolve_images
from raybench.descriptors.sscd_backbones import BACKBONES
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, InputError, ProblemList, Problems
from raybench.extract.images import ImageSizes, Sizes, describe_images, read_sizes
from raybench.extract.isc_files import descriptor_file, export_sets, submission_file
from raybench.extract.vector_set import VectorSet, read_set, take_rows
from raybench.formats.images import Preprocess
from raybench.formats.names import NORMALISERS, Names, name_order, strings
from raybench.search.codecs import codec_problems, trains
from raybench.sources.image_folders import ImageFolder, double_stems, list_images
from raybench.sources.named_vectors import NamedVectors, note_dimensions


@dataclass(frozen=True)
class CopyOptions(DescribedOptions):
    """Options of every benchmark of copy detection: how images are prepared, and of what network weights are."""

    features: str | None = option(
        None, "folder of vector files (.h5, .npz, .parquet), or SSCD's .pt file", "input", is_uri=True
    )
    training: str | None = option(
        None, "folder of the images that codecs and score norms are trained on", "input", is_uri=True
    )
    size: int = option(288, "edge in px to which a model's images are resized", "method")
    preserve_aspect_ratio: bool = option(True, "true: the short edge to --size, false: a square of --size", "method")
    resize_long_edge: bool = option(False, "the long edge to --size, whatever --preserve-aspect-ratio says", "method")
    exif_rotate: bool = option(False, "turn images as their EXIF says (published figures don't)", "method")
    backbone: str | None = option(None, "network of an sscd:URI weight file", "method", choices=BACKBONES)
    dims: int | None = option(None, "dimension of the descriptors of an sscd:URI weight file", "method")
    pool_param: float | None = option(None, "GeM power of an sscd:URI weight file", "method", default_words="3.0")
    dtype: str = option(
        "float32", "precision of a model on a GPU", "method", choices=("float32", "float16", "bfloat16")
    )
    codecs: str | None = option(
        None,
        "FAISS index_factory strings ending in Flat, separated by ;",
        "protocol",
        default_words="the published list",
    )
    metadata: str | None = option(None, "text for a last column `metadata` of the main table", "protocol")
    export_descriptors: bool = option(
        False, "write the descriptors to results/ as ISC HDF5 files, a submission", "protocol"
    )


# What the other ways in have no use for. Options that published commands always give (--size …) are let pass.
OF_WEIGHTS = ("backbone", "dims", "pool_param")
OF_PICTURES = ("queries", "references", "training", "distractors", "exif_rotate", "dtype")
OF_SEARCH = ("codecs", "score_norm", "k", "global_candidates", "export_descriptors")
IDLE = {"--features": OF_PICTURES, "--results": OF_PICTURES + OF_SEARCH}


@dataclass(frozen=True)
class ImageSet:
    """Images of one role with their names in order of place; `chosen` are the places that `--limit` leaves."""

    what: str
    names: Names
    source: ImageFolder | NamedVectors
    chosen: NDArray[np.int64] | None = None

    @property
    def digest(self) -> str:
        return self.source.digest

    def __len__(self) -> int:
        return len(self.names)

    @property
    def has_pictures(self) -> bool:
        return isinstance(self.source, ImageFolder)

    def picture(self, place: int) -> bytes:
        """One image's file."""
        assert isinstance(self.source, ImageFolder)
        return self.source.read(place if self.chosen is None else int(self.chosen[place]))

    def limited(self, places: NDArray[np.int64]) -> ImageSet:
        """Only these images, in name order."""
        return replace(self, names=Names(self.names.take(places)), chosen=places)


@dataclass(frozen=True)
class Vectors:
    """A set's vectors, and the places of images that could not be read."""

    vectors: VectorSet
    skipped: NDArray[np.int64]


def check_inputs(job: Job[CopyOptions], results: str | None) -> None:
    """One of the ways in, with what it needs and without what would do nothing there."""
    ways = {"--descriptor": job.options.descriptor, "--features": job.options.features}
    if hasattr(job.options, "results"):
        ways["--results"] = results
    given = [name for name, value in ways.items() if value]
    if len(given) != 1:
        raise ConfigError(f"{job.benchmark}: give one of {', '.join(ways)}; got {', '.join(given) or 'none of them'}")
    if job.options.descriptor is None and job.options.descriptor_args:
        raise ConfigError(f"{job.benchmark}: --descriptor-args goes with --descriptor")
    names = asked(job.options, IDLE.get(given[0], ()))
    if given[0] == "--results" and job.limit is not None:
        names.append("--limit")
    if names:
        raise ConfigError(f"{job.benchmark}: {', '.join(names)}: would do nothing with {given[0]}; leave it out")


def preprocessing(job: Job[CopyOptions]) -> Preprocess:
    """The published preprocessing that the options ask for."""
    options = job.options
    mode = "long_edge" if options.resize_long_edge else "short_edge" if options.preserve_aspect_ratio else "square"
    return Preprocess(options.size, mode)


def preprocessing_notes(job: Job[CopyOptions]) -> tuple[str, ...]:
    if job.options.resize_long_edge and not job.options.preserve_aspect_ratio:
        return (
            "resize_long_edge: the long edge is resized and the aspect kept, as the published text has it; "
            "the published code ignores this flag unless the aspect is preserved.",
        )
    return ()


def descriptor_of(job: Job[CopyOptions]) -> ImageSpec | None:
    """The job's descriptor, checked; None where vectors or results are given."""
    network = {key: value for key in OF_WEIGHTS if (value := getattr(job.options, key)) is not None}
    if job.options.descriptor is None or not job.options.descriptor.startswith("sscd:"):
        if network:
            raise ConfigError(f"{', '.join(asked(job.options, OF_WEIGHTS))}: for --descriptor sscd:URI only")
        if job.options.descriptor is None:
            return None
    arguments = {**job.options.descriptor_args, **network}
    return resolve_images(job.options.descriptor, arguments, preprocessing(job), job.options.dtype)


def check_k(k: int) -> None:
    """That `--k` asks for something."""
    if k < 1:
        raise ConfigError(f"--k {k}: expected at least 1")


def asked_codecs(job: Job[CopyOptions]) -> tuple[str, ...]:
    """The codecs of `--codecs`, in its order; none if it was not given."""
    given = [codec.strip() for codec in (job.options.codecs or "").split(";")]
    return tuple(dict.fromkeys(codec for codec in given if codec))


def check_codecs(
    codecs: Iterable[str], dimension: int | None, training: ImageSet | None, problems: ProblemList
) -> None:
    """Note what is wrong with codecs, as far as it shows before any vector is computed."""
    for codec in codecs:
        found = codec_problems(codec, dimension, None if training is None else len(training))
        if not found and training is None and trains(codec):
            found = [f"codec {codec!r} needs a training set; give --training, or vectors of one"]
        for line in found:
            problems.add(f"--codecs: {line}")


def known_dimension(images: ImageSet | None) -> int | None:
    """The vectors' dimension, where they are on disk."""
    return images.source.dimension if images is not None and isinstance(images.source, NamedVectors) else None


def pictures(
    what: str, root: str, job: Job[CopyOptions], problems: ProblemList, named_by: str = "stem"
) -> ImageSet | None:
    """The pictures of a folder; None if it has none, which is noted. Names that become the same are noted."""
    try:
        folder = ImageFolder.scan(root, job.verify_inputs, recursive=True)
    except InputError as error:
        problems.add(error)
        return None
    if named_by == "stem":
        for line in double_stems(folder.keys):
            problems.add(f"{root}: {line}; keep one")
    names = NORMALISERS[named_by](strings(folder.keys))
    order = name_order(names)[0]  # of stems, which is not that of files: `a` stands before `a-b`, `a.jpg` behind it
    ordered = folder.arranged([folder.keys[place] for place in order.tolist()])
    return ImageSet(what, Names(names.take(order)), ordered)


def vectors_on_disk(
    what: str, uris: Sequence[str], problems: ProblemList, named_by: str = "stem", **more: Any
) -> ImageSet | None:
    """Vectors in these files; None if there are none, or if something is wrong with them, which is noted."""
    source = NamedVectors.scan(uris, named_by, problems, **more) if uris else None
    return None if source is None else ImageSet(what, source.names, source)


def note_other_dimensions(sets: Iterable[ImageSet | None], problems: ProblemList) -> None:
    """Note sets of vectors whose dimension is another than the first one's."""
    sources = [images.source for images in sets if images is not None]
    note_dimensions([source for source in sources if isinstance(source, NamedVectors)], problems)


def described(
    run: Run, job: Job[CopyOptions], descriptor: ImageSpec | None, sets: Sequence[ImageSet]
) -> dict[str, Vectors]:
    """The sets' vectors, computed or read. Broken headers of any set's pictures are said together, before that."""
    folders = {images.what: _folder(images, job) for images in sets}
    rotate = job.options.exif_rotate
    sizes = {what: read_sizes(run, ImageSizes(one, rotate)) for what, one in folders.items() if one is not None}
    broken = [line for _, unreadable in sizes.values() for line in unreadable.values()]
    if broken and not job.skip_bad_input:
        raise Problems(broken)
    return {
        images.what: _described(run, job, descriptor, images, folders[images.what], sizes.get(images.what))
        for images in sets
    }


def _folder(images: ImageSet, job: Job[CopyOptions]) -> ImageFolder | None:
    """The folder of just the set's pictures."""
    if isinstance(images.source, NamedVectors):
        return None
    return images.source if images.chosen is None else _part(images.source, images.chosen, job)


def _described(
    run: Run,
    job: Job[CopyOptions],
    descriptor: ImageSpec | None,
    images: ImageSet,
    folder: ImageFolder | None,
    sizes: Sizes | None,
) -> Vectors:
    if isinstance(images.source, NamedVectors):
        vectors = read_set(run, images.source, images.what, job.shard_size)
        if images.chosen is not None:
            vectors = take_rows(run, vectors, images.chosen, images.what)
        return Vectors(vectors, np.zeros(0, np.int64))
    assert descriptor is not None and folder is not None
    device = device_for(job, run, descriptor.uses_gpu)
    vectors, skipped = describe_images(
        run,
        folder,
        descriptor,
        images.what,
        device,
        batch_size=job.batch_size,
        shard_size=job.shard_size,
        skip=job.skip_bad_input,
        exif_rotate=job.options.exif_rotate,
        sizes=sizes,
    )
    place = {key: number for number, key in enumerate(folder.keys)}
    return Vectors(vectors, np.array([place[key] for key in skipped], np.int64))


def exported(run: Run, job: Job[CopyOptions], sets: Iterable[ImageSet], vectors: dict[str, VectorSet]) -> list[str]:
    """The files that `--export-descriptors` asks for, written; those of single sets read back as `--features`."""
    if not job.options.export_descriptors:
        return []
    named = {one.what: one.names for one in sets}
    files = {f"results/{what}.h5": descriptor_file(vectors[what], names) for what, names in named.items()}
    if "queries" in named:
        files["results/submission.h5"] = submission_file(
            vectors["queries"], named["queries"], vectors["references"], named["references"]
        )
    export_sets(run, files)
    return list(files)


def _part(folder: ImageFolder, places: NDArray[np.int64], job: Job[CopyOptions]) -> ImageFolder:
    wanted = [folder.keys[place] for place in places.tolist()]
    there = {entry.name: entry for entry in list_images(folder.root, recursive=True)}
    return ImageFolder.of(folder.root, [there[key] for key in wanted], job.verify_inputs).arranged(wanted)


def digests(sets: Iterable[ImageSet | None], descriptor: ImageSpec | None) -> dict[str, str]:
    """What the manifest says of the inputs."""
    found = {images.what: images.digest for images in sets if images is not None}
    return found | ({"descriptor": descriptor.digest} if descriptor else {})


def read_text(uri: str, what: str) -> bytes:
    """A small file's content; that it is missing is the user's to mend."""
    try:
        return storage.read(uri)
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected {what}") from None
