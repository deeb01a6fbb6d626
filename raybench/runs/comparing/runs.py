"""The runs that a comparison is about: found by the folders that the user names, and read."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.runs.comparing.checks import FinishedRun, other_benchmark
from raybench.runs.finished import finished_manifest, read_tables, runs_below
from raybench.runs.manifest import FILE_NAME, read_manifest
from raybench.runs.samples import read_samples
from raybench.table import figure_cells


def find_runs(named: Sequence[str], baseline: str | None) -> tuple[list[FinishedRun], int]:
    """The runs as they are named, and which of them is the baseline; problems of all are raised together."""
    given = [storage.checked(one) for one in named]
    if baseline is not None and storage.checked(baseline) not in given:
        given.insert(0, storage.checked(baseline))
    chosen = _chosen(given) if given else {}
    outs = [out for uri in given for out in chosen[uri]]
    if len(outs) < 2:
        raise ConfigError("compare: give at least two finished runs, by their output folders")
    base = outs.index(chosen[given[0] if baseline is None else storage.checked(baseline)][0])
    return _read(outs, _names(outs), base), base


def _chosen(given: Sequence[str]) -> dict[str, list[str]]:
    """The runs that each folder stands for: itself, or those of one benchmark below it."""
    below: dict[str, dict[str, str]] = {uri: {} if _is_run(uri) else _benchmarks_below(uri) for uri in given}
    plain = [uri for uri, runs in below.items() if not runs]
    if plain:
        wanted = {finished_manifest(plain[0]).benchmark}
    else:
        wanted = set.intersection(*(set(runs.values()) for runs in below.values() if runs))
    chosen = {}
    for uri, runs in below.items():
        chosen[uri] = [out for out, benchmark in runs.items() if benchmark in wanted] if runs else [uri]
        if len(wanted) != 1 or not chosen[uri]:
            raise ConfigError(f"{uri}: holds runs of several benchmarks; name one run: {' or '.join(runs)}")
    return chosen


def _is_run(uri: str) -> bool:
    return storage.exists(storage.join(uri, FILE_NAME))


def _benchmarks_below(uri: str) -> dict[str, str]:
    """The benchmark of each run below a folder that is no run itself."""
    outs = [storage.join(uri, name) for name in runs_below(uri)]
    return {out: found.benchmark for out in outs if (found := read_manifest(out)) is not None}


def _names(outs: Sequence[str]) -> list[str]:
    """What runs are called: the folder's name, its path where two share one."""
    names = [posixpath.basename(out) for out in outs]
    shared = Counter(names)
    return [name if shared[name] == 1 else out for name, out in zip(names, outs, strict=True)]


def _read(outs: Sequence[str], names: Sequence[str], base: int) -> list[FinishedRun]:
    problems, found = ProblemList(), {}
    for out in dict.fromkeys(outs):
        with problems.noting():
            found[out] = finished_manifest(out)
    problems.check()
    first = found[outs[base]]
    others = [
        other_benchmark(first, outs[base], manifest, out)
        for out, manifest in found.items()
        if manifest.benchmark != first.benchmark
    ]
    if others:
        raise Problems(others)
    parts = {}
    for out, manifest in found.items():
        with problems.noting():
            main, benchmark = read_tables(out, manifest)[0], BENCHMARKS[manifest.benchmark].open()
            parts[out] = tuple(figure_cells(main, benchmark.keys, benchmark.figures)), read_samples(out, manifest)
    problems.check()
    return [FinishedRun(name, out, found[out], *parts[out]) for name, out in zip(names, outs, strict=True)]
