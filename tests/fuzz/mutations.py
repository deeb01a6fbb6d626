"""Damage, as an attacker or a bad disk makes it: seeded, so that input N of a reader is the same on every machine.

Blind damage seldom gets past a checksum. Where a format has one (PNG, zip, shard files), `REPACKED` damages what lies
behind it and makes the checksum fit again.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from xxhash import xxh3_64_intdigest

MOST_BYTES = 2**18  # of a damaged input, however often a block was repeated
EXTREMES = (0, 1, -1, 127, 255, 2**15, 2**16 - 1, 2**24, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1)
WIDTHS = {1: "B", 2: "H", 4: "I", 8: "Q"}
TOKENS = (
    *(b"nan", b"-1", b"1e999", b"99999999999999999999", b"0x10", b"\x00", b"\xff\xfe", b'"', b"'", b",,", b"\n", b"\r"),
    *(b"../", b"\xef\xbb\xbf", b" ", b"\t", b"\xc2\x85", b"\xe2\x80\xa8", b"true", b"null", b"[" * 3_000, b"{" * 50),
    *(b"*a ", b"&a ", b"!!python/object:os.system ", b"<<: *a", b"- " * 500, b"9" * 5_000, b"1_000", b"\xd9\xa3"),
    *(b" " * 150_000, b"," * 60_000, b"a" * 140_000, b"\n" * 60_000, b"0\n" * 60_000, b"i_a.ref," * 20_000),
)
Damage = Callable[[np.random.Generator, bytearray, Sequence[bytes]], bytearray]


def damaged(rng: np.random.Generator, seeds: Sequence[bytes], repack: str = "") -> bytes:
    """One of the seeds with one to six pieces of damage."""
    data = seeds[int(rng.integers(len(seeds)))]
    if repack and rng.random() < 0.6:
        data = REPACKED[repack](data, lambda inner: _damage(rng, inner, [inner]))
        if rng.random() < 0.8:
            return data
    return _damage(rng, data, seeds)


def _damage(rng: np.random.Generator, data: bytes, seeds: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3, 5]))):
        changed = DAMAGES[int(rng.integers(len(DAMAGES)))](rng, changed, seeds)[:MOST_BYTES]
    return bytes(changed)


def _place(rng: np.random.Generator, data: bytearray) -> int:
    """Somewhere; half of the time near an end, where headers and tables of contents are."""
    if not data:
        return 0
    near = min(len(data), 96)
    place = int(rng.integers(near)) if rng.random() < 0.35 else int(rng.integers(len(data)))
    return len(data) - 1 - place if rng.random() < 0.25 else place


def _flip(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    for _ in range(int(rng.integers(1, 5)) if data else 0):
        data[_place(rng, data)] ^= 1 << int(rng.integers(8))
    return data


def _extreme(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    width = int(rng.choice([1, 2, 4, 8]))
    value = int(rng.choice(np.array(EXTREMES, object))) % 2 ** (8 * width)
    at = _place(rng, data)
    coded = struct.pack(("<", ">")[int(rng.integers(2))] + WIDTHS[width], value)
    data[at : at + width] = coded
    return data


def _cut(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    return data[: _place(rng, data)] if rng.random() < 0.3 else data


def _drop(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at = _place(rng, data)
    del data[at : at + int(rng.integers(1, 64))]
    return data


def _repeat(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at, length = _place(rng, data), int(rng.integers(1, 256))
    times = int(rng.choice([1, 1, 2, 8, 200]))
    return data[:at] + data[at : at + length] * times + data[at:]


def _insert(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at = _place(rng, data)
    return data[:at] + rng.bytes(int(rng.integers(1, 32))) + data[at:]


def _token(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    at, over = _place(rng, data), int(rng.integers(0, 6))
    return data[:at] + TOKENS[int(rng.integers(len(TOKENS)))] + data[at + over :]


def _splice(rng: np.random.Generator, data: bytearray, seeds: Sequence[bytes]) -> bytearray:
    other = seeds[int(rng.integers(len(seeds)))]
    at, start = _place(rng, data), _place(rng, bytearray(other))
    piece = other[start : start + int(rng.integers(1, 512))]
    over = len(piece) if rng.random() < 0.5 else 0
    return data[:at] + piece + data[at + over :]


def _magic(rng: np.random.Generator, data: bytearray, _: Sequence[bytes]) -> bytearray:
    if rng.random() < 0.8:
        return data
    magic = MAGICS[int(rng.integers(len(MAGICS)))]
    return bytearray(magic) + data[len(magic) :]


MAGICS = (b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"II*\x00", b"MM\x00*", b"RIFF", b"BM", b"PIEH")
MAGICS += (b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"PAR1", b"\x80\x02", b"\x1f\x8b", b"P6\n")
DAMAGES: tuple[Damage, ...] = (_flip, _flip, _extreme, _extreme, _cut, _drop, _repeat, _insert, _token, _splice, _magic)


def _png(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The same PNG with one chunk changed and its checksum made anew."""
    chunks, at = [], 8
    while at + 12 <= len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + length]))
        at += 12 + length
    which = zlib.crc32(data[-64:] + change(b"12345678")) % max(len(chunks), 1)
    out = data[:8]
    for number, (kind, body) in enumerate(chunks):
        if number == which and kind == b"IDAT":
            body = zlib.compress(change(_inflated(body)))
        elif number == which:
            body = change(body)
        out += struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return out


def _inflated(body: bytes) -> bytes:
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def _zip(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The same archive with one member changed."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, OSError):
        return change(data)
    which = zlib.crc32(change(b"12345678")) % max(len(members), 1)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number, (info, body) in enumerate(members):
            kept = zipfile.ZipInfo(info.filename)
            kept.compress_type = info.compress_type
            archive.writestr(kept, change(body) if number == which else body)
    return out.getvalue()


def _shard(data: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """The same shard file with another header, whose checksum fits."""
    length = int.from_bytes(data[8:16], "little")
    header = change(data[24 : 24 + length])
    start = data[:8] + len(header).to_bytes(8, "little") + xxh3_64_intdigest(header).to_bytes(8, "little")
    return start + header + data[24 + length :]


REPACKED = {"png": _png, "zip": _zip, "shard": _shard}
