"""The 2016 HPatches (HBench) retrieval files: `.benchmark` (pool, queries), `.labels`, `.results`.

A patch is one number, `patch_code`: the index of its image in the pool, then its index, so codes are in pool order. All
names of a file are parsed at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.errors import DataError, quoted, suggestion
from raybench.formats.hbench_matching import IMAGE

SIGNATURE = r"^(?P<image>[^.,\s]+\.[^.,\s]+)\.(?P<patch>\d{1,9})$"
PATCH_BITS = 32
LIST_LENGTH = 51  # of a query's results: itself and the 50 that are scored
NO_PATCH = -1  # pads rows of names to one length

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class RetrievalTask:
    """A retrieval `.benchmark`: images of the pool (`SEQ/IM`) and the query patches, by code."""

    pool: tuple[str, ...]
    queries: Codes


def patch_code(image: NDArray[np.int64], patch: NDArray[np.int64]) -> Codes:
    """The code of patches in pool images."""
    return (image << PATCH_BITS) | patch


def image_of(code: Codes) -> NDArray[np.int64]:
    """The indices of images in the pool; NO_PATCH stays itself."""
    return code >> PATCH_BITS


def patch_of(code: Codes) -> NDArray[np.int64]:
    """The indices of patches in their images."""
    return code & ((1 << PATCH_BITS) - 1)


def signature(pool: Sequence[str], code: int) -> str:
    """`SEQ.IM.K` of a code."""
    return f"{pool[code >> PATCH_BITS].replace('/', '.')}.{code & ((1 << PATCH_BITS) - 1)}"


def read_retrieval_task(data: bytes, name: str) -> RetrievalTask:
    """The pool on line 1, then one query per line."""
    lines = _lines(data)
    pool = tuple(_image(value.strip(), name) for value in lines[0].split(",")) if lines else ()
    if len(lines) < 2:
        raise DataError(f"{name}: {len(lines)} lines; expected the pool (im,im,…), then a query patch a line")
    twice, times = Counter(pool).most_common(1)[0]
    if times > 1:
        raise DataError(f"{name}: line 1: the image {twice.replace('/', '.')} comes twice in the pool")
    names, counts = _codes(lines[1:], pool, name)
    wide = np.flatnonzero(counts != 1)
    if len(wide):
        raise DataError(f"{name}: line {wide[0] + 2}: {counts[wide[0]]} names, expected one query patch")
    values, first = np.unique(names, return_index=True)
    if len(values) < len(names):
        again = min(set(range(len(names))) - set(first.tolist()))
        raise DataError(f"{name}: line {again + 2}: the query {signature(pool, int(names[again]))} comes twice")
    return RetrievalTask(pool, names)


def read_names(data: bytes, name: str, task: RetrievalTask) -> Codes:
    """A row of patches for each query, (queries, longest), padded with NO_PATCH: a `.labels` or `.results` file."""
    lines = _lines(data)
    pool = [value.strip().replace(".", "/") for value in lines[0].split(",")] if lines else []
    if pool != list(task.pool):
        raise DataError(f"{name}: line 1: not the pool of the .benchmark; expected its line 1 again")
    if len(lines) - 1 != len(task.queries):
        raise DataError(f"{name}: {len(lines) - 1:,} lines after the pool, expected {len(task.queries):,}, one a query")
    names, counts = _codes(lines[1:], task.pool, name)
    starts = np.cumsum(counts) - counts
    rows = np.full((len(counts), int(counts.max(initial=0))), NO_PATCH, np.int64)
    row = np.repeat(np.arange(len(counts)), counts)
    rows[row, np.arange(len(names)) - starts[row]] = names
    ordered = np.sort(rows, axis=1)
    twice = np.argwhere((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_PATCH))
    if len(twice):
        line, column = twice[0]
        raise DataError(f"{name}: line {line + 2}: {signature(pool, int(ordered[line, column]))} comes twice")
    return rows


def read_clusters(data: bytes, name: str, task: RetrievalTask) -> Codes:
    """A `.labels` file: the cluster of each query, itself included."""
    clusters = read_names(data, name, task)
    other = np.flatnonzero((clusters != task.queries[:, None]).all(axis=1))
    if len(other):
        query = signature(task.pool, int(task.queries[other[0]]))
        raise DataError(f"{name}: line {other[0] + 2}: the query {query} is not in its own cluster")
    return clusters


def read_lists(data: bytes, name: str, task: RetrievalTask) -> Codes:
    """A `.results` file: 51 names per query, itself first; fewer only where all have as many, as a small pool gives."""
    lists = read_names(data, name, task)
    if lists.shape[1] > LIST_LENGTH:
        longest = int((lists != NO_PATCH).sum(axis=1).argmax())
        raise DataError(f"{name}: line {longest + 2}: {lists.shape[1]} names, expected {LIST_LENGTH}")
    short = np.flatnonzero((lists == NO_PATCH).any(axis=1))
    if len(short):
        count = int((lists[short[0]] != NO_PATCH).sum())
        raise DataError(f"{name}: line {short[0] + 2}: {count} names, other lines have {lists.shape[1]}")
    other = np.flatnonzero(lists[:, 0] != task.queries)
    if len(other):
        query = signature(task.pool, int(task.queries[other[0]]))
        raise DataError(
            f"{name}: line {other[0] + 2}: expected the query {query} first, found "
            f"{signature(task.pool, int(lists[other[0], 0]))} ({len(other):,} such lines)"
        )
    return lists


def write_names(task: RetrievalTask, rows: Codes) -> bytes:
    """A `.results` file: the pool, then for each query its row of names, without the padding."""
    images = [image.replace("/", ".") for image in task.pool]
    lines = [",".join(images)]
    for image, patch in zip(image_of(rows).tolist(), patch_of(rows).tolist(), strict=True):
        lines.append(",".join(f"{images[i]}.{k}" for i, k in zip(image, patch, strict=True) if i >= 0))
    return ("\n".join(lines) + "\n").encode()


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").rstrip().splitlines()


def _image(value: str, name: str) -> str:
    if not IMAGE.fullmatch(value):
        raise DataError(f"{name}: line 1: {quoted(value)} is no image SEQ.IM; expected the pool, im,im,…")
    return value.replace(".", "/")


def _codes(lines: list[str], pool: Sequence[str], name: str) -> tuple[Codes, NDArray[np.int64]]:
    """The codes of all names on these lines, and how many there are on each. Line 1 of the file was the pool."""
    counts = np.array([line.count(",") + 1 for line in lines], np.int64)
    column = pc.utf8_trim_whitespace(pa.array(",".join(lines).split(","), pa.string())).dictionary_encode()
    parsed = pc.extract_regex(column.dictionary, SIGNATURE)
    images = parsed.field("image").dictionary_encode()
    index = {image.replace("/", "."): number for number, image in enumerate(pool)}
    indices = np.array([index.get(image, NO_PATCH) for image in images.dictionary.to_pylist()] or [NO_PATCH], np.int64)
    valid = np.asarray(parsed.is_valid())
    image = np.where(valid, indices[np.asarray(images.indices.fill_null(0))], NO_PATCH)
    patch = np.asarray(pc.cast(pc.if_else(parsed.is_valid(), parsed.field("patch"), "0"), pa.int64()))
    which = np.asarray(column.indices)
    bad = np.flatnonzero(image[which] < 0)
    if len(bad):
        _explain(column[int(bad[0])].as_py(), int(np.searchsorted(np.cumsum(counts), bad[0], "right")), pool, name)
    return patch_code(image, patch)[which], counts


def _explain(value: str, line: int, pool: Sequence[str], name: str) -> None:
    image = value.rpartition(".")[0]
    if not IMAGE.fullmatch(image) or not value.rpartition(".")[2].isdecimal():
        raise DataError(f"{name}: line {line + 2}: {quoted(value)} is no patch signature SEQ.IM.K")
    hint = suggestion(image, [known.replace("/", ".") for known in pool])
    raise DataError(f"{name}: line {line + 2}: {value} is of no image in the pool{hint}")
