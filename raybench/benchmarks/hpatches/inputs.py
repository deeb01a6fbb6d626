"""What the 2017 HPatches benchmarks share: splits and their files, the images of noise levels, features of patches.

The layout is that of the HPatches toolbox: `splits.json`, `verif_*_split-S.csv` and `retr_*_split-S.csv` in one folder,
`SEQ/IM.png` or `DESC/SEQ/IM.csv` in another. Image number 0 is `ref` at every level, number i at level e is `e{i}`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.hpatches.whiten import copy_stride, whitened
from raybench.benchmarks.job import Job
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import BY_DESCRIPTOR, PatchOptions, chosen_distance, features_of, open_source
from raybench.descriptors import DescriptorSpec
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, ProblemList, suggestion
from raybench.extract.patches import Features
from raybench.formats import hpatches as files
from raybench.formats.hpatches import Split
from raybench.search.distances import MASKED_DISTANCES
from raybench.sources.patches import Source, items_of

LEVELS = ("e", "h", "t")
NUMBERS = range(files.MOST_NUMBER + 1)
EVERY_NUMBER = frozenset(NUMBERS)
TYPES = {"i_": "illumination", "v_": "viewpoint"}
NEEDS = "--tasks, and --data with --descriptor, or --features"


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


@dataclass(frozen=True)
class TaskFolder:
    """The chosen splits, in the order of `splits.json`, and those that were left out for want of their files."""

    uri: str
    splits: tuple[Split, ...]
    left_out: tuple[str, ...]
    digest: str

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.left_out:
            return ()
        return (f"splits without their files in --tasks were left out: {', '.join(self.left_out)}.",)


@dataclass(frozen=True)
class Layout:
    """Where images are: `items` (sequences, levels, numbers) in the source, `patches` (sequences, numbers) in each.

    `split_stride` is the distance between the images of one split and those of the next where each split has features
    of its own (see `steps.whiten`), else 0.
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
class Patches:
    """The patches of a job, found to be there."""

    job: Job[HPatchesOptions]
    source: Source
    descriptor: DescriptorSpec | None
    distance: str
    splits: tuple[Split, ...]
    layout: Layout

    @property
    def digests(self) -> dict[str, str]:
        own = {"descriptor": self.descriptor.digest} if self.descriptor else {}
        return {**own, "patches": self.source.digest}

    @property
    def split_names(self) -> str:
        """For a summary in one line."""
        return f"split{'s' * (len(self.splits) > 1)} {', '.join(split.name for split in self.splits)}"

    @property
    def facts(self) -> dict[str, Any]:
        """What a published figure must share to be comparable."""
        return {"splits": {split.name for split in self.splits}}

    def features(self, run: Run, wanted: NDArray[np.int32]) -> Features:
        """Descriptors of the wanted images (as `Layout.images` numbers them), post-processed if the job says so."""
        stride = self.layout.split_stride
        if not stride:
            images = np.unique(wanted).tolist()
            return features_of(run, self.job, self.source, self.descriptor, self.distance, images)
        train = [self.layout.items[self.layout.of(split.train), 0, 0] for split in self.splits]
        images = np.unique(np.concatenate([wanted % np.int32(stride), *train])).tolist()
        plain = features_of(run, self.job, self.source, self.descriptor, self.distance, images)
        return whitened(run, plain, train, np.unique(wanted).tolist())


def check_inputs(job: Job[HPatchesOptions]) -> None:
    """One place to enter, with what it needs."""
    if job.options.results:
        raise ConfigError(
            f"{job.benchmark}: --results: no published format for results of this protocol; "
            "give --descriptor with --data, or --features"
        )
    entries = [name for name in ("descriptor", "features") if getattr(job.options, name)]
    if len(entries) != 1:
        found = " and ".join(f"--{name}" for name in entries) or "none"
        raise ConfigError(f"{job.benchmark}: give one of --descriptor, --features; found {found}")
    if job.options.descriptor and not job.options.data:
        raise ConfigError(f"{job.benchmark}: --descriptor needs --data, the folder of SEQ/IM.png strips")
    if not job.options.tasks:
        raise ConfigError(f"{job.benchmark}: --tasks is missing, the folder that holds the split CSVs")


def read_folder(job: Job[HPatchesOptions], patterns: Sequence[str], problems: ProblemList) -> TaskFolder:
    """The splits that `--split` names, or all that have a file for each of the patterns (`{}` is the split's name)."""
    assert job.options.tasks is not None
    there = {entry.name for entry in storage.list_files(job.options.tasks)}
    listed = next((name for name in ("splits.json", "splits/splits.json") if name in there), None)
    if listed is None:
        reason = "has no splits.json, nor splits/splits.json" if storage.exists(job.options.tasks) else "does not exist"
        raise DataError(f"{job.options.tasks}: {reason}; --tasks is the folder that holds the split CSVs")
    data = storage.read(storage.join(job.options.tasks, listed))
    splits = files.read_splits(data, storage.join(job.options.tasks, listed))
    missing = {
        name: [file for file in (pattern.format(name) for pattern in patterns) if file not in there] for name in splits
    }
    chosen = _chosen(job, splits)
    if chosen is None:
        chosen = [name for name in splits if not missing[name]]
        if not chosen:
            wanted = ", ".join(pattern.format("S") for pattern in patterns)
            raise DataError(f"{job.options.tasks}: none of the splits {', '.join(splits)} has its files {wanted}")
        left_out = tuple(name for name in splits if name not in chosen)
    else:
        left_out = ()
        for name in chosen:
            for file in missing[name]:
                problems.add(f"{storage.join(job.options.tasks, file)}: is missing; --split {name} needs it")
        chosen = [name for name in chosen if not missing[name]]
    return TaskFolder(job.options.tasks, tuple(splits[name] for name in chosen), left_out, digest_of_bytes(data))


def open_patches(
    job: Job[HPatchesOptions], splits: tuple[Split, ...], needed: Mapping[str, frozenset[int]], problems: ProblemList
) -> Patches:
    """The job's source with the images that are needed, by sequence and number; what is not there is noted.

    Raises InputError if there is no such source, or no such descriptor.
    """
    source, descriptor = open_source(job)
    distance = chosen_distance(job, descriptor, MASKED_DISTANCES)
    whitening = job.options.post_processing == "pcapl"
    wanted = dict(needed)
    if whitening:
        _check_whitening(distance, splits, problems)
        for name in itertools.chain.from_iterable(split.train for split in splits):
            wanted[name] = wanted.get(name, frozenset()) | {0}
    layout = _locate(source, wanted, problems)
    if whitening:
        layout = dataclasses.replace(layout, split_stride=copy_stride(len(source.keys), job.shard_size))
    return Patches(job, source, descriptor, distance, splits, layout)


def note_out_of_range(
    file: str,
    patches: Patches,
    sequences: tuple[str, ...],
    column: tuple[NDArray[np.int32], NDArray[np.int32] | int, NDArray[np.int32]],
    problems: ProblemList,
) -> None:
    """Note the first line of a list whose patch is not there; `column` is sequence, number and patch of each line."""
    sequence, number, patch = column
    place = patches.layout.of(sequences)[sequence]
    count = patches.layout.patches[place, number]
    beyond = np.flatnonzero(patch >= count)
    if len(beyond):
        line = int(beyond[0])
        problems.add(
            f"{file}: line {line + files.FIRST_LINE}: patch {patch[line]} of {sequences[sequence[line]]} is out of "
            f"range; it has {count[line]} patches ({len(beyond):,} such lines)"
        )


def image_name(sequence: str, level: str, number: int) -> str:
    """`SEQ/IM` of an image."""
    return f"{sequence}/{level}{number}" if number else f"{sequence}/ref"


def type_of(sequence: str) -> str:
    """What changes within a sequence, by its name."""
    return TYPES.get(sequence[:2], "other")


def limit_notes(job: Job[HPatchesOptions], what: str) -> tuple[str, ...]:
    """The note that a limited table carries."""
    return () if job.limit is None else (f"LIMITED: only the first {job.limit:,} {what} were used.",)


def post_processing_notes(job: Job[HPatchesOptions]) -> tuple[str, ...]:
    """The note that a post-processed table carries."""
    pcapl = "post-processing: pcapl, whitened by the train part of each split."
    return (pcapl,) if job.options.post_processing == "pcapl" else ()


def _chosen(job: Job[HPatchesOptions], splits: Mapping[str, Split]) -> list[str] | None:
    asked = [name.strip() for name in ",".join(job.options.split).split(",") if name.strip()]
    for name in asked:
        if name not in splits:
            known = ", ".join(splits)
            raise ConfigError(f"--split {name}: unknown{suggestion(name, splits)}; splits.json has {known}")
    return [name for name in splits if name in asked] if asked else None


def _check_whitening(distance: str, splits: tuple[Split, ...], problems: ProblemList) -> None:
    if distance in ("hamming", "masked_L1"):
        problems.add(f"--post-processing pcapl: makes real-valued descriptors, which {distance} does not compare")
    for split in splits:
        if not split.train:
            problems.add(
                f"--post-processing pcapl: split {split.name} has no train part to learn from; leave it out of --split"
            )


def _locate(source: Source, needed: Mapping[str, frozenset[int]], problems: ProblemList) -> Layout:
    """Items and patch counts of the needed images; within a sequence all must have the same number of patches."""
    place = {name: i for i, name in enumerate(sorted(needed))}
    keys = {
        (place[name], at, number): image_name(name, level, number)
        for name in place
        for at, level in enumerate(LEVELS)
        for number in sorted(needed[name])
    }
    found = items_of(source, dict.fromkeys(keys.values()), problems)
    counts = source.counts(found.values(), problems)
    items = np.full((len(place), len(LEVELS), len(NUMBERS)), -1, np.int32)
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
    return Layout(place, items, patches, split_stride=0)
