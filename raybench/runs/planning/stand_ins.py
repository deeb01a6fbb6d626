"""Stand-ins: arrays of shards that a plan does not compute, made from a few items that it did.

Later stages of a probe need inputs of the right size and kind, not the right ones: rows of the sample come again and
again, with some noise, so that neither duplicates nor ties make a search easier or harder than it will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.engine.shards import Shard
from raybench.engine.stages import Stage
from raybench.formats.shardfile import Arrays

NOISE = 0.1  # relative, of floats
FLOOR = 1e-6  # added, so that zeros differ, too
INDEX_NAMES = ("index", "query")


@dataclass(frozen=True)
class Sample:
    """What a stage gave for some items, or for a part of a search: `rows` are their index."""

    items: int
    rows: NDArray[np.int64]
    arrays: Arrays


def rows_of(stage: Stage, shard: Shard) -> NDArray[np.int64]:
    """The index of each row that a shard publishes; its items, where the stage does not say otherwise."""
    rows = getattr(stage, "rows", None)
    found: NDArray[np.int64] = np.arange(shard.start, shard.stop) if rows is None else rows(shard)
    return found


def stand_in(stage: Stage, sample: Sample, shard: Shard, random: np.random.Generator) -> Arrays:
    """Arrays as the stage would publish them for a shard, by their size and kind."""
    counts = _counts(stage, sample, shard)
    rows = rows_of(stage, shard)
    arrays: Arrays = {}
    for name, array in sample.arrays.items():
        if counts is not None and name == "counts":
            arrays[name] = counts
        elif counts is not None and len(array) == sample.arrays["counts"].sum():
            arrays[name] = _noisy(_repeated(array, int(counts.sum())), random)
        elif name in INDEX_NAMES and len(array) == len(sample.rows):
            arrays[name] = rows
        elif len(array) == len(sample.rows):
            arrays[name] = _noisy(_repeated(array, len(rows)), random)
        else:
            arrays[name] = _noisy(_as_often(array, sample.items, len(shard)), random)
    return settled(stage, arrays, shard)


def settled(stage: Stage, arrays: Arrays, shard: Shard) -> Arrays:
    """Arrays of any shard, as if of this one; as they are, where the stage does not say what that takes."""
    found = getattr(stage, "settled", None)
    return arrays if found is None else dict(found(arrays, shard))


def _counts(stage: Stage, sample: Sample, shard: Shard) -> NDArray[np.int64] | None:
    """The rows of each item of the shard, where items have several."""
    known = sample.arrays.get("counts")
    if known is None or len(known) != sample.items:
        return None
    told = getattr(stage, "counts", None)
    counts: NDArray[np.int64] = _repeated(known, len(shard)) if told is None else told(shard)
    return counts


def _repeated(array: NDArray[Any], count: int) -> NDArray[Any]:
    """The rows of an array from the first on, as often as it takes for so many."""
    if not len(array):
        return array
    found: NDArray[Any] = array[np.arange(count) % len(array)]
    return found


def _as_often(array: NDArray[Any], items: int, wanted: int) -> NDArray[Any]:
    """An array with a fixed number of rows per item for another number of items; any other array as it is."""
    if not len(array) or len(array) % max(items, 1):
        return array
    return _repeated(array, len(array) // items * wanted)


def _noisy(array: NDArray[Any], random: np.random.Generator) -> NDArray[Any]:
    if array.dtype.kind == "f":
        noise = 1 + NOISE * (2 * random.random(array.shape, np.float32) - 1)
        noisy: NDArray[Any] = (array * noise + FLOOR * noise).astype(array.dtype, copy=False)
        return noisy
    if array.dtype == np.uint8 and array.ndim == 2:  # packed bits, or bytes: an eighth of the bits change
        bits = random.integers(0, 256, (3, *array.shape), np.uint8)
        changed: NDArray[Any] = array ^ (bits[0] & bits[1] & bits[2])
        return changed
    return array
