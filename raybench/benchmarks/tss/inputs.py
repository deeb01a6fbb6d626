"""Which pairs a TSS job scores: those of the truth that have a result, and what is said of the others.

A result without truth is skipped and said. Truth without a result is a problem, unless `--allow-missing`; then it is
left out and counted. A pair with a broken file is a problem, or left out with `--on-bad-input skip`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from raybench.benchmarks.job import Job
from raybench.benchmarks.tss.trees import (
    TRUE_FLOWS,
    ListedTree,
    PairFiles,
    ResultsTree,
    TreeImages,
    TruthTree,
    broken_bodies,
    list_results,
    list_truth,
    look_at_results,
    look_at_truth,
    note_empty_results,
)
from raybench.errors import DataError, ProblemList, Problems

if TYPE_CHECKING:
    from raybench.benchmarks.tss.tss import TssOptions

SAME_SCALE = 0.1  # apart at most: half of 301 px may be 150 or 151
LOOK_BYTES = 1e9  # up to so much is read through at the start, for NaN and damage; what is larger, the run itself finds


@dataclass(frozen=True)
class ChosenPairs:
    """The pairs of a run, the groups they are of, and what was left out."""

    groups: tuple[str, ...]
    truth: TruthTree
    images: TreeImages | None  # where a flow method or pictures need them
    results: ResultsTree | None
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def choose_pairs(job: Job[TssOptions], problems: ProblemList) -> ChosenPairs:
    """List the trees and look at every header; problems are noted, and the caller raises them."""
    truth, results = _listed(job)
    names = [name for own in by_group(truth.files).values() for name in own[: job.limit]]
    groups = tuple(by_group(names))
    notes, left_out = ProblemList(), ProblemList()
    if results is not None:
        note_empty_results(results, names)
        _note_unknown(truth, results, notes, left_out)
        names = _with_result(names, results, job.options.allow_missing, problems, notes, left_out)
    with_images = results is None or job.options.visualize
    looked = look_at_truth(truth, names, with_images)
    files = {name: PairFiles((), ()) for name in names} if results is None else look_at_results(results, names)
    good = [name for name in names if name in looked and name in files]
    pairs = [looked[name] for name in good]
    true_tree = TruthTree.of(truth, pairs, job.verify_inputs)
    images = TreeImages.of(truth, pairs, job.verify_inputs) if with_images else None
    found = ResultsTree.of(results, {name: files[name] for name in good}, job.verify_inputs) if results else None
    if results is not None:
        for line in size_notes(truth, results, {name: files[name] for name in good}):
            notes.add(line)
    trees = [tree for tree in (truth, results) if tree is not None]
    wrong = [line for name in names for tree in trees for line in tree.problems.get(name, [])]
    if job.skip_bad_input and wrong:
        if not good:
            raise Problems(wrong)
        notes.add(f"SKIPPED: {len(names) - len(good)} pairs that can't be read; the manifest lists them.")
    if not job.skip_bad_input and sum(tree.size_bytes(good) for tree in trees) <= LOOK_BYTES:
        wrong += broken_bodies(true_tree, found)
    for line in wrong:
        (left_out if job.skip_bad_input else problems).add(line)
    return ChosenPairs(groups, true_tree, images, found, tuple(notes.lines), tuple(left_out.lines))


def by_group(names: Iterable[str]) -> dict[str, list[str]]:
    """Names GROUP/PAIR by group, in their order."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.split("/")[0], []).append(name)
    return groups


def size_notes(truth: ListedTree, results: ListedTree, files: Mapping[str, PairFiles]) -> list[str]:
    """What is said of flows that have another size than the truth, and of those whose two sides are scaled unlike."""
    scaled, unlike = list[str](), list[str]()
    for name, own in files.items():
        found = [results.sizes[f"{name}/{file}"] for file in own.flows]
        true = [truth.sizes[f"{name}/{file}"] for file in TRUE_FLOWS[: len(found)]]
        if found != true:
            words = [f"{a[0]}x{a[1]} px for {b[0]}x{b[1]}" for a, b in zip(found, true, strict=True)]
            scaled.append(f"{name}: {' and '.join(words)}")
            factors = [np.divide(a, b) for a, b in zip(found, true, strict=True)]
            if np.abs(factors[0] / factors[1] - 1).max() > SAME_SCALE:
                unlike.append(name)
    notes = []
    if scaled:
        notes.append(f"SCALED: flows of {len(scaled)} pairs are brought to the truth's size ({scaled[0]}).")
    if unlike:
        notes.append(
            f"UNLIKE SIDES: flow1 and flow2 of {len(unlike)} pairs have different scales ({first_few(unlike)}). The "
            "tools take each to point into an image of the other's size, so that such pairs score near 0; give both "
            "at one scale."
        )
    return notes


def first_few(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more."""
    return ", ".join([*names[:most], *([f"… {len(names) - most} more"] if len(names) > most else [])])


def _listed(job: Job[TssOptions]) -> tuple[ListedTree, ListedTree | None]:
    options, problems = job.options, ProblemList()
    truth, results = None, None
    with problems.noting():
        truth = list_truth(options.data or "", job.limits)
    with problems.noting():
        results = list_results(options.results, job.limits) if options.results else None
    problems.check()
    assert truth is not None
    return truth, results


def _note_unknown(truth: ListedTree, results: ListedTree, notes: ProblemList, left_out: ProblemList) -> None:
    unknown = [name for name in results.files if name not in truth.files]
    if unknown:
        notes.add(f"SKIPPED: {len(unknown)} results have no ground truth ({first_few(unknown)}).")
    for name in unknown:
        left_out.add(f"{results.root}/{name}: no ground truth for it in {truth.root}; skipped")


def _with_result(
    names: Sequence[str],
    results: ListedTree,
    allow_missing: bool,
    problems: ProblemList,
    notes: ProblemList,
    left_out: ProblemList,
) -> list[str]:
    """The pairs that have a result; the others are problems, or counted in the notes."""
    missing = [name for name in names if name not in results.files]
    if len(missing) == len(names):
        raise DataError(
            f"{results.root}: no result for any of the {len(names):,} pairs; expected GROUP/PAIR as in --data"
        )
    if not allow_missing:
        for name in missing:
            problems.add(f"{results.root}/{name}: no result for this pair; add it, or give --allow-missing")
    else:
        every = by_group(names)
        for group, own in by_group(missing).items():
            folders = first_few([name.split("/")[1] for name in own])
            notes.add(
                f"MISSING: {len(own)} of {len(every[group])} pairs of {group} have no result ({folders}); left out."
            )
        for name in missing:
            left_out.add(f"{results.root}/{name}: no result for this pair; left out")
    return [name for name in names if name in results.files]
