"""The 2016 HPatches (HBench) matching files: `.benchmark` (image pairs), `.labels`, `.results`.

`.labels` and `.results` are blocks: a head `im_a,im_b`, then lines of one value per patch of `im_a`. All values of a
file are parsed at once; only a file that does not parse is walked line by line, to name the line that is wrong.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, quoted, suggestion
from raybench.formats.typed_text import typed_columns

IMAGE = re.compile(r"([^.,\s]+)\.([^.,\s]+)")


@dataclass(frozen=True)
class ImagePair:
    """Match every patch of image `a` to those of `b`; both are `SEQ/IM`."""

    a: str
    b: str

    @property
    def head(self) -> str:
        """The pair as files have it: `im_a,im_b`."""
        return f"{self.a},{self.b}".replace("/", ".")


@dataclass(frozen=True)
class PairMatches:
    """The K nearest targets of every reference patch of one pair, both (patches, K)."""

    index: NDArray[np.int64]
    distance: NDArray[np.float64]


@dataclass(frozen=True)
class _Block:
    pair: ImagePair
    rows: NDArray[np.float64]  # (lines, patches)


def read_image_pairs(data: bytes, name: str) -> tuple[ImagePair, ...]:
    """The pairs of a matching `.benchmark`, `im_a,im_b` per line, in order."""
    pairs: dict[ImagePair, int] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        images = [IMAGE.fullmatch(value.strip()) for value in line.split(",")]
        first, second = images if len(images) == 2 else (None, None)
        if not line.strip():
            continue
        if first is None or second is None:
            raise DataError(f"{name}: line {number}: expected im_a,im_b (each SEQ.IM), found {quoted(line.strip())}")
        pair = ImagePair(f"{first[1]}/{first[2]}", f"{second[1]}/{second[2]}")
        if pair in pairs:
            raise DataError(f"{name}: line {number}: the pair {pair.head} comes twice, first on line {pairs[pair]}")
        pairs[pair] = number
    if not pairs:
        raise DataError(f"{name}: empty; expected im_a,im_b a line")
    return tuple(pairs)


def read_true_matches(data: bytes, name: str, pairs: Sequence[ImagePair]) -> dict[ImagePair, NDArray[np.int64]]:
    """Where each patch of `im_a` is found in `im_b`; a second line of a block (the other direction) is not needed."""
    truth = {}
    for block in _blocks(data, name, pairs):
        if len(block.rows) not in (1, 2):
            raise DataError(
                f"{name}: pair {block.pair.head}: {len(block.rows)} lines, expected 1 or 2 with the indices of matches"
            )
        truth[block.pair] = _indices(block.rows[:1], block, name)[0]
    return truth


def read_matches(data: bytes, name: str, pairs: Sequence[ImagePair]) -> dict[ImagePair, PairMatches]:
    """The `.results` of these pairs: for n = 1..K a line of indices and a line of distances, any K from 1."""
    matches = {}
    depth = 0
    for block in _blocks(data, name, pairs):
        if not len(block.rows) or len(block.rows) % 2 or depth not in (0, len(block.rows)):
            expected = f"{depth}, as the first pair has" if depth else "2 for each of K neighbours"
            raise DataError(f"{name}: pair {block.pair.head}: {len(block.rows)} lines, expected {expected}")
        depth = len(block.rows)
        distance = block.rows[1::2]
        _check_distances(distance, block, name)
        index = _indices(block.rows[0::2], block, name)
        matches[block.pair] = PairMatches(np.ascontiguousarray(index.T), np.ascontiguousarray(distance.T))
    return matches


def write_matches(matches: Iterable[tuple[ImagePair, PairMatches]]) -> bytes:
    """`.results` with every digit that is needed to read the same distances back."""
    lines = []
    for pair, found in matches:
        lines.append(pair.head)
        for index, distance in zip(found.index.T.tolist(), found.distance.T.tolist(), strict=True):
            lines += [",".join(map(str, index)), ",".join(map(repr, distance))]
    return ("\n".join(lines) + "\n").encode()


def _blocks(data: bytes, name: str, pairs: Sequence[ImagePair]) -> list[_Block]:
    """The blocks of a file, one per pair, in the file's order."""
    known = {pair.head.encode(): pair for pair in pairs}
    lines = data.rstrip().replace(b"\r\n", b"\n").split(b"\n")
    heads = [number for number, line in enumerate(lines) if line.count(b",") == 1 and _head(line) in known]
    if not heads or heads[0]:
        raise DataError(f"{name}: line 1: expected a pair of the .benchmark such as {pairs[0].head}{_found(lines[0])}")
    bodies = [lines[start + 1 : stop] for start, stop in zip(heads, [*heads[1:], len(lines)], strict=True)]
    values = _values([line for body in bodies for line in body])
    if values is None:
        _explain(lines, set(heads), pairs, name)
    blocks: dict[ImagePair, _Block] = {}
    at = 0
    for start, body in zip(heads, bodies, strict=True):
        pair = known[_head(lines[start])]
        widths = {line.count(b",") + 1 for line in body}
        if len(widths) > 1:
            raise DataError(f"{name}: pair {pair.head}: lines of {min(widths)} and of {max(widths)} values")
        if pair in blocks:
            raise DataError(f"{name}: line {start + 1}: the pair {pair.head} comes twice")
        shape = len(body), max(widths, default=0)
        blocks[pair] = _Block(pair, values[at : at + shape[0] * shape[1]].reshape(shape))
        at += shape[0] * shape[1]
    missing = [pair.head for pair in pairs if pair not in blocks]
    if missing:
        raise DataError(f"{name}: the pair {missing[0]} is missing ({len(missing):,} such pairs)")
    return list(blocks.values())


def _head(line: bytes) -> bytes:
    return b",".join(value.strip() for value in line.split(b","))


def _found(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip()
    return f", found {text[:60]!r}" if text else ", found nothing"


def _numbers(text: bytes) -> NDArray[np.float64] | None:
    """All values of lines of values, or None if one of them is no number."""
    if b" " in text or b"\t" in text:
        bare = re.sub(rb"(?<=[,\n])[ \t]+", b"", text)
        text = re.sub(rb"(?<![ \t])[ \t]++(?=[,\n])", b"", bare).strip(b" \t")
    if not text:
        return np.zeros(0)
    columns = typed_columns(text.replace(b",", b"\n"), {"value": pa.float64()})
    return None if columns is None else np.asarray(columns[0], np.float64)


def _values(lines: list[bytes]) -> NDArray[np.float64] | None:
    """`_numbers`, or None also where a value is empty."""
    values = _numbers(b"\n".join(lines))
    whole = values is not None and len(values) == sum(line.count(b",") + 1 for line in lines)
    return values if whole else None


def _explain(lines: list[bytes], heads: set[int], pairs: Sequence[ImagePair], name: str) -> NoReturn:
    numbers = [number for number in range(len(lines)) if number not in heads]
    first = bisect.bisect_left(
        range(len(numbers) - 1), True, key=lambda last: _values([lines[n] for n in numbers[: last + 1]]) is None
    )
    number = numbers[first]
    values = [value.strip() for value in lines[number].decode("utf-8", "replace").split(",")]
    if len(values) == 2 and all(IMAGE.fullmatch(value) for value in values):
        head = ",".join(values)
        hint = suggestion(head, [pair.head for pair in pairs])
        raise DataError(f"{name}: line {number + 1}: the pair {head} is not in the .benchmark{hint}")
    wrong = next((value for value in values if _numbers(value.encode()) is None or not value), "")
    raise DataError(f"{name}: line {number + 1}: {quoted(wrong)} is no number")


def _indices(rows: NDArray[np.float64], block: _Block, name: str) -> NDArray[np.int64]:
    with np.errstate(invalid="ignore"):
        whole = rows.astype(np.int64)
    bad = np.argwhere((whole != rows) | (rows < 0) | (rows > np.iinfo(np.int32).max))
    if len(bad):
        rank, column = bad[0]
        raise DataError(
            f"{name}: pair {block.pair.head}: column {column + 1}, rank {rank + 1}: {rows[rank, column]:g} is no index "
            "of a patch"
        )
    return whole


def _check_distances(rows: NDArray[np.float64], block: _Block, name: str) -> None:
    bad = np.argwhere(~np.isfinite(rows))
    if len(bad):
        rank, column = bad[0]
        raise DataError(
            f"{name}: pair {block.pair.head}: column {column + 1}, rank {rank + 1}: the distance is "
            f"{rows[rank, column]} ({len(bad):,} such values); compute it again"
        )
    falling = np.argwhere(rows[1:] < rows[:-1])
    if len(falling):
        rank, column = falling[0]
        raise DataError(
            f"{name}: pair {block.pair.head}: column {column + 1}, rank {rank + 2}: the distance "
            f"{rows[rank + 1, column]:g} is below that of rank {rank + 1}, {rows[rank, column]:g}; "
            "neighbours must be in order of distance"
        )
