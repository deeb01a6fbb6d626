"""What the 2016 HPatches benchmarks share: their options, where their folders are, tasks and finished results in them.

The layout is that of the HBench toolbox: `benchmarks/classification/*.benchmark`, `SEQ/IM.png`, `DESC/SEQ/IM.csv`,
`results/classification/DESC/*.results`. Everything that is wrong is noted, file by file, before anything is computed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from raybench import storage
from raybench.benchmarks.job import Job
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import DescribedPatches, PatchOptions, check_patch_inputs, read_files
from raybench.digests import digest_of
from raybench.errors import ConfigError, DataError, InputError, ProblemList, suggestion

KINDS = ("classification", "matching", "retrieval")

Content = TypeVar("Content")
Labels = TypeVar("Labels")
Result = TypeVar("Result")


@dataclass(frozen=True)
class HBenchOptions(PatchOptions):
    """Options of the three 2016 benchmarks."""

    benchmarks: str | None = option(
        None, "folder that holds the .benchmark files, or a parent of one such folder", "input", is_uri=True
    )
    results: str | None = option(None, "folder of .results files in the published format", "input", is_uri=True)
    task: str | None = option(None, "only tasks whose name fits this glob", "protocol", default_words="all")


@dataclass(frozen=True)
class TaskFiles(Generic[Content, Labels]):
    """What the folder of tasks says: the content of each `.benchmark`, and the labels of those that have some."""

    folder: str
    files: frozenset[str]  # all that are in the folder
    every: dict[str, Content]
    labels: dict[str, Labels]
    digest: str

    @property
    def sound(self) -> dict[str, Content]:
        """Tasks without those whose `.labels` are wrong: that is noted, and what would follow from it is not."""
        return {
            name: content
            for name, content in self.every.items()
            if name in self.labels or f"{name}.labels" not in self.files
        }


@dataclass(frozen=True)
class ResultFiles(Generic[Result]):
    """Finished results: what each `.results` file holds, by its stem."""

    folder: str
    parsed: dict[str, Result]
    digest: str


def check_inputs(job: Job[HBenchOptions]) -> str:
    """Exactly one place to enter, with what it needs. Returns the folder of the tasks, which is always needed."""
    check_patch_inputs(job, ("descriptor", "features", "results"))
    if not job.options.benchmarks:
        raise ConfigError(f"{job.benchmark}: --benchmarks is missing, the folder that holds the .benchmark files")
    return job.options.benchmarks


def patches_to_describe(job: Job[HBenchOptions], problems: ProblemList) -> DescribedPatches | None:
    """The patches to describe; None with `--results`, and where they are not there, which is noted."""
    try:
        return None if job.options.results else DescribedPatches.open(job)
    except InputError as error:
        problems.add(error)
        return None


def read_task_files(
    root: str,
    kind: str,
    pattern: str | None,
    parse: Callable[[bytes, str], Content],
    parse_labels: Callable[[bytes, str, Content], Labels],
    problems: ProblemList,
) -> TaskFiles[Content, Labels]:
    """The `.benchmark` files of the tasks that `--task GLOB` lets through, and their `.labels`, each parsed once."""
    folder, files, tasks = root, frozenset[str](), list[str]()
    with problems.noting():
        folder, files = _find_folder(root, kind, ["*.benchmark"])
        tasks = _chosen_tasks(files, pattern, folder)
    every, seen = read_files(folder, [f"{task}.benchmark" for task in tasks], parse, problems)
    labels, seen_labels = read_files(
        folder,
        [f"{task}.labels" for task in every if f"{task}.labels" in files],
        lambda data, uri: parse_labels(data, uri, every[_stem(uri)]),
        problems,
    )
    return TaskFiles(folder, files, every, labels, digest_of(seen, seen_labels))


def read_result_files(
    root: str,
    kind: str,
    choices: Mapping[str, Sequence[Sequence[str]]],
    parse: Callable[[bytes, str, str], Result],
    problems: ProblemList,
) -> ResultFiles[Result]:
    """The `.results` of each task, by its choices of stems: those of the first choice that is there as a whole.

    `parse` is given content, URI and stem of a file. A task without results is noted.
    """
    ranked = zip(*choices.values(), strict=True)  # the first choice of every task, then their second …
    stems = list(dict.fromkeys(stem for choice in ranked for own in choice for stem in own))
    folder, names = root, list[str]()
    with problems.noting():
        if stems:  # else what is wrong with the tasks is noted
            folder, files = _find_folder(root, kind, [f"{stem}.results" for stem in stems])
            names = _chosen_results(choices, files, folder, problems)
    parsed, seen = read_files(folder, names, lambda data, uri: parse(data, uri, _stem(uri)), problems)
    return ResultFiles(folder, parsed, digest_of(seen))


def results_pattern(kind: str, patches: DescribedPatches) -> str:
    """Where results are written: `{name}` is to be a task or list."""
    descriptor = patches.descriptor_name.replace("{", "{{").replace("}", "}}")
    return f"results/{kind}/{descriptor}/{{name}}.results"


def _find_folder(root: str, kind: str, patterns: Sequence[str]) -> tuple[str, frozenset[str]]:
    """The folder of a kind that holds one of these files: `root` itself or the only one below a folder `kind`."""
    inside = posixpath.basename(root) == kind
    if not inside and posixpath.basename(root) in KINDS:
        right = storage.join(posixpath.dirname(root), kind)
        advice = f"name {right}" if storage.exists(right) else f"name that of {kind}"
        raise DataError(f"{root}: is the folder of another benchmark; {advice}, or a parent of it")
    folders: dict[str, set[str]] = {}
    for entry in storage.list_files(root):
        folder, name = posixpath.split(entry.name)
        if folder == "" or inside or kind in folder.split("/"):
            folders.setdefault(folder, set()).add(name)
    fitting = [f for f, files in folders.items() if any(fnmatchcase(name, p) for name in files for p in patterns)]
    if "" in fitting:
        fitting = [""]
    shown = patterns[0] if len(patterns) == 1 else f"{patterns[0]}, …"
    if not fitting:
        path = storage.local_path(root)
        reason = "does not exist" if not storage.exists(root) else f"holds no {kind} folder with {shown}"
        reason = "is a file" if path is not None and path.is_file() else reason
        raise DataError(f"{root}: {reason}; name the folder itself, or a parent of one {kind} folder")
    if len(fitting) > 1:
        raise DataError(f"{root}: {len(fitting)} folders fit ({', '.join(sorted(fitting))}); name one of them")
    return storage.join(root, fitting[0]) if fitting[0] else root, frozenset(folders[fitting[0]])


def _chosen_tasks(files: Iterable[str], pattern: str | None, folder: str) -> list[str]:
    """The names of the `.benchmark` files that the pattern lets through, in name order."""
    names = sorted(name.removesuffix(".benchmark") for name in files if name.endswith(".benchmark"))
    chosen = [name for name in names if fnmatchcase(name, pattern or "*")]
    if not chosen:
        raise ConfigError(
            f"--task {pattern}: fits none of the {len(names)} tasks in {folder}{suggestion(pattern or '', names)}"
        )
    return chosen


def _chosen_results(
    choices: Mapping[str, Sequence[Sequence[str]]], files: frozenset[str], folder: str, problems: ProblemList
) -> list[str]:
    """The names of the `.results` files to read, each once."""
    names: dict[str, None] = {}
    for task, own in choices.items():
        sets = [[f"{stem}.results" for stem in stems] for stems in own]
        found = next((one for one in sets if files.issuperset(one)), None)
        if found is None:
            expected = ", or ".join(", ".join(one) for one in sets)
            problems.add(f"{folder}: no results of task {task}; expected {expected}")
        names |= dict.fromkeys(found or ())
    return list(names)


def _stem(uri: str) -> str:
    return posixpath.basename(uri).rpartition(".")[0]
