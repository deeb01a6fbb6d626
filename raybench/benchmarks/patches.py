"""What the benchmarks of patches share: options, how files of tasks are read, how patches become features."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.constant_vectors import note_constant_vectors
from raybench.benchmarks.job import DescribedOptions, Job, check_one_given, device_for, note_digest, trial_device
from raybench.benchmarks.options import asked, option
from raybench.descriptors.patch_descriptors import resolve
from raybench.descriptors.precision import DTYPES, Precision
from raybench.descriptors.specs import DescriptorSpec
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, InputError, ProblemList
from raybench.extract.patch_trial import PatchTrial
from raybench.extract.patches import Extract, Features, ReadVectors, extract_features
from raybench.parallel import in_parallel
from raybench.search.distances import DISTANCES
from raybench.sources.file_names import check_names
from raybench.sources.patches import Pictured, Source
from raybench.sources.strips import Strips
from raybench.sources.vector_files import VectorFiles

Parsed = TypeVar("Parsed")

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
        separator=",",
    )
    dtype: str = option("float32", "precision of a model file on a GPU", "method", choices=DTYPES)
    tf32: bool = option(False, "multiply a model's float32 as TF32 on a GPU: faster, to ten bits", "method")
    distance: str | None = option(
        None, "how descriptors are compared", "protocol", default_words=BY_DESCRIPTOR, choices=DISTANCES
    )

    @property
    def precision(self) -> Precision:
        return Precision(self.dtype, self.tf32)


def check_patch_inputs(job: Job[PatchOptions], keys: Sequence[str]) -> None:
    """That the job begins at exactly one of these options, and has patches if that is a descriptor."""
    check_one_given(job, keys)
    models = asked(job.options, (*MODEL_OPTIONS, "dtype", "tf32"))
    if models and not job.options.descriptor:
        raise ConfigError(f"{job.benchmark}: {models[0]} goes with --descriptor torchscript:URI")
    if job.options.descriptor and not job.options.data:
        raise ConfigError(f"{job.benchmark}: --descriptor needs --data, the folder of SEQ/IM.png strips")


def read_files(
    folder: str, names: Sequence[str], parse: Callable[[bytes, str], Parsed], problems: ProblemList
) -> tuple[dict[str, Parsed], dict[str, str]]:
    """The parsed files by stem and their digests by name; what is wrong with one is noted."""
    check_names(folder, names)

    def one(name: str) -> tuple[Parsed | InputError, str]:
        uri = storage.join(folder, name)
        try:
            data = storage.read(uri)
            return parse(data, uri), digest_of_bytes(data)
        except InputError as error:
            return error, ""

    parsed: dict[str, Parsed] = {}
    digests = {}
    for name, (value, digest) in zip(names, in_parallel(one, names), strict=True):
        if isinstance(value, InputError):
            problems.add(value)
        else:
            parsed[name.rpartition(".")[0]] = value
            digests[name] = digest
    return parsed, digests


@dataclass(frozen=True)
class DescribedStrips:
    """Pictures of patches, and what describes them."""

    strips: Pictured
    descriptor: DescriptorSpec


@dataclass(frozen=True)
class DescribedPatches:
    """The patches of a job that computes: vectors on disk or pixels to describe, and how descriptors are compared."""

    job: Job[PatchOptions]
    origin: Source | DescribedStrips
    distance: str

    @classmethod
    def open(cls, job: Job[PatchOptions], known: tuple[str, ...] = DISTANCES) -> DescribedPatches:
        """The job's patches; raises InputError if they, their descriptor or its distance are not there."""
        options = job.options
        if options.features:
            return cls.of_vectors(job, VectorFiles.scan(options.features, job.limits))
        if not options.descriptor or not options.data:
            raise ConfigError(f"{job.benchmark}: give --descriptor with --data, or --features")
        data = options.data
        return cls.of_pixels(job, lambda: Strips.scan(data, by_content=job.verify_inputs, limits=job.limits), known)

    @classmethod
    def of_vectors(cls, job: Job[PatchOptions], vectors: Source) -> DescribedPatches:
        """Patches whose vectors are there."""
        return cls(job, vectors, job.options.distance or "L2")

    @classmethod
    def of_pixels(
        cls, job: Job[PatchOptions], scan: Callable[[], Pictured], known: tuple[str, ...] = DISTANCES
    ) -> DescribedPatches:
        """Patches to describe, which are looked for once the descriptor is known to be one."""
        options = job.options
        given = {key: value for key in MODEL_OPTIONS if (value := getattr(options, key)) is not None}
        options.precision.check_device(job.device)
        descriptor = resolve(options.descriptor or "", {**options.descriptor_args, **given}, options.precision)
        return cls(job, DescribedStrips(scan(), descriptor), _chosen_distance(options, descriptor, known))

    @property
    def source(self) -> Source:
        return self.origin.strips if isinstance(self.origin, DescribedStrips) else self.origin

    @property
    def digests(self) -> dict[str, str]:
        own = {"descriptor": self.origin.descriptor.digest} if isinstance(self.origin, DescribedStrips) else {}
        return {**own, "patches": self.source.digest}

    @property
    def descriptor_name(self) -> str:
        """The name that result files carry."""
        if not isinstance(self.origin, DescribedStrips):
            name = posixpath.basename(self.origin.root.rstrip("/"))
            return name if name.strip(".") else "features"
        return self.origin.descriptor.name

    def features(self, run: Run, wanted: NDArray[np.int32]) -> Features:
        """Descriptors of the wanted images, computed or read; a warning if they tell nothing apart."""
        images = np.unique(wanted).tolist()
        features = self._extracted(run, images)
        note_constant_vectors(run, features, images)
        return features

    def _extracted(self, run: Run, images: list[int]) -> Features:
        if not isinstance(self.origin, DescribedStrips):
            return extract_features(run, self._stage("cpu"), images, self.job.shard_size)
        descriptor = self.origin.descriptor
        note_digest(run, descriptor)
        device = device_for(self.job, run, descriptor.uses_gpu)
        descriptor.precision.check_device(device)
        return extract_features(run, self._stage(device), images, self.job.shard_size)

    def trial(self, wanted: NDArray[np.int32]) -> PatchTrial:
        """What `check` tries of the wanted images; image -1 is none."""
        uses_gpu = isinstance(self.origin, DescribedStrips) and self.origin.descriptor.uses_gpu
        images = np.unique(wanted[wanted >= 0]).tolist()
        return PatchTrial(self._stage(trial_device(self.job, uses_gpu)), tuple(images))

    def _stage(self, device: str) -> Extract | ReadVectors:
        job = self.job
        if not isinstance(self.origin, DescribedStrips):
            return ReadVectors(self.origin, self.distance, job.skip_bad_input)
        return Extract(self.origin.strips, self.origin.descriptor, device, job.batch_size, job.skip_bad_input)


def _chosen_distance(options: PatchOptions, descriptor: DescriptorSpec, known: tuple[str, ...]) -> str:
    """`--distance`, else the descriptor's own. Binary descriptors go with hamming and nothing else."""
    given, own = options.distance, descriptor.distance
    if own not in known:
        raise ConfigError(f"descriptor {options.descriptor}: its distance {own!r} is none of {', '.join(known)}")
    if given and (given == "hamming") != (own == "hamming"):
        raise ConfigError(f"--distance {given}: descriptor {options.descriptor} is compared by {own}")
    return given or own
