"""Vectors that tell nothing apart: a network that collapsed, or never saw its weights, gives every patch the same.

A few images are looked at, evenly over those that are used: enough for a descriptor that is constant, at the cost of
reading some thousand rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.engine.run import Run
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays

CONSTANT = "CONSTANT:"
ADVICE = "figures of such vectors say nothing. Check the model's weights and its input."
IMAGES, ROWS_PER_IMAGE = 4, 256
NEARLY = 1e-6  # of the largest number: rows that differ by less are equal but for rounding
ZERO_SHARE = 0.99


def note_constant_vectors(run: Run, features: Features, images: list[int]) -> None:
    """Warn, below the table and aloud, if vectors of patches are all (nearly) equal, or (nearly) all zero."""
    few = sorted({images[len(images) * number // IMAGES] for number in range(IMAGES)}) if images else []
    looked = run.each(look_at_vectors, ["vectors of a few images"], features, few, version=1)
    found = run.read(looked, 0)["words"]
    if len(found):
        run.note(f"{CONSTANT} {found[0]}; {ADVICE}")


def look_at_vectors(_: str, features: Features, images: list[int]) -> Arrays:
    """What is wrong with the first rows of these images, in `words`, if anything is."""
    rows = [features.whole(image)[:ROWS_PER_IMAGE] for image in images]
    words = constant_words(np.concatenate([some for some in rows if len(some)] or [np.zeros((0, 1))]))
    return {"words": np.array([words] if words else [], np.str_)}


def constant_words(rows: NDArray[Any]) -> str | None:
    """Why rows tell nothing apart; None if they do.

    >>> constant_words(np.ones((3, 8)))
    'all 3 vectors looked at are equal'
    >>> constant_words(np.eye(3))
    """
    if len(rows) < 2 or not rows.shape[1]:
        return None
    zeros = int(np.count_nonzero(~rows.any(axis=1)))
    if zeros >= ZERO_SHARE * len(rows):
        return f"{zeros:,} of {len(rows):,} vectors looked at are zero"
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    spread, largest = float((high - low).max()), float(np.maximum(np.abs(low), np.abs(high)).max())
    if spread > NEARLY * largest:
        return None
    return f"all {len(rows):,} vectors looked at are {'nearly ' * (spread > 0)}equal"
