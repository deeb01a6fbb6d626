"""What the 2016 HPatches benchmarks share: where their folders are, and how patches become features.

The layout is that of the HBench toolbox: `benchmarks/classification/*.benchmark`, `SEQ/IM.png`, `DESC/SEQ/IM.csv`,
`results/classification/DESC/*.results`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from raybench import storage
from raybench.benchmarks.job import Job, Option, device_for
from raybench.descriptors import DescriptorSpec, resolve
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, InputError, ProblemList, nearest
from raybench.extract.patches import Extract, Features, ReadVectors, extract_features
from raybench.search.distances import DISTANCES
from raybench.sources.patches import Source, Strips, VectorFiles

T = TypeVar("T")

MODEL_OPTIONS = (
    Option("input-size", "side in px to which patches are resized for a model file (default: as they are)", kind=int),
    Option("normalise", "input of a model file: none (0..255), unit (0..1), patch (per patch), or MEAN,STD"),
)
COMMON_NEEDS = "--benchmarks, and --data with --descriptor, or --features, or --results"


def check_inputs(job: Job) -> None:
    """Exactly one place to enter, with what it needs."""
    entries = [name for name in ("descriptor", "features", "results") if getattr(job, name)]
    if len(entries) != 1:
        found = " and ".join(f"--{name}" for name in entries) or "none"
        raise ConfigError(f"{job.benchmark}: give one of --descriptor, --features, --results; found {found}")
    if job.descriptor and not job.data:
        raise ConfigError(f"{job.benchmark}: --descriptor needs --data, the folder of SEQ/IM.png strips")
    models = [option.name for option in MODEL_OPTIONS if job.options.get(option.key) is not None]
    if models and not job.descriptor:
        raise ConfigError(f"{job.benchmark}: --{models[0]} goes with --descriptor torchscript:URI")
    if not job.benchmarks:
        raise ConfigError(f"{job.benchmark}: --benchmarks is missing, the folder that holds the .benchmark files")


def find_folder(root: str, kind: str, names: Iterable[str]) -> tuple[str, dict[str, storage.Entry]]:
    """The folder of a kind that holds one of these file names: `root` itself or the only one below a folder `kind`."""
    patterns = list(names)
    inside = posixpath.basename(root) == kind
    folders: dict[str, dict[str, storage.Entry]] = {}
    for entry in storage.list_files(root):
        folder, name = posixpath.split(entry.name)
        if folder == "" or inside or kind in folder.split("/"):
            folders.setdefault(folder, {})[name] = entry
    fitting = [f for f, files in folders.items() if any(fnmatchcase(name, p) for name in files for p in patterns)]
    if "" in fitting:
        fitting = [""]
    shown = patterns[0] if len(patterns) == 1 else f"{patterns[0]}, …"
    if not fitting:
        reason = f"holds no {kind} folder with {shown}" if storage.exists(root) else "does not exist"
        raise DataError(f"{root}: {reason}; name the folder itself, or a parent of one {kind} folder")
    if len(fitting) > 1:
        raise DataError(f"{root}: {len(fitting)} folders fit ({', '.join(sorted(fitting))}); name one of them")
    return storage.join(root, fitting[0]) if fitting[0] else root, folders[fitting[0]]


def chosen_tasks(files: Iterable[str], pattern: str | None, folder: str) -> list[str]:
    """The names of the `.benchmark` files that `--task GLOB` lets through, in name order."""
    names = sorted(name.removesuffix(".benchmark") for name in files if name.endswith(".benchmark"))
    chosen = [name for name in names if fnmatchcase(name, pattern or "*")]
    if not chosen:
        raise ConfigError(
            f"--task {pattern}: fits none of the {len(names)} tasks in {folder}{nearest(pattern or '', names)}"
        )
    return chosen


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


def open_source(job: Job) -> tuple[Source, DescriptorSpec | None]:
    """The patch images or vector files of a job that computes, and its descriptor if it has one."""
    if job.features:
        return VectorFiles.scan(job.features), None
    assert job.descriptor is not None and job.data is not None
    given = {key: job.options[key] for key in ("input_size", "normalise") if job.options.get(key) is not None}
    spec = resolve(job.descriptor, {**job.descriptor_args, **given})
    return Strips.scan(job.data, by_content=job.verify_inputs), spec


def chosen_distance(job: Job, descriptor: DescriptorSpec | None, known: tuple[str, ...] = DISTANCES) -> str:
    """`--distance`, else the descriptor's own, else L2. Binary descriptors go with hamming and nothing else."""
    asked: str | None = job.options.get("distance")
    own = descriptor.distance if descriptor else None
    if own is not None and own not in known:
        raise ConfigError(f"descriptor {job.descriptor}: its distance {own!r} is none of {', '.join(known)}")
    if asked and own and (asked == "hamming") != (own == "hamming"):
        raise ConfigError(f"--distance {asked}: descriptor {job.descriptor} is compared by {own}")
    return asked or own or "L2"


def descriptor_name(job: Job, descriptor: DescriptorSpec | None) -> str:
    """The name that result files and tables carry."""
    return descriptor.name if descriptor else posixpath.basename((job.features or job.results or "").rstrip("/"))


def features_of(
    run: Run, job: Job, source: Source, descriptor: DescriptorSpec | None, distance: str, wanted: list[int]
) -> Features:
    """Descriptors of the wanted images, computed or read."""
    if isinstance(source, VectorFiles):
        return extract_features(run, ReadVectors(source, distance, job.skip_bad_input), wanted, job.shard_size)
    assert descriptor is not None
    device = device_for(job, run, descriptor.uses_gpu)
    stage = Extract(source, descriptor, device, job.batch_size, job.skip_bad_input)
    return extract_features(run, stage, wanted, job.shard_size)
