"""Tasks over the demo's patches: classification in the manner of the published lists, all others as for own patches.

The published lists share their negatives between levels. So do these, and the levels have the same points and photos as
positives, so that nothing but the jitter tells the levels apart; lists drawn level by level would not show that.
"""

from __future__ import annotations

import itertools
import pathlib

import numpy as np

from raybench.benchmarks.list_sizes import ListSizes
from raybench.benchmarks.task_files import IMAGES_PER_LEVEL, LEVEL_LETTERS, hbench_tasks, hpatches_tasks

POSITIVE_PAIRS, NEGATIVE_PAIRS = 600, 3000  # per list
NEGATIVE_KINDS = ("diffseq", "sameseq")
LIST_SIZES = ListSizes(positives=1_000, negatives=1_000, queries=200, distractors=800)


def write_tasks(folder: pathlib.Path, counts: dict[str, int], rng: np.random.Generator) -> None:
    """Write `folder/benchmarks/` (2016), `folder/tasks/` (2017) and `folder/pairs/` (lists of patch pairs).

    `counts` are the patches of each sequence.
    """
    every = _images("".join(LEVEL_LETTERS.values()))
    patches = {sequence: dict.fromkeys(every, count) for sequence, count in sorted(counts.items())}
    drawn = hbench_tasks(patches, LIST_SIZES, seed=0)
    others = {name.replace("own", "demo"): text for name, text in drawn.items() if "classification" not in name}
    classification = _classification(counts, rng)
    for kind, files in (
        ("benchmarks", classification | others),
        ("pairs", _labelled_lists(classification)),
        ("tasks", hpatches_tasks(patches, LIST_SIZES, seed=0)),
    ):
        for name, text in files.items():
            path = folder / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def _classification(counts: dict[str, int], rng: np.random.Generator) -> dict[str, str]:
    """Lists of pairs and the tasks made of them, by path."""
    points = [(sequence, k) for sequence, count in counts.items() for k in range(count)]
    lists = {}
    for kind in NEGATIVE_KINDS:
        negatives = _negatives(points, kind == "sameseq", rng)
        lists[f"demo_{kind}_neg.pairs"] = [f"{a},{b},0" for a, b in negatives]
    couples = list(itertools.combinations(range(IMAGES_PER_LEVEL + 1), 2))  # two of the photos; the reference is 0
    total = len(points) * len(couples)
    drawn = rng.choice(total, size=min(POSITIVE_PAIRS, total), replace=False)
    for level, letter in LEVEL_LETTERS.items():
        images = _images(letter)
        positives = []
        for number in drawn.tolist():
            sequence, k = points[number // len(couples)]
            a, b = (f"{sequence}.{images[photo]}.{k}" for photo in couples[number % len(couples)])
            positives.append(f"{a},{b},1")
        lists[f"demo_{level}_pos.pairs"] = positives
        for kind in NEGATIVE_KINDS:
            lists[f"demo_{kind}_{level}.benchmark"] = [f"demo_{level}_pos.pairs", f"demo_{kind}_neg.pairs"]
    return {f"classification/{name}": "".join(f"{line}\n" for line in lines) for name, lines in lists.items()}


def _labelled_lists(classification: dict[str, str]) -> dict[str, str]:
    """Of each level its positives and the negatives of other sequences, as one list with a line of names."""
    lists = {}
    for level in LEVEL_LETTERS:
        parts = (classification[f"classification/demo_{kind}.pairs"] for kind in (f"{level}_pos", "diffseq_neg"))
        lists[f"demo_{level}.csv"] = "".join(["a,b,label\n", *parts])
    return lists


def _images(letters: str) -> list[str]:
    return ["ref"] + [f"{letter}{change}" for letter in letters for change in range(1, IMAGES_PER_LEVEL + 1)]


def _negatives(points: list[tuple[str, int]], same_sequence: bool, rng: np.random.Generator) -> list[tuple[str, ...]]:
    """Signatures of two points of one sequence, or of two sequences, each in any image."""
    images = _images("eht")
    pairs: list[tuple[str, ...]] = []
    while len(pairs) < NEGATIVE_PAIRS:
        two = [points[index] for index in rng.integers(len(points), size=2)]
        if two[0] != two[1] and (two[0][0] == two[1][0]) == same_sequence:
            chosen = [images[index] for index in rng.integers(len(images), size=2)]
            pairs.append(tuple(f"{sequence}.{image}.{k}" for (sequence, k), image in zip(two, chosen, strict=True)))
    return pairs
