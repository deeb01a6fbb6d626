"""The runs that a comparison is about: found by the folders that the user names, and read."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.runs.compare_checks import FinishedRun, other_benchmark
from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.manifest import FILE_NAME
from raybench.runs.samples import read_samples
from raybench.table import figure_cells


def find_runs(named: Sequence[str], baseline: str | None) -> tuple[list[FinishedRun], int]:
    """The runs as they are named, and which of them is the baseline; problems of all are raised together."""
    given, base = list(named), 0
    if baseline is not None:
        places = [storage.checked(one) for one in given]
        if storage.checked(baseline) in places:
            base = places.index(storage.checked(baseline))
        else:
            given.insert(0, baseline)
    if len(given) < 2:
        raise ConfigError("compare: give at least two finished runs, by their output folders")
    outs = _single_runs([storage.checked(one) for one in given])
    return _read(outs, _names(outs), base), base


def _single_runs(uris: Sequence[str]) -> list[str]:
    """The folder of one run for each; of a folder that holds several (`run hbench`) the one that is like the others."""
    inside = {uri: _runs_inside(uri) for uri in uris}
    plain = [uri for uri in uris if not inside[uri]]
    if len(plain) == len(uris):
        return list(uris)
    if plain:
        wanted = {finished_manifest(uri).benchmark for uri in plain}
    else:
        wanted = set.intersection(*(set(names) for names in inside.values()))
    for uri, names in inside.items():
        if names and len(wanted & set(names)) != 1:
            raise ConfigError(
                f"{uri}: holds the runs {', '.join(names)}; name one of them, such as {storage.join(uri, names[0])}"
            )
    return [storage.join(uri, *(wanted & set(inside[uri]))) for uri in uris]


def _runs_inside(uri: str) -> list[str]:
    """The benchmarks of which a folder that is no run itself holds runs."""
    if storage.exists(storage.join(uri, FILE_NAME)):
        return []
    return [name for name in BENCHMARKS if storage.exists(storage.join(uri, name, FILE_NAME))]


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
