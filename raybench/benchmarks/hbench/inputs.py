"""What the 2016 HPatches benchmarks share: where their folders are, and how patches become features.

The layout is that of the HBench toolbox: `benchmarks/classification/*.benchmark`, `SEQ/IM.png`, `DESC/SEQ/IM.csv`,
`results/classification/DESC/*.results`.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from raybench import storage
from raybench.benchmarks.job import Job
from raybench.benchmarks.options import asked, option
from raybench.benchmarks.patches import MODEL_OPTIONS, PatchOptions
from raybench.descriptors import DescriptorSpec
from raybench.errors import ConfigError, DataError, suggestion

COMMON_NEEDS = "--benchmarks, and --data with --descriptor, or --features, or --results"


@dataclass(frozen=True)
class HBenchOptions(PatchOptions):
    """Options of the three 2016 benchmarks."""

    benchmarks: str | None = option(
        None, "folder that holds the .benchmark files, or a parent of one such folder", "input", is_uri=True
    )
    results: str | None = option(None, "folder of .results files in the published format", "input", is_uri=True)
    task: str | None = option(None, "only tasks whose name fits this glob", "protocol", default_words="all")


def check_inputs(job: Job[HBenchOptions]) -> None:
    """Exactly one place to enter, with what it needs."""
    entries = [name for name in ("descriptor", "features", "results") if getattr(job.options, name)]
    if len(entries) != 1:
        found = " and ".join(f"--{name}" for name in entries) or "none"
        raise ConfigError(f"{job.benchmark}: give one of --descriptor, --features, --results; found {found}")
    if job.options.descriptor and not job.options.data:
        raise ConfigError(f"{job.benchmark}: --descriptor needs --data, the folder of SEQ/IM.png strips")
    models = asked(job.options, MODEL_OPTIONS)
    if models and not job.options.descriptor:
        raise ConfigError(f"{job.benchmark}: {models[0]} goes with --descriptor torchscript:URI")
    if not job.options.benchmarks:
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
            f"--task {pattern}: fits none of the {len(names)} tasks in {folder}{suggestion(pattern or '', names)}"
        )
    return chosen


def descriptor_name(job: Job[HBenchOptions], descriptor: DescriptorSpec | None) -> str:
    """The name that result files and tables carry."""
    given = job.options.features or job.options.results or ""
    return descriptor.name if descriptor else posixpath.basename(given.rstrip("/"))
