"""The 2016 HPatches (HBench) files: patch strips, CSV descriptors, `.benchmark`, `.pairs`, `.labels`, `.results`.

Bytes to values and back, nothing else. Lists may have millions of lines: whole columns are parsed at once, and only
a file that does not parse is walked line by line, to name the line that is wrong.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.errors import DataError, blamed_on_file, quoted
from raybench.formats.limits import USUAL, Limits
from raybench.formats.typed_text import typed_columns
from raybench.formats.whole_numbers import whole_rows

PNG_HEADER_BYTES = 24
DELIMITERS = (";", "\t", ",", " ")
POINTS_TO_COMMAS = bytes.maketrans(b".", b",")
MOST_WIDTH = 2**16  # values of a line: each is a column to the parser
BLOCK_BYTES = 2**18  # of text, looked at once
SIGNATURE = re.compile(r"([^.,]+)\.([^.,]+)\.(\d+)")


@dataclass(frozen=True)
class PatchPairs:
    """The lines of a `.pairs` file; `*_image` counts into `images` (`SEQ/IM`), `*_patch` into that image's strip."""

    images: tuple[str, ...]
    a_image: NDArray[np.int32]
    a_patch: NDArray[np.int32]
    b_image: NDArray[np.int32]
    b_patch: NDArray[np.int32]
    labels: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.a_image)


@dataclass(frozen=True)
class Distances:
    """The lines of a classification `.results` file."""

    distances: NDArray[np.float64]
    labels: NDArray[np.bool_] | None


def strip_shape(header: bytes, name: str) -> tuple[int, int]:
    """Patches and their side in px of a strip, from the first bytes of its PNG file."""
    if len(header) < PNG_HEADER_BYTES or header[:8] != b"\x89PNG\r\n\x1a\n":
        raise DataError(f"{name}: no PNG file; a patch strip is a grey PNG, one patch above the other")
    width, height = struct.unpack(">II", header[16:24])
    if not width or height % width:
        raise DataError(
            f"{name}: {width}x{height} px; the height of a patch strip must be a multiple of its width "
            "(square patches stacked top to bottom)"
        )
    return height // width, width


def read_strip(data: bytes, name: str, limits: Limits = USUAL) -> NDArray[np.uint8]:
    """The patches of a strip, (n, side, side)."""
    from raybench.formats.images import open_image  # Pillow, which files of text do without

    count, side = strip_shape(data[:PNG_HEADER_BYTES], name)
    with blamed_on_file(f"{name}: can't be decoded"), open_image(data) as image:
        limits.check_pixels(*image.size, name)
        if image.mode.startswith("I"):
            raise DataError(f"{name}: 16 bits a pixel; expected 8-bit grey")
        return np.asarray(image.convert("L")).reshape(count, side, side)


def read_descriptors(data: bytes, name: str) -> NDArray[np.floating[Any]]:
    """A CSV of descriptors, one per line, (n, dim); the delimiter is found from the first line.

    float64, but for whole numbers that float32 holds exactly.
    """
    text = _ended(data)
    if not text:
        raise DataError(f"{name}: empty; expected one descriptor a line")
    delimiter = _delimiter(data)
    _width(_first_line(text), delimiter, name)
    whole = whole_rows(text, delimiter)
    return read_numbers(data, name, delimiter) if whole is None else whole


def read_numbers(data: bytes, name: str, delimiter: str) -> NDArray[np.float64]:
    """Lines of numbers of any kind, as many in each as in the first, (n, width); a line that is wrong is named."""
    width = _width(_first_line(data).strip(), delimiter, name)
    columns = _columns(data, delimiter, {str(i): pa.float64() for i in range(width)})
    if columns is None:
        rows = [_numbers(line, number, delimiter, width, name) for number, line in _lines(data.rstrip())]
        return np.array(rows, np.float64).reshape(-1, width)
    found = np.stack([column.to_numpy() for column in columns], axis=1)
    if len(found) != (lines := data.rstrip().count(b"\n") + 1):
        raise DataError(f"{name}: {len(found)} rows on {lines} lines; end each by \\n or \\r\\n")
    return found


def descriptors_shape(data: bytes, name: str) -> tuple[int, int]:
    """Lines of a CSV of descriptors and values per line, by counting alone; a file that can't be right is an error."""
    text = _ended(data)
    if not text:
        raise DataError(f"{name}: empty; expected one descriptor a line")
    delimiter = _delimiter(text)
    line_ends, delimiters = _counts(text, "\n", delimiter)
    lines = line_ends + (not text.endswith(b"\n"))
    width = _width(_first_line(text), delimiter, name)
    if delimiter != " " and delimiters != lines * (width - 1):
        read_descriptors(data, name)  # says which line
    if (b"n" in text or b"N" in text) and b"nan" in text.lower():
        number = text[: text.lower().index(b"nan")].count(b"\n") + 1
        raise DataError(f"{name}: line {number}: NaN or infinite value")
    return lines, width


def read_list_names(data: bytes, name: str) -> tuple[str, ...]:
    """The `.pairs` files that a classification `.benchmark` names, in order."""
    names = tuple(line.strip() for _, line in _lines(data) if line.strip())
    if not names:
        raise DataError(f"{name}: empty; expected the names of .pairs files, one a line")
    for number, found in enumerate(names, 1):
        if not found.endswith(".pairs") or "/" in found:
            raise DataError(f"{name}: line {number}: expected the name of a .pairs file, found {quoted(found)}")
    return names


def read_pairs(data: bytes, name: str) -> PatchPairs:
    """`patch_a,patch_b[,label]` per line; a patch is `SEQ.IM.K`."""
    labelled = _first_line(data).count(b",") == 2
    if not _ended(data):
        nothing = np.zeros(0, np.int32)
        return PatchPairs((), nothing, nothing, nothing, nothing, None)
    types = {"a": pa.string(), "a_im": pa.string(), "a_k": pa.int32(), "b": pa.string(), "b_im": pa.string()}
    types |= {"b_k": pa.int32()} | ({"label": pa.int8()} if labelled else {})
    columns = None
    cleaned = _trimmed(data, ",")
    if _separators(cleaned, b"..,..,\n" if labelled else b"..,..\n"):
        columns = _columns(cleaned.translate(POINTS_TO_COMMAS), ",", types, dictionary=True)
    if columns is None or any(int(np.min(columns[i])) < 0 for i in (2, 5)) or _nameless(columns):
        _explain(data, name, lambda line: _pair_problem(line, labelled))
    labels = _flags(np.asarray(columns[6]), name) if labelled else None
    images, codes = _image_codes([(columns[0], columns[1]), (columns[3], columns[4])])
    return PatchPairs(images, codes[0], columns[2].to_numpy(), codes[1], columns[5].to_numpy(), labels)


def read_labels(data: bytes, name: str) -> NDArray[np.bool_]:
    """0 or 1 per line, for all pairs of a task."""
    columns = _columns(data, ",", {"label": pa.int8()})
    if columns is None:
        _explain(
            data,
            name,
            lambda line: None if line.strip() in ("0", "1") else f"label {quoted(line.strip())} is not 0 or 1",
        )
    return _flags(np.asarray(columns[0]), name)


def read_distances(data: bytes, name: str, allow_nan: bool = False) -> Distances:
    """`distance[,label]` per line; NaN stands for a pair that was left out, and is an error unless allowed."""
    labelled = b"," in _first_line(data)
    types = {"distance": pa.float64()} | ({"label": pa.int8()} if labelled else {})
    columns = _columns(data, ",", types)
    if columns is None:
        _explain(data, name, lambda line: _distance_problem(line, labelled))
    distances = columns[0].to_numpy()
    bad = np.flatnonzero(np.isnan(distances))
    if len(bad) and not allow_nan:
        raise DataError(f"{name}: line {bad[0] + 1}: the distance is NaN ({len(bad):,} such lines); compute it again")
    return Distances(distances, _flags(np.asarray(columns[1]), name) if labelled else None)


def write_distances(distances: NDArray[np.float64], labels: NDArray[np.bool_] | None) -> bytes:
    """`distance,label` per line (or the distance alone), every digit that is needed to read the same number back."""
    if not len(distances):
        return b""
    if labels is None:
        lines = [repr(distance) for distance in distances.tolist()]
    else:
        ends = (",0", ",1")
        lines = [
            repr(distance) + ends[label] for distance, label in zip(distances.tolist(), labels.tolist(), strict=True)
        ]
    return ("\n".join(lines) + "\n").encode()


def _columns(
    data: bytes, delimiter: str, types: dict[str, pa.DataType], dictionary: bool = False
) -> list[pa.ChunkedArray] | None:
    """`typed_columns`, also of a file that is empty or has white space around its values."""
    data = data.rstrip()
    if not data:
        return [pa.chunked_array([[]], kind) for kind in types.values()]
    columns = typed_columns(data, types, delimiter)
    if columns is None:
        # White space around values is allowed, but rare: only then is it worth a second look.
        trimmed = _trimmed(data, delimiter)
        return _columns(trimmed, delimiter, types, dictionary) if trimmed != data else None
    return [c.dictionary_encode() if dictionary and c.type == pa.string() else c for c in columns]


def _delimiter(data: bytes) -> str:
    first = _first_line(data).decode("utf-8", "replace").strip()
    return next((candidate for candidate in DELIMITERS if candidate in first), ",")


def _width(line: bytes, delimiter: str, name: str) -> int:
    if (width := line.count(delimiter.encode()) + 1) > MOST_WIDTH:
        raise DataError(f"{name}: line 1: {width:,} values, expected at most {MOST_WIDTH:,}")
    return width


def _ended(data: bytes) -> bytes:
    """The text without white space at its end, or with one line end, so that most files are not copied."""
    return data if data.endswith(b"\n") and data[-2:-1].strip() else data.rstrip()


def _counts(text: bytes, *separators: str) -> list[int]:
    """How often each separator occurs; in blocks whose flags stay in the cache, several times as fast as `count`."""
    return [sum(int(np.count_nonzero(block == ord(one))) for block in _blocks(text)) for one in separators]


def _blocks(text: bytes) -> list[NDArray[np.uint8]]:
    octets = np.frombuffer(text, np.uint8)
    return [octets[start : start + BLOCK_BYTES] for start in range(0, len(octets), BLOCK_BYTES)]


def _first_line(data: bytes) -> bytes:
    return data[: data.find(b"\n")] if b"\n" in data else data


def _trimmed(data: bytes, delimiter: str) -> bytes:
    """The text without blanks around its values; in one pass, however many blanks stand together."""
    if delimiter == " " or b" " not in data:
        return data
    end = re.escape(delimiter).encode()
    bare = re.sub(rb"(?<=[%s\n]) +" % end, b"", data)
    return re.sub(rb"(?<! ) ++(?=%s|\r?\n)" % end, b"", bare).strip(b" ")


def _separators(data: bytes, line: bytes) -> bool:
    """Whether every line has just these points, commas and its end, in this order."""
    text = _ended(data)
    found = np.concatenate(
        [_points_and_ends(block) for block in _blocks(text if text.endswith(b"\n") else text + b"\n")]
    )
    expected = np.frombuffer(line, np.uint8)
    return len(found) % len(expected) == 0 and bool((found.reshape(-1, len(expected)) == expected).all())


def _points_and_ends(block: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The points, commas and line ends of some text; `take` picks several times as fast as a mask does."""
    return block.take(np.flatnonzero((block == ord(".")) | (block == ord(",")) | (block == ord("\n"))))


def _nameless(columns: list[pa.ChunkedArray]) -> bool:
    return any("" in columns[i].combine_chunks().dictionary.to_pylist() for i in (0, 1, 3, 4))


def _image_codes(
    pairs: list[tuple[pa.ChunkedArray, pa.ChunkedArray]],
) -> tuple[tuple[str, ...], list[NDArray[np.int32]]]:
    """Names `SEQ/IM` in order, and each column pair as numbers into them."""
    names: dict[str, int] = {}
    coded = []
    for sequences, images in pairs:
        sequence, image = sequences.combine_chunks(), images.combine_chunks()
        width = max(len(image.dictionary), 1)
        both = sequence.indices.to_numpy().astype(np.int64) * width + image.indices.to_numpy()
        present, code = np.unique(both, return_inverse=True)
        seen = [f"{sequence.dictionary[int(i // width)]}/{image.dictionary[int(i % width)]}" for i in present]
        numbers = np.array([names.setdefault(name, len(names)) for name in seen], np.int32)
        coded.append(numbers[code] if len(code) else np.zeros(0, np.int32))
    ordered = sorted(names)
    rank = np.zeros(len(names), np.int32)
    rank[[names[name] for name in ordered]] = np.arange(len(names), dtype=np.int32)
    return tuple(ordered), [rank[code] if len(code) else code for code in coded]


def _flags(labels: NDArray[np.int8], name: str) -> NDArray[np.bool_]:
    bad = np.flatnonzero((labels != 0) & (labels != 1))
    if len(bad):
        raise DataError(f"{name}: line {bad[0] + 1}: label {labels[bad[0]]} is not 0 or 1")
    flags: NDArray[np.bool_] = labels == 1
    return flags


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    return enumerate(data.decode("utf-8-sig", "replace").removesuffix("\n").split("\n"), 1)


def _numbers(line: str, number: int, delimiter: str, width: int, name: str) -> list[float]:
    fields = line.split() if delimiter == " " else line.strip().split(delimiter)
    if "_" in line:
        raise DataError(f"{name}: line {number}: no numbers")
    if len(fields) != width:
        raise DataError(f"{name}: line {number}: {len(fields)} values, the first line has {width}")
    try:
        return [float(value) for value in fields]
    except ValueError as error:
        advice = "; if it is a line of names, leave it out" if number == 1 else ""
        raise DataError(f"{name}: line {number}: {error}{advice}") from None


def _explain(data: bytes, name: str, problem: Callable[[str], str | None]) -> NoReturn:
    for number, line in _lines(data):
        found = "not UTF-8 text" if "\ufffd" in line else problem(line)
        if found:
            raise DataError(f"{name}: line {number}: {found}")
    raise DataError(f"{name}: does not parse")


def _pair_problem(line: str, labelled: bool) -> str | None:
    fields = [value.strip() for value in line.split(",")]
    if len(fields) != 2 + labelled:
        return f"expected patch_a,patch_b{',label' if labelled else ''}, found {quoted(line.strip())}"
    for value in fields[:2]:
        signature = SIGNATURE.fullmatch(value)
        if not signature or len(signature[3]) > 9:
            return f"{quoted(value)} is no patch signature SEQ.IM.K"
    return None if not labelled or fields[2] in ("0", "1") else f"label {quoted(fields[2])} is not 0 or 1"


def _distance_problem(line: str, labelled: bool) -> str | None:
    fields = line.strip().split(",")
    if len(fields) != 1 + labelled:
        return f"expected distance{',label' if labelled else ''}, found {quoted(line.strip())}"
    try:
        float(fields[0])
    except ValueError:
        return f"distance {quoted(fields[0])} is no number"
    return None if not labelled or fields[1].strip() in ("0", "1") else f"label {quoted(fields[1])} is not 0 or 1"
