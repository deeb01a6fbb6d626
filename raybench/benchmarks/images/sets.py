"""Sets of images that are compared: pictures in files, or vectors of theirs on disk; and how each becomes a set of
vectors. An image's index is the position of its name in the set's name order, or in a list that comes with the data.
What the sets are to each other, and what is true of them, the benchmarks say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.images.image_options import ImageOptions
from raybench.benchmarks.images.named_models import OF_WEIGHTS, check_goes_together, is_by_name, model_by_name
from raybench.benchmarks.images.preprocessing import preprocess_of
from raybench.benchmarks.job import Job, device_for, note_digest, trial_device
from raybench.descriptors.image_descriptors import ImageSpec, resolve_images
from raybench.engine.run import Run
from raybench.errors import DataError, InputError, ProblemList
from raybench.extract.image_trial import ImageTrial
from raybench.extract.images import Described, Extraction, describe_images
from raybench.extract.isc_files import descriptor_file, isc_content
from raybench.extract.trials import NoTrial, Trial
from raybench.extract.vector_set import VectorSet, read_set, take_rows
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import NORMALISERS, Names, Strings, name_order, strings
from raybench.search.codecs import CodecFailed, codec_problems, default_codecs, project_sets, trains
from raybench.search.vector_facts import VectorFacts, are_normalised
from raybench.sources.image_files import ImageFiles, double_stems
from raybench.sources.named_vectors import NamedVectors, note_dimensions

LEARNT = re.compile(r"(PCA[WR]*|OPQ\d+_|ITQ)(\d+)")  # transforms of a codec that learn, and their dimension


@dataclass(frozen=True)
class PictureSet:
    """Images of one role in files, names and files in the same order."""

    role: str
    names: Names
    source: ImageFiles

    dimension: ClassVar[None] = None  # of their vectors, which are not computed yet

    def __len__(self) -> int:
        return len(self.names)

    def limited(self, index: NDArray[np.int64]) -> PictureSet:
        """Only these images, in name order."""
        return PictureSet(self.role, Names(self.names.take(index)), self.source.taken(index))


@dataclass(frozen=True)
class StoredVectors:
    """Images of one role by their vectors on disk; `chosen` are those in the files that `--limit` leaves."""

    role: str
    names: Names
    source: NamedVectors
    chosen: NDArray[np.int64] | None = None

    @property
    def dimension(self) -> int:
        return self.source.dimension

    def __len__(self) -> int:
        return len(self.names)

    def limited(self, index: NDArray[np.int64]) -> StoredVectors:
        """Only these images, in name order."""
        return replace(self, names=Names(self.names.take(index)), chosen=index)


ImageSet = PictureSet | StoredVectors


def check_k(k: int, problems: ProblemList) -> None:
    """Note a `--k` that asks for nothing."""
    if k < 1:
        problems.add(f"--k {k}: expected at least 1")


def descriptor_of(job: Job[ImageOptions]) -> ImageSpec | None:
    """The descriptor that is asked for, checked; None where vectors or results are given."""
    options = job.options
    check_goes_together(options)
    if options.descriptor is None:
        return None
    options.precision.check_device(job.device)
    if is_by_name(options.descriptor):
        return model_by_name(options, options.descriptor)
    network = {key: value for key in OF_WEIGHTS if (value := getattr(options, key)) is not None}
    arguments = {**options.descriptor_args, **network}
    return resolve_images(options.descriptor, arguments, preprocess_of(options), options.precision)


def pictures(
    role: str,
    root: str,
    by_content: bool,
    problems: ProblemList,
    named_by: str = "stem",
    limits: Limits = USUAL,
    store: str = "",
) -> PictureSet | None:
    """The pictures of a folder, of archives or a list; None if there are none, which is noted, as are double names.

    What is in an archive is kept in the store, if there is one.
    """
    try:
        images = ImageFiles.scan(root, by_content, recursive=True, limits=limits, store=store)
    except InputError as error:
        problems.add(error)
        return None
    names = NORMALISERS[named_by](strings(images.keys))
    order, twice = name_order(names)  # of stems, not of files: `a` stands before `a-b`, `a.jpg` behind it
    if named_by != "path":  # paths always differ
        for line in double_stems([images.keys[number] for number in np.unique(twice).tolist()]):
            problems.add(f"{root}: {line}; keep one")
    return PictureSet(role, Names(names.take(order)), images.taken(order))


def vectors_on_disk(
    role: str,
    uris: Sequence[str],
    problems: ProblemList,
    named_by: str = "stem",
    part: str = "",
    names: Strings | None = None,
    limits: Limits = USUAL,
) -> StoredVectors | None:
    """Vectors in these files; None if there are none, or if something is wrong with them, which is noted."""
    source = NamedVectors.scan(uris, named_by, problems, part, names, limits) if uris else None
    return None if source is None else StoredVectors(role, source.names, source)


def note_other_dimensions(sets: Iterable[StoredVectors | None], problems: ProblemList) -> None:
    """Note sets of vectors whose dimension is another than the first one's."""
    note_dimensions([images.source for images in sets if images is not None], problems)


def asked_codecs(options: ImageOptions) -> tuple[str, ...]:
    """The codecs of `--codecs`, in its order; none if it was not given."""
    given = [codec.strip() for codec in (options.codecs or "").split(";")]
    return tuple(dict.fromkeys(codec for codec in given if codec))


def check_codecs(
    codecs: Iterable[str], images: ImageSet | None, training: ImageSet | None, problems: ProblemList
) -> None:
    """Note what is wrong with codecs for these images, as far as it shows before any vector is computed."""
    dimension = None if images is None else images.dimension
    for codec in codecs:
        found = codec_problems(codec, dimension, None if training is None else len(training))
        if not found and training is None and trains(codec):
            found = [f"codec {codec!r} needs a training set; give --training, or vectors of one"]
        for line in found:
            problems.add(f"--codecs: {line}")


def digests(sets: Iterable[ImageSet], descriptor: ImageSpec | None) -> dict[str, str]:
    """What the manifest says of the inputs."""
    found = {images.role: images.source.digest for images in sets}
    return found | ({"descriptor": descriptor.digest} if descriptor else {})


def read_text(uri: str, expected: str) -> bytes:
    """A small file's content; that it is missing is the user's to mend."""
    try:
        return storage.read(uri)
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected {expected}") from None


def describe(
    run: Run, job: Job[ImageOptions], sets: Sequence[ImageSet], descriptor: ImageSpec | None
) -> dict[str, Described]:
    """The vectors of each set by its role: computed from pictures, or read from disk."""
    stored = {one.role: _read(run, one, job.shard_size) for one in sets if isinstance(one, StoredVectors)}
    if descriptor is None:
        return stored
    note_digest(run, descriptor)
    device = device_for(job, run, descriptor.uses_gpu)
    descriptor.precision.check_device(device)
    return stored | describe_images(run, _pictures(sets), _extraction(job, descriptor, device))


def trial(
    job: Job[ImageOptions], sets: Sequence[ImageSet], descriptor: ImageSpec | None, notes: tuple[str, ...]
) -> Trial:
    """What `check` tries of these sets; vectors on disk were looked through already."""
    if descriptor is None:
        return NoTrial(notes)
    how = _extraction(job, descriptor, trial_device(job, descriptor.uses_gpu))
    return ImageTrial(_pictures(sets), how, (*notes, *descriptor.digest_notes))


def _pictures(sets: Sequence[ImageSet]) -> dict[str, ImageFiles]:
    return {one.role: one.source for one in sets if isinstance(one, PictureSet)}


def _extraction(job: Job[ImageOptions], descriptor: ImageSpec, device: str) -> Extraction:
    rotate = job.options.exif_rotate
    return Extraction(descriptor, device, job.batch_size, job.shard_size, job.skip_bad_input, rotate)


def _read(run: Run, images: StoredVectors, shard_size: int | None) -> Described:
    vectors = read_set(run, images.source, images.role, shard_size)
    if images.chosen is not None:
        vectors = take_rows(run, vectors, images.chosen, images.role)
    return Described(vectors, np.zeros(0, np.int64))


def skipped_images(sets: Iterable[ImageSet], described: Mapping[str, Described]) -> tuple[str, ...]:
    """A line for each image that could not be read."""
    return tuple(
        f"{images.role}: {images.names[index]}: can't be read"
        for images in sets
        for index in described[images.role].skipped.tolist()
    )


def published_codecs(facts: Mapping[str, VectorFacts]) -> tuple[str, ...]:
    """The published list for these vectors, without what would need a training set where there is none."""
    known = default_codecs(next(iter(facts.values())).dimension, are_normalised(list(facts.values())))
    return tuple(codec for codec in known if "training" in facts or not trains(codec))


def project(
    run: Run, codecs: Iterable[str], vectors: Mapping[str, VectorSet], training: VectorSet | None, seed: int
) -> tuple[dict[str, dict[str, VectorSet]], list[str]]:
    """The vectors of each role by each codec; and a note for each codec that failed, while the others go on."""
    found, failed = {}, []
    for codec in codecs:
        try:
            projected = project_sets(run, codec, training, list(vectors.values()), seed)
        except CodecFailed as error:
            run.say(f"warning: {error}; the other codecs go on")
            failed.append(f"WARNING: {error}; its rows are empty. {_smaller(codec, training)}.")
        else:
            found[codec] = dict(zip(vectors, projected, strict=True))
    return found, failed


def _smaller(codec: str, training: VectorSet | None) -> str:
    """What to give in the place of a codec that can't be trained on so few images."""
    most = 0 if training is None else len(training) - 1
    if most < 1 or not LEARNT.search(codec):
        return "Leave it out of --codecs, or give other training images"
    fitting = LEARNT.sub(lambda found: f"{found[1]}{min(int(found[2]), most)}", codec)
    return f"Give more training images, or a smaller dimension, such as --codecs '{fitting}'"


def export_descriptors(run: Run, sets: Iterable[ImageSet], vectors: Mapping[str, VectorSet]) -> None:
    """A file for each set, which reads back as `--features`."""
    files = [descriptor_file(one.role, vectors[one.role], one.names) for one in sets]
    run.write("results/{name}.h5", isc_content, files)
