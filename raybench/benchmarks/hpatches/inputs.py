"""What the 2017 HPatches benchmarks share: splits and their files, the images of noise levels, features of patches.

The layout is that of the HPatches toolbox: `splits.json`, `verif_*_split-S.csv` and `retr_*_split-S.csv` in one folder,
`SEQ/IM.png` or `DESC/SEQ/IM.csv` in another. Image number 0 is `ref` at every level, number i at level e is `e{i}`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.hpatches.whitening import TrainSet, copy_stride, whitened
from raybench.benchmarks.job import Job, limit_notes
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import BY_DESCRIPTOR, DescribedPatches, PatchOptions, check_patch_inputs, read_files
from raybench.digests import digest_of, digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, InputError, ProblemList, suggestion
from raybench.extract.patches import Features
from raybench.extract.trials import Trial
from raybench.formats import hpatches as files
from raybench.formats.hpatches import Split
from raybench.search.distances import MASKED_DISTANCES
from raybench.sources.patches import Source, items_of

NOISE_LEVELS = ("e", "h", "t")
NUMBERS = range(files.MOST_NUMBER + 1)
EVERY_NUMBER = frozenset(NUMBERS)

Listed = TypeVar("Listed", bound="PatchList")


@dataclass(frozen=True)
class HPatchesOptions(PatchOptions):
    """Options of the three 2017 benchmarks."""

    tasks: str | None = option(
        None, "folder that holds the split CSVs; splits.json is there or in splits/", "input", is_uri=True
    )
    results: str | None = option(None, "refused: the 2017 protocol has no result format", "input", is_uri=True)
    split: tuple[str, ...] = option(
        (),
        "splits, with commas or given several times",
        "protocol",
        default_words="every one that has its files",
    )
    distance: str | None = option(
        None, "how descriptors are compared", "protocol", default_words=BY_DESCRIPTOR, choices=MASKED_DISTANCES
    )
    post_processing: str = option(
        "none",
        "pcapl: ZCA whitening by the split's train part, signed square root, L2 norm",
        "protocol",
        choices=("none", "pcapl"),
    )


class PatchList(Protocol):
    """The lines of a split's file: patches, or pairs of them."""

    @property
    def sequences(self) -> tuple[str, ...]: ...

    @property
    def sides(self) -> tuple[files.PatchColumns, ...]:
        """Sequence, image number and patch of each line; of both patches where lines are pairs."""
        ...


@dataclass(frozen=True)
class TaskFolder:
    """`--tasks`: the chosen splits, in the order of `splits.json`, and those left out for want of their files."""

    uri: str
    splits: tuple[Split, ...] = ()
    left_out: tuple[str, ...] = ()
    digest: str = ""

    def read(
        self, patterns: Sequence[str], parse: Callable[[bytes, str], Listed], problems: ProblemList
    ) -> tuple[dict[str, Listed], str]:
        """The files of every split by stem (`{}` is the split's name), and the digest of all that was read."""
        names = [pattern.format(split.name) for split in self.splits for pattern in patterns]
        lists, seen = read_files(self.uri, names, parse, problems)
        return lists, digest_of(self.digest, seen)


@dataclass(frozen=True)
class ImageLayout:
    """Where images are: `items` (sequences, levels, numbers) in the source, `patches` (sequences, numbers) in each.

    `split_stride` is the distance between the images of one split and those of the next where each split has features
    of its own (see `whitening`), else 0.
    """

    place: Mapping[str, int]
    items: NDArray[np.int32]
    patches: NDArray[np.int64]
    split_stride: int

    def of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """The places of sequences by name."""
        return np.array([self.place[name] for name in names], np.int32)

    def images(self, split: int) -> NDArray[np.int32]:
        """`items` as images of the features of the `split`-th split."""
        return self.items + np.int32(split * self.split_stride)


@dataclass(frozen=True)
class SplitPatches:
    """The patches that the splits of a job need, found to be there."""

    described: DescribedPatches
    splits: tuple[Split, ...]
    layout: ImageLayout

    @property
    def split_names(self) -> str:
        """For a summary in one line."""
        return f"split{'s' * (len(self.splits) > 1)} {', '.join(split.name for split in self.splits)}"

    @property
    def facts(self) -> dict[str, Any]:
        """What a published figure must share to be comparable."""
        return {"splits": {split.name: len(split.test) for split in self.splits}}

    def features(self, run: Run, wanted: NDArray[np.int32]) -> Features:
        """Descriptors of the wanted images (numbered as by `ImageLayout.images`), post-processed if the job says so."""
        stride = self.layout.split_stride
        if not stride:
            return self.described.features(run, wanted)
        train = [
            TrainSet(f"train set {number}", self.layout.items[self.layout.of(split.train), 0, 0])
            for number, split in enumerate(self.splits)
        ]
        plain = self.described.features(
            run, np.concatenate([wanted % np.int32(stride), *(one.images for one in train)])
        )
        return whitened(run, plain, train, np.unique(wanted).tolist())

    def trial(self, wanted: NDArray[np.int32]) -> Trial:
        """What `check` tries of the wanted images, numbered as for `features`."""
        stride = self.layout.split_stride
        return self.described.trial(wanted % np.int32(stride) if stride else wanted)


def checked_tasks(job: Job[HPatchesOptions]) -> str:
    """`--tasks`, once the job has one place to enter and what that needs."""
    options = job.options
    if options.results:
        raise ConfigError(
            f"{job.benchmark}: --results: no published format for results of this protocol; "
            "give --descriptor with --data, or --features"
        )
    check_patch_inputs(job, ("descriptor", "features"))
    if not options.tasks:
        raise ConfigError(f"{job.benchmark}: --tasks is missing, the folder that holds the split CSVs")
    return options.tasks


def read_folder(job: Job[HPatchesOptions], patterns: Sequence[str], problems: ProblemList) -> TaskFolder:
    """The splits that `--split` names, or all that have a file for each of the patterns (`{}` is the split's name).

    What is wrong with the folder is noted; it then has no splits.
    """
    tasks = checked_tasks(job)
    try:
        return _chosen_splits(tasks, job.options.split, patterns, problems)
    except InputError as error:
        problems.add(error)
        return TaskFolder(tasks)


def _chosen_splits(tasks: str, asked: Sequence[str], patterns: Sequence[str], problems: ProblemList) -> TaskFolder:
    there = {entry.name for entry in storage.list_files(tasks)}
    listed = next((name for name in ("splits.json", "splits/splits.json") if name in there), None)
    if listed is None:
        path = storage.local_path(tasks)
        reason = "has no splits.json, nor splits/splits.json" if storage.exists(tasks) else "does not exist"
        reason = "is a file" if path is not None and path.is_file() else reason
        raise DataError(f"{tasks}: {reason}; --tasks is the folder that holds the split CSVs")
    data = storage.read(storage.join(tasks, listed))
    splits = files.read_splits(data, storage.join(tasks, listed))
    missing = {
        name: [file for file in (pattern.format(name) for pattern in patterns) if file not in there] for name in splits
    }
    complete = [name for name in splits if not missing[name]]
    chosen = _asked_splits(asked, splits)
    for name in chosen:
        for file in missing[name]:
            problems.add(f"{storage.join(tasks, file)}: is missing; --split {name} needs it")
    if not chosen and not complete:
        wanted = ", ".join(pattern.format("S") for pattern in patterns)
        raise DataError(f"{tasks}: none of the splits {', '.join(splits)} has its files {wanted}")
    kept = [name for name in complete if name in chosen or not chosen]
    left_out = () if chosen else tuple(name for name in splits if name not in complete)
    return TaskFolder(tasks, tuple(splits[name] for name in kept), left_out, digest_of_bytes(data))


def _asked_splits(asked: Sequence[str], splits: Mapping[str, Split]) -> list[str]:
    """The splits that `--split` names, in the order of `splits.json`; none if it is not given."""
    names = [name.strip() for name in ",".join(asked).split(",") if name.strip()]
    for name in names:
        if name not in splits:
            known = ", ".join(splits)
            raise ConfigError(f"--split {name}: unknown{suggestion(name, splits)}; splits.json has {known}")
    return [name for name in splits if name in names]


def open_splits(
    job: Job[HPatchesOptions], splits: tuple[Split, ...], needed: Mapping[str, frozenset[int]], problems: ProblemList
) -> SplitPatches:
    """The job's patches with the images that are needed, by sequence and number; what is not there is noted.

    Raises InputError, with all that was noted before, if there is no such source or no such descriptor.
    """
    with problems.joining():
        described = DescribedPatches.open(job, MASKED_DISTANCES)
        if job.options.post_processing != "pcapl":
            return SplitPatches(described, splits, _locate(described.source, needed, problems))
        _check_whitening(described.distance, splits, problems)
        wanted = dict(needed)
        for name in itertools.chain.from_iterable(split.train for split in splits):
            wanted[name] = wanted.get(name, frozenset()) | {0}
        stride = copy_stride(len(described.source.keys), job.shard_size)
        return SplitPatches(described, splits, _locate(described.source, wanted, problems, stride))


def _check_whitening(distance: str, splits: tuple[Split, ...], problems: ProblemList) -> None:
    if distance in ("hamming", "masked_L1"):
        problems.add(f"--post-processing pcapl: makes real-valued descriptors, which {distance} does not compare")
    for split in splits:
        if not split.train:
            problems.add(
                f"--post-processing pcapl: split {split.name} has no train part to learn from; leave it out of --split"
            )


def _locate(
    source: Source, needed: Mapping[str, frozenset[int]], problems: ProblemList, split_stride: int = 0
) -> ImageLayout:
    """Items and patch counts of the needed images; within a sequence all must have the same number of patches."""
    place = {name: i for i, name in enumerate(sorted(needed))}
    keys = {
        (place[name], at, number): image_name(name, level, number)
        for name in place
        for at, level in enumerate(NOISE_LEVELS)
        for number in sorted(needed[name])
    }
    found = items_of(source, dict.fromkeys(keys.values()), problems)
    counts = source.counts(found.values(), problems)
    items = np.full((len(place), len(NOISE_LEVELS), len(NUMBERS)), -1, np.int32)
    patches = np.full((len(place), len(NUMBERS)), np.iinfo(np.int32).max, np.int64)
    first: dict[int, str] = {}
    for (sequence, level, number), key in keys.items():
        if key not in found or found[key] not in counts:
            continue
        items[sequence, level, number] = found[key]
        count = counts[found[key]]
        patches[sequence, number] = min(patches[sequence, number], count)
        other = first.setdefault(sequence, key)
        if count != counts[found[other]]:
            problems.add(
                f"{source.uri(found[key])}: {count} patches, but {other} has {counts[found[other]]}; "
                "all images of a sequence must have the same patches"
            )
    return ImageLayout(place, items, patches, split_stride)


def note_out_of_range(
    folder: TaskFolder, lists: Mapping[str, PatchList], patches: SplitPatches, problems: ProblemList
) -> None:
    """Note the first line of each list whose patch is not there."""
    for name, listed in lists.items():
        file, place = storage.join(folder.uri, f"{name}.csv"), patches.layout.of(listed.sequences)
        for sequence, number, patch in listed.sides:
            count = patches.layout.patches[place[sequence], number]
            beyond = np.flatnonzero(patch >= count)
            if len(beyond):
                line = int(beyond[0])
                own = listed.sequences[sequence[line]]
                problems.add(
                    f"{file}: line {line + files.FIRST_LINE}: patch {patch[line]} of {own} "
                    f"is out of range; it has {count[line]} patches ({len(beyond):,} such lines)"
                )


def image_name(sequence: str, level: str, number: int) -> str:
    """`SEQ/IM` of an image."""
    return f"{sequence}/{level}{number}" if number else f"{sequence}/ref"


def job_notes(job: Job[HPatchesOptions], folder: TaskFolder, limited: str) -> tuple[str, ...]:
    """What a table says of its job: splits that were left out, post-processing, and what `--limit` limits."""
    notes = []
    if folder.left_out:
        notes.append(f"splits without their files in --tasks were left out: {', '.join(folder.left_out)}.")
    if job.options.post_processing == "pcapl":
        notes.append("post-processing: pcapl, whitened by the train part of each split.")
    return (*notes, *limit_notes(job, limited))
