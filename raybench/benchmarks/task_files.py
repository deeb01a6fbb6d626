"""Task files for a user's own patch data, seeded, in the published formats: `.benchmark` sets and split CSVs.

Patch K of every image of a sequence is the same scene point; that is all the truth there is, so any folder of strips or
descriptors in the HPatches layout gets tasks of every kind. The same seed and data give the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.list_sizes import ListSizes
from raybench.errors import ConfigError, ProblemList
from raybench.formats.hpatches import MOST_NUMBER
from raybench.sources.patches import Source

LEVEL_LETTERS = {"easy": "e", "hard": "h", "tough": "t"}
IMAGES_PER_LEVEL = MOST_NUMBER
UNWRITABLE = re.compile(r'[,"\r\n]')  # task files are read line by line and split at commas, quotes or not
CHANGE_PREFIXES = {"illum": "i_", "view": "v_"}

Numbers = NDArray[np.int64]
PatchCounts = Mapping[str, Mapping[str, int]]  # sequence -> image -> how many patches


def patch_counts(source: Source) -> dict[str, dict[str, int]]:
    """How many patches the images of a source have; raises what is wrong with it."""
    problems = ProblemList()
    for sequence in sorted({key.split("/")[0] for key in source.keys}):
        if UNWRITABLE.search(sequence):
            problems.add(f"sequence {sequence!r}: has a comma, a quote or a line end, as no task file can; rename it")
    counts = source.counts(range(len(source.keys)), problems)
    problems.check()
    found: dict[str, dict[str, int]] = {}
    for key, count in sorted((source.keys[item], count) for item, count in counts.items()):
        sequence, image = key.split("/")
        found.setdefault(sequence, {})[image] = count
    return found


def hbench_tasks(patches: PatchCounts, sizes: ListSizes, seed: int) -> dict[str, str]:
    """The 2016 task files by their path: classification, matching and retrieval for each level that the data has."""
    files: dict[str, str] = {}
    for level, letter in LEVEL_LETTERS.items():
        names = ["ref", *(f"{letter}{number}" for number in range(1, IMAGES_PER_LEVEL + 1))]
        chosen = {sequence: images for sequence, images in patches.items() if all(name in images for name in names)}
        if not chosen:
            continue
        random = np.random.default_rng([seed, ord(letter)])
        files |= _classification(chosen, names, level, sizes, random)
        files |= _matching(chosen, names, level)
        files |= _retrieval(chosen, names, level, sizes, random, seed)
    if not files:
        raise ConfigError("no sequence has ref and e1..e5 (or h1..h5, t1..t5); tasks need them")
    return files


def hpatches_tasks(patches: PatchCounts, sizes: ListSizes, seed: int) -> dict[str, str]:
    """The 2017 task files by their path: splits `full`, `illum`, `view` (no train part) and `a` (a third to test)."""
    sequences = sorted(patches)
    random = np.random.default_rng(seed)
    test = sorted(random.permutation(sequences)[: max(len(sequences) // 3, 2)].tolist())
    train = [name for name in sequences if name not in test]
    splits: dict[str, dict[str, Any]] = {"a": {"name": "a", "train": train, "test": test}}
    for name, prefix in {"full": "", **CHANGE_PREFIXES}.items():
        members = [sequence for sequence in sequences if sequence.startswith(prefix)]
        if len(members) > 1:
            splits[name] = {"name": name, "test": members}
    files = {"splits.json": json.dumps(splits, indent=1) + "\n"}
    for name, split in splits.items():
        chosen = {sequence: patches[sequence] for sequence in split["test"]}
        files |= _split_files(name, chosen, sizes, np.random.default_rng([seed, *name.encode()]))
    return files


def _classification(
    patches: PatchCounts, names: list[str], level: str, sizes: ListSizes, random: np.random.Generator
) -> dict[str, str]:
    draw = _Draw(patches, random)
    lists = {
        f"own_{level}_pos": (draw.same_point(sizes.positives), 1),
        f"own_{level}_sameseq_neg": (draw.same_sequence(sizes.negatives), 0),
    }
    if len(patches) > 1:
        lists[f"own_{level}_diffseq_neg"] = (draw.other_sequence(sizes.negatives), 0)
    files = {}
    for name, (pairs, label) in lists.items():
        numbers = draw.two_images(len(pairs), len(names))
        lines = [
            f"{a}.{names[i]}.{k},{b}.{names[j]}.{m},{label}"
            for (a, k, b, m), (i, j) in zip(pairs, numbers.tolist(), strict=True)
        ]
        files[f"classification/{name}.pairs"] = _text(lines)
        if not label:
            kind = name.removesuffix("_neg").rpartition("_")[2]
            both = [f"own_{level}_pos.pairs", f"{name}.pairs"]
            files[f"classification/own_{kind}_{level}.benchmark"] = _text(both)
    return files


def _matching(patches: PatchCounts, names: list[str], level: str) -> dict[str, str]:
    files = {}
    for kind, start in CHANGE_PREFIXES.items():
        lines = [f"{s}.ref,{s}.{name}" for s in patches if s.startswith(start) for name in names[1:]]
        if lines:
            files[f"matching/own_{level}_{kind}.benchmark"] = _text(lines)
    return files


def _retrieval(
    patches: PatchCounts, names: list[str], level: str, sizes: ListSizes, random: np.random.Generator, seed: int
) -> dict[str, str]:
    count = min(sizes.pool_sequences, len(patches))
    pool = sorted(random.permutation(sorted(patches))[:count].tolist())
    draw = _Draw({sequence: patches[sequence] for sequence in pool}, random)
    queries = draw.points(min(sizes.queries, sum(draw.counts.tolist())))
    lines = [",".join(f"{sequence}.{name}" for sequence in pool for name in names)]
    lines += [f"{sequence}.ref.{patch}" for sequence, patch in queries]
    return {f"retrieval/own_{level}_{count}s_{seed:02d}.benchmark": _text(lines)}


def _split_files(name: str, patches: PatchCounts, sizes: ListSizes, random: np.random.Generator) -> dict[str, str]:
    draw = _Draw(patches, random)
    kinds = {
        "pos": draw.same_point(sizes.positives),
        "neg_intra": draw.same_sequence(sizes.positives),
        "neg_inter": draw.other_sequence(sizes.positives),
    }
    files = {}
    for kind, pairs in kinds.items():
        numbers = draw.two_images(len(pairs), IMAGES_PER_LEVEL + 1).tolist()
        lines = [f"{a},{i},{k},{b},{j},{m}" for (a, k, b, m), (i, j) in zip(pairs, numbers, strict=True)]
        files[f"verif_{kind}_split-{name}.csv"] = _text(["s1,t1,idx1,s2,t2,idx2", *lines])
    total = int(draw.counts.sum())
    for kind, count in (("queries", sizes.queries), ("distractors", sizes.distractors)):
        points = draw.points(min(count, total))
        files[f"retr_{kind}_split-{name}.csv"] = _text(
            ["s,idx", *(f"{sequence},{patch}" for sequence, patch in points)]
        )
    return files


class _Draw:
    """Random scene points and pairs of them; a sequence is as likely as it has points."""

    def __init__(self, patches: PatchCounts, random: np.random.Generator) -> None:
        self.names = sorted(patches)
        self.counts = np.array([min(patches[name].values()) for name in self.names], np.int64)
        self._random = random
        if len(self.names) < 1 or self.counts.max(initial=0) < 2:
            raise ConfigError("tasks need a sequence with at least two patches")

    def points(self, count: int) -> list[tuple[str, int]]:
        """Different points, in random order."""
        ends = np.cumsum(self.counts)
        chosen = self._random.choice(int(ends[-1]), count, replace=False)
        sequence = np.searchsorted(ends, chosen, side="right")
        return [(self.names[s], int(p)) for s, p in zip(sequence, chosen - (ends - self.counts)[sequence], strict=True)]

    def same_point(self, count: int) -> list[tuple[str, int, str, int]]:
        sequence, patch = self._some(count, self.counts)
        return self._pairs(sequence, patch, sequence, patch)

    def same_sequence(self, count: int) -> list[tuple[str, int, str, int]]:
        sequence, patch = self._some(count, np.where(self.counts > 1, self.counts, 0))
        step = 1 + (self._random.random(count) * (self.counts[sequence] - 1)).astype(np.int64)
        return self._pairs(sequence, patch, sequence, (patch + step) % self.counts[sequence])

    def other_sequence(self, count: int) -> list[tuple[str, int, str, int]]:
        if len(self.names) < 2:
            raise ConfigError("pairs of different sequences need at least two sequences")
        a, a_patch = self._some(count, self.counts)
        b = (a + self._random.integers(1, len(self.names), count)) % len(self.names)
        b_patch = (self._random.random(count) * self.counts[b]).astype(np.int64)
        return self._pairs(a, a_patch, b, b_patch)

    def two_images(self, count: int, images: int) -> Numbers:
        """Two different image numbers per pair."""
        first = self._random.integers(0, images, count)
        return np.stack([first, (first + self._random.integers(1, images, count)) % images], axis=1)

    def _some(self, count: int, weights: Numbers) -> tuple[Numbers, Numbers]:
        sequence = self._random.choice(len(self.names), count, p=weights / weights.sum())
        return sequence, (self._random.random(count) * self.counts[sequence]).astype(np.int64)

    def _pairs(self, a: Numbers, a_patch: Numbers, b: Numbers, b_patch: Numbers) -> list[tuple[str, int, str, int]]:
        columns = zip(a.tolist(), a_patch.tolist(), b.tolist(), b_patch.tolist(), strict=True)
        return [(self.names[i], p, self.names[j], q) for i, p, j, q in columns]


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
