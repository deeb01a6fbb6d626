"""Which pairs a TSS job scores: those of the truth that have a result, and what is said of the others.

A result without truth is skipped and said. Truth without a result is a problem, unless `--allow-missing`; then it is
left out and counted. A pair with a broken file is a problem, or left out with `--on-bad-input skip`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from raybench.benchmarks.job import Job
from raybench.benchmarks.tss.tables import named
from raybench.benchmarks.tss.trees import (
    Found,
    PairFiles,
    ResultSet,
    TruthSet,
    broken_bodies,
    list_results,
    list_truth,
    look_at_results,
    look_at_truth,
    note_empty_results,
)
from raybench.errors import DataError, ProblemList, Problems

LOOK_BYTES = 1e9  # up to so much is read through at the start, for NaN and damage; what is larger, the run itself finds


@dataclass(frozen=True)
class Chosen:
    """The pairs of a run, the groups they are of, and what was left out."""

    groups: tuple[str, ...]
    truth: TruthSet
    results: ResultSet | None
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def choose_pairs(job: Job[Any], problems: ProblemList) -> Chosen:
    """List the trees and look at every header; problems are noted, and the caller raises them."""
    truth, results = _listed(job)
    keys = _limited(truth.entries, job.limit)
    groups = tuple(by_group(keys))
    notes, left_out = ProblemList(), ProblemList()
    if results is not None:
        note_empty_results(results, keys)
        _note_unknown(truth, results, notes, left_out)
        keys = _with_result(keys, results, bool(job.options.allow_missing), problems, notes, left_out)
    images = job.options.results is None or bool(job.options.visualize)
    pairs = look_at_truth(truth, keys, images)
    files = {key: PairFiles((), ()) for key in keys} if results is None else look_at_results(results, keys)
    good = [key for key in keys if key in pairs and key in files]
    trees = [found for found in (truth, results) if found is not None]
    wrong = [line for key in keys for found in trees for line in found.problems.get(key, [])]
    truth_set = TruthSet.of(truth, [pairs[key] for key in good], images, job.verify_inputs)
    result_set = None
    if results is not None:
        result_set = ResultSet.of(results, {key: files[key] for key in good}, job.verify_inputs)
    if job.skip_bad_input and wrong:
        if not good:
            raise Problems(wrong)
        notes.add(f"SKIPPED: {len(keys) - len(good)} pairs that can't be read; the manifest lists them.")
    if not job.skip_bad_input and sum(found.size_bytes(good) for found in trees) <= LOOK_BYTES:
        wrong += broken_bodies(truth_set, result_set)
    for line in wrong:
        (left_out if job.skip_bad_input else problems).add(line)
    return Chosen(groups, truth_set, result_set, tuple(notes.lines), tuple(left_out.lines))


def by_group(keys: Iterable[str]) -> dict[str, list[str]]:
    """Keys GROUP/PAIR by group, in their order."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        groups.setdefault(key.split("/")[0], []).append(key)
    return groups


def _listed(job: Job[Any]) -> tuple[Found, Found | None]:
    problems = ProblemList()
    truth, results = None, None
    with problems.noting():
        truth = list_truth(job.options.data or "")
    with problems.noting():
        results = list_results(job.options.results) if job.options.results else None
    problems.check()
    assert truth is not None
    return truth, results


def _limited(keys: Iterable[str], limit: int | None) -> list[str]:
    """The first so many pairs of each group."""
    return [key for own in by_group(keys).values() for key in own[:limit]]


def _note_unknown(truth: Found, results: Found, notes: ProblemList, left_out: ProblemList) -> None:
    unknown = [key for key in results.entries if key not in truth.entries]
    if unknown:
        notes.add(f"SKIPPED: {len(unknown)} results have no ground truth ({named(unknown)}).")
    for key in unknown:
        left_out.add(f"{results.root}/{key}: no ground truth for it in {truth.root}; skipped")


def _with_result(
    keys: Sequence[str],
    results: Found,
    allow_missing: bool,
    problems: ProblemList,
    notes: ProblemList,
    left_out: ProblemList,
) -> list[str]:
    """The pairs that have a result; the others are problems, or counted in the notes."""
    missing = [key for key in keys if key not in results.entries]
    if len(missing) == len(keys):
        raise DataError(
            f"{results.root}: no result for any of the {len(keys):,} pairs; expected GROUP/PAIR as in --data"
        )
    if not allow_missing:
        for key in missing:
            problems.add(f"{results.root}/{key}: no result for this pair; add it, or give --allow-missing")
    else:
        every = by_group(keys)
        for group, own in by_group(missing).items():
            names = named([key.split("/")[1] for key in own])
            notes.add(
                f"MISSING: {len(own)} of {len(every[group])} pairs of {group} have no result ({names}); left out."
            )
        for key in missing:
            left_out.add(f"{results.root}/{key}: no result for this pair; left out")
    return [key for key in keys if key in results.entries]
