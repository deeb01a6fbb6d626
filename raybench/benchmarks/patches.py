"""What the benchmarks of patches share: options, how files of tasks are read, how patches become features."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.job import DescribedOptions, Job, device_for
from raybench.benchmarks.options import option
from raybench.descriptors import DescriptorSpec, resolve
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, InputError, ProblemList
from raybench.extract.patches import Extract, Features, ReadVectors, extract_features
from raybench.search.distances import DISTANCES
from raybench.sources.patches import Source
from raybench.sources.strips import Strips
from raybench.sources.vector_files import VectorFiles

T = TypeVar("T")

MODEL_OPTIONS = ("input_size", "normalise")
BY_DESCRIPTOR = "L2; hamming for binary descriptors"


@dataclass(frozen=True)
class PatchOptions(DescribedOptions):
    """Options of every benchmark of patches: vectors on disk, and what a model file is given."""

    features: str | None = option(
        None, "folder of descriptors on disk, SEQ/IM.csv (or .npy, .parquet, .h5)", "input", is_uri=True
    )
    input_size: int | None = option(
        None, "side in px to which patches are resized for a model file", "method", default_words="as they are", least=1
    )
    normalise: str | None = option(
        None,
        "input of a model file: none (0..255), unit (0..1), patch (per patch), or MEAN,STD",
        "method",
        default_words="none",
    )
    distance: str | None = option(
        None, "how descriptors are compared", "protocol", default_words=BY_DESCRIPTOR, choices=DISTANCES
    )


def read_files(
    folder: str, names: Sequence[str], parse: Callable[[bytes, str], T], problems: ProblemList
) -> tuple[dict[str, T], dict[str, str]]:
    """The parsed files by stem and their digests by name; what is wrong with one is noted."""

    def one(name: str) -> tuple[T | InputError, str]:
        uri = storage.join(folder, name)
        try:
            data = storage.read(uri)
            return parse(data, uri), digest_of_bytes(data)
        except InputError as error:
            return error, ""

    parsed: dict[str, T] = {}
    digests = {}
    for name, (value, digest) in zip(names, storage.in_parallel(one, names), strict=True):
        if isinstance(value, InputError):
            problems.add(value)
        else:
            parsed[name.rpartition(".")[0]] = value
            digests[name] = digest
    return parsed, digests


@dataclass(frozen=True)
class DescribedPatches:
    """The patches of a job that computes: where they are, what describes them, how descriptors are compared."""

    job: Job[PatchOptions]
    source: Source
    descriptor: DescriptorSpec | None  # None: the source holds vectors
    distance: str

    @classmethod
    def open(cls, job: Job[PatchOptions], known: tuple[str, ...] = DISTANCES) -> DescribedPatches:
        """The job's source, descriptor and distance; raises InputError if one of them is not there."""
        source, descriptor = open_source(job)
        return cls(job, source, descriptor, chosen_distance(job, descriptor, known))

    @property
    def digests(self) -> dict[str, str]:
        own = {"descriptor": self.descriptor.digest} if self.descriptor else {}
        return {**own, "patches": self.source.digest}

    @property
    def descriptor_name(self) -> str:
        """The name that result files carry."""
        return self.descriptor.name if self.descriptor else posixpath.basename(self.source.root.rstrip("/"))

    def features(self, run: Run, wanted: NDArray[np.int32]) -> Features:
        """Descriptors of the wanted images, computed or read."""
        images = np.unique(wanted).tolist()
        return features_of(run, self.job, self.source, self.descriptor, self.distance, images)


def open_source(job: Job[PatchOptions]) -> tuple[Source, DescriptorSpec | None]:
    """The patch images or vector files of a job that computes, and its descriptor if it has one."""
    if job.options.features:
        return VectorFiles.scan(job.options.features), None
    assert job.options.descriptor is not None and job.options.data is not None
    given = {key: value for key in MODEL_OPTIONS if (value := getattr(job.options, key)) is not None}
    spec = resolve(job.options.descriptor, {**job.options.descriptor_args, **given})
    return Strips.scan(job.options.data, by_content=job.verify_inputs), spec


def chosen_distance(
    job: Job[PatchOptions], descriptor: DescriptorSpec | None, known: tuple[str, ...] = DISTANCES
) -> str:
    """`--distance`, else the descriptor's own, else L2. Binary descriptors go with hamming and nothing else."""
    given: str | None = job.options.distance
    own = descriptor.distance if descriptor else None
    if own is not None and own not in known:
        raise ConfigError(f"descriptor {job.options.descriptor}: its distance {own!r} is none of {', '.join(known)}")
    if given and own and (given == "hamming") != (own == "hamming"):
        raise ConfigError(f"--distance {given}: descriptor {job.options.descriptor} is compared by {own}")
    return given or own or "L2"


def features_of(
    run: Run,
    job: Job[PatchOptions],
    source: Source,
    descriptor: DescriptorSpec | None,
    distance: str,
    wanted: list[int],
) -> Features:
    """Descriptors of the wanted images, computed or read."""
    if isinstance(source, VectorFiles):
        return extract_features(run, ReadVectors(source, distance, job.skip_bad_input), wanted, job.shard_size)
    assert descriptor is not None
    device = device_for(job, run, descriptor.uses_gpu)
    stage = Extract(source, descriptor, device, job.batch_size, job.skip_bad_input)
    return extract_features(run, stage, wanted, job.shard_size)


def limit_notes(job: Job[PatchOptions], what: str) -> tuple[str, ...]:
    """The note that a limited table carries."""
    return () if job.limit is None else (f"LIMITED: only the first {job.limit:,} {what} were used.",)
