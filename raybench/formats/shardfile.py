"""A shard file: named arrays with their schema, row count and checksums in one block of bytes. Never pickle.

Layout: 8 bytes magic, header length, header checksum, JSON header, then each array at a multiple of 64 bytes, so that a
mapped file gives aligned arrays without a copy. Every array has its own XXH3 checksum; the header has one, too. The
header also says which shard of which stage it is: a whole file in another's place is as wrong as a broken one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64_intdigest

from raybench.errors import reason_of

VERSION = 2
MAGIC = b"RAYBSH%02d" % VERSION
ALIGNMENT = 64
PREFIX = 24  # magic, length of the header, checksum of the header
KINDS = "biufSU"  # what may be stored: booleans, integers, floats, fixed-width strings

Arrays = dict[str, NDArray[Any]]


class BrokenShardFile(ValueError):
    """The bytes are no whole shard file; says what is wrong with them."""


def encode(arrays: Mapping[str, NDArray[Any]], label: str = "") -> bytes:
    """The bytes of a shard file with these arrays, and what it is; equal arrays and labels give equal bytes."""
    bodies = {name: _little_endian(name, array) for name, array in arrays.items()}
    columns = []
    offset = 0
    for name, body in bodies.items():
        columns.append(
            {
                "name": name,
                "dtype": body.dtype.str,
                "shape": body.shape,
                "offset": offset,
                "checksum": xxh3_64_intdigest(_octets(body)),
            }
        )
        offset = _aligned(offset + body.nbytes)
    rows = len(next(iter(bodies.values()))) if bodies else 0
    header = json.dumps({"label": label, "rows": rows, "size": offset, "columns": columns}).encode()
    header += b" " * (_aligned(PREFIX + len(header)) - PREFIX - len(header))
    start = [MAGIC, len(header).to_bytes(8, "little"), xxh3_64_intdigest(header).to_bytes(8, "little"), header]
    blocks: list[bytes | memoryview] = []
    for body in bodies.values():
        blocks += [_octets(body), bytes(_aligned(body.nbytes) - body.nbytes)]
    return b"".join([*start, *blocks])


def decode(data: bytes | memoryview, label: str = "") -> Arrays:
    """The arrays in a shard file, as read-only views into `data`; raises BrokenShardFile, as for another label."""
    view = memoryview(data)
    if len(view) < PREFIX or bytes(view[:8]) != MAGIC:
        raise BrokenShardFile("no shard file (wrong magic or cut short)")
    length = int.from_bytes(view[8:16], "little")
    header = view[PREFIX : PREFIX + length]
    if len(header) != length or xxh3_64_intdigest(header) != int.from_bytes(view[16:24], "little"):
        raise BrokenShardFile("its header is damaged")
    described = _described(bytes(header))
    if described.get("label") != label:
        raise BrokenShardFile(f"it is {described.get('label') or 'no shard of a stage'}, not {label}")
    body = view[PREFIX + length :]
    if len(body) != described["size"]:
        raise BrokenShardFile(f"its body has {len(body):,} bytes, its header says {described['size']:,}")
    return {column["name"]: _array(body, column) for column in described["columns"]}


def _described(header: bytes) -> dict[str, Any]:
    """What a header says; its checksum fits, so what makes no sense here was not damaged by chance."""
    try:
        described: dict[str, Any] = json.loads(header)
        for column in described["columns"]:
            dtype = np.dtype(column["dtype"])
            whole = [column["offset"], column["checksum"], *column["shape"]]
            if dtype.kind not in KINDS or not dtype.itemsize or not isinstance(column["name"], str):
                raise ValueError(f"array {column['name']!r} of {dtype}")
            if not all(isinstance(number, int) and number >= 0 for number in whole):
                raise ValueError(f"array {column['name']!r} has a size or place that is none")
        return {"size": -1, **described}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SyntaxError) as error:
        raise BrokenShardFile(f"its header makes no sense ({reason_of(error)})") from None


def _array(body: memoryview, column: dict[str, Any]) -> NDArray[Any]:
    dtype = np.dtype(column["dtype"])
    count = math.prod(column["shape"])
    block = body[column["offset"] : column["offset"] + count * dtype.itemsize]
    if len(block) != count * dtype.itemsize:
        raise BrokenShardFile(f"array {column['name']!r} ends behind the file")
    if xxh3_64_intdigest(block) != column["checksum"]:
        raise BrokenShardFile(f"the checksum of array {column['name']!r} does not match")
    array = np.frombuffer(block, dtype, count).reshape(column["shape"])
    array.flags.writeable = False
    return array


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind not in KINDS or array.ndim == 0:
        raise TypeError(f"array {name!r}: dtype {array.dtype}, shape {array.shape}, which a shard file can't hold")
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<"))


def _octets(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
