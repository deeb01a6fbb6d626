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
from raybench.benchmarks.job import Job, Option, device_for
from raybench.descriptors.image_descriptors import ImageSpec, resolve_images
from raybench.descriptors.sscd_backbones import BACKBONES
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, InputError, ProblemList, Problems
from raybench.extract.export_set import descriptor_file, export_sets, submission_file
from raybench.extract.image_sizes import ImageSizes, Sizes, read_sizes
from raybench.extract.images import describe_images
from raybench.extract.read_set import read_set
from raybench.extract.take_rows import take_rows
from raybench.extract.vector_set import VectorSet
from raybench.formats.images import Preprocess
from raybench.formats.names import NORMALISERS, Names, name_order, strings
from raybench.search.codecs import codec_problems, trains
from raybench.sources.image_folders import ImageFolder, double_stems, list_images
from raybench.sources.named_vectors import NamedVectors, note_dimensions

INPUTS = ("data", "descriptor", "descriptor-args", "features")
OPTIONS = (
    Option("size", "edge in px to which a model's images are resized", default=288, kind=int),
    Option(
        "preserve-aspect-ratio", "true: the short edge to --size, false: a square of --size", default=True, kind=bool
    ),
    Option("resize-long-edge", "the long edge to --size, whatever --preserve-aspect-ratio says", kind=bool),
    Option("exif-rotate", "turn images as their EXIF says (published figures don't)", kind=bool),
    Option("backbone", "network of an sscd:URI weight file", choices=tuple(BACKBONES)),
    Option("dims", "dimension of the descriptors of an sscd:URI weight file", kind=int),
    Option("pool-param", "GeM power of an sscd:URI weight file [default: 3.0]", kind=float),
    Option("export-descriptors", "write the descriptors to results/ as ISC HDF5 files, a submission", kind=bool),
    Option("dtype", "precision of a model on a GPU", choices=("float32", "float16", "bfloat16"), default="float32"),
)


# What the other ways in have no use for. Options that published commands always give (--size …) are let pass.
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


def check_inputs(job: Job, options: Iterable[Option], results: bool) -> None:
    """One of the ways in, with what it needs and without what would do nothing there."""
    ways = {"--descriptor": job.descriptor, "--features": job.features}
    if results:
        ways["--results"] = job.results
    given = [name for name, value in ways.items() if value]
    if len(given) != 1:
        raise ConfigError(f"{job.benchmark}: give one of {', '.join(ways)}; got {', '.join(given) or 'none of them'}")
    if job.descriptor is None and job.descriptor_args:
        raise ConfigError(f"{job.benchmark}: --descriptor-args goes with --descriptor")
    idle = [option for option in options if option.key in IDLE.get(given[0], ()) and _is_asked(job, option)]
    names = [f"--{option.name}" for option in idle]
    if given[0] == "--results" and job.limit is not None:
        names.append("--limit")
    if names:
        raise ConfigError(f"{job.benchmark}: {', '.join(names)}: would do nothing with {given[0]}; leave it out")


def _is_asked(job: Job, option: Option) -> bool:
    return job.options.get(option.key) not in (None, False, option.default)


def preprocessing(job: Job) -> Preprocess:
    """The published preprocessing that the options ask for."""
    size, keep, long = (job.options.get(key) for key in ("size", "preserve_aspect_ratio", "resize_long_edge"))
    mode = "long_edge" if long else "short_edge" if keep in (None, True) else "square"
    return Preprocess(288 if size is None else size, mode)


def preprocessing_notes(job: Job) -> tuple[str, ...]:
    if job.options.get("resize_long_edge") and job.options.get("preserve_aspect_ratio") is False:
        return (
            "resize_long_edge: the long edge is resized and the aspect kept, as the published text has it; "
            "the published code ignores this flag unless the aspect is preserved.",
        )
    return ()


def descriptor_of(job: Job) -> ImageSpec | None:
    """The job's descriptor, checked; None where vectors or results are given."""
    network = {key: job.options[key] for key in ("backbone", "dims", "pool_param") if job.options.get(key) is not None}
    if job.descriptor is None or not job.descriptor.startswith("sscd:"):
        if network:
            names = ", ".join("--" + key.replace("_", "-") for key in network)
            raise ConfigError(f"{names}: for --descriptor sscd:URI only")
        if job.descriptor is None:
            return None
    arguments = {**job.descriptor_args, **network}
    return resolve_images(job.descriptor, arguments, preprocessing(job), job.options.get("dtype") or "float32")


def neighbours(job: Job, default: int) -> int:
    """`--k`."""
    k = job.options.get("k")
    if k is not None and k < 1:
        raise ConfigError(f"--k {k}: expected at least 1")
    return default if k is None else int(k)


def asked_codecs(job: Job) -> tuple[str, ...]:
    """The codecs of `--codecs`, in its order; none if it was not given."""
    given = [codec.strip() for codec in (job.options.get("codecs") or "").split(";")]
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


def pictures(what: str, root: str, job: Job, problems: ProblemList, named_by: str = "stem") -> ImageSet | None:
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
    source = NamedVectors.scan(what, uris, named_by, problems, **more) if uris else None
    return None if source is None else ImageSet(what, source.names, source)


def note_other_dimensions(sets: Iterable[ImageSet | None], problems: ProblemList) -> None:
    """Note sets of vectors whose dimension is another than the first one's."""
    sources = [images.source for images in sets if images is not None]
    note_dimensions([source for source in sources if isinstance(source, NamedVectors)], problems)


def described(run: Run, job: Job, descriptor: ImageSpec | None, sets: Sequence[ImageSet]) -> dict[str, Vectors]:
    """The sets' vectors, computed or read. Broken headers of any set's pictures are said together, before that."""
    folders = {images.what: _folder(images, job) for images in sets}
    rotate = bool(job.options.get("exif_rotate"))
    sizes = {what: read_sizes(run, ImageSizes(one, rotate)) for what, one in folders.items() if one is not None}
    broken = [line for _, unreadable in sizes.values() for line in unreadable.values()]
    if broken and not job.skip_bad_input:
        raise Problems(broken)
    return {
        images.what: _described(run, job, descriptor, images, folders[images.what], sizes.get(images.what))
        for images in sets
    }


def _folder(images: ImageSet, job: Job) -> ImageFolder | None:
    """The folder of just the set's pictures."""
    if isinstance(images.source, NamedVectors):
        return None
    return images.source if images.chosen is None else _part(images.source, images.chosen, job)


def _described(
    run: Run,
    job: Job,
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
        exif_rotate=bool(job.options.get("exif_rotate")),
        sizes=sizes,
    )
    place = {key: number for number, key in enumerate(folder.keys)}
    return Vectors(vectors, np.array([place[key] for key in skipped], np.int64))


def exported(run: Run, job: Job, sets: Iterable[ImageSet], vectors: dict[str, VectorSet]) -> list[str]:
    """The files that `--export-descriptors` asks for, written; those of single sets read back as `--features`."""
    if not job.options.get("export_descriptors"):
        return []
    named = {one.what: one.names for one in sets}
    files = {f"results/{what}.h5": descriptor_file(vectors[what], names) for what, names in named.items()}
    if "queries" in named:
        files["results/submission.h5"] = submission_file(
            vectors["queries"], named["queries"], vectors["references"], named["references"]
        )
    export_sets(run, files)
    return list(files)


def _part(folder: ImageFolder, places: NDArray[np.int64], job: Job) -> ImageFolder:
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
