"""Zip archives: where each member lies, by the directory at the end, zip64 too; and a member's content from its bytes.

Stored and deflated members are read. What is encrypted, packed otherwise, spread over several files, or says more than
it can hold is refused by the directory alone. A member's own header says where its data begins, so it is read with it.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList
from raybench.formats.archive_members import DEFLATED, LINK_TO_NOTHING, STORED, MemberList, Members, Wanted, as_listed
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.limits import FREE_BYTES, USUAL, Limits, check_ratio

END, END_BYTES, MOST_COMMENT = b"PK\5\6", 22, 2**16
LOCATOR, LOCATOR_BYTES = b"PK\6\7", 20
END_64, END_64_BYTES = b"PK\6\6", 56
ENTRY, OWN = struct.Struct("<4s6H3I5H2I"), struct.Struct("<4s5H3I2H")  # in the directory; a member's own header
ENTRY_MARK, OWN_MARK = b"PK\1\2", b"PK\3\4"
BEHIND_BYTES = 24  # sizes and CRC again, behind a member's data
ENCRYPTED, UTF_8 = 0x1, 0x800  # flags
ZIP_64, UNICODE_PATH = 0x1, 0x7075  # extra fields
IN_ZIP_64 = 0xFFFFFFFF  # instead of a size or place
BYTES_PER_PIXEL = 8  # of a picture's file at most
HEAD_ROOM = 2**12  # for a member's own header, where only the start of its data is read
METHODS = {9: "deflate64", 12: "bzip2", 14: "LZMA", 93: "zstd", 95: "xz", 99: "AES"}
WINDOWS, UNIX, FILE_KIND, LINK_KIND = 0, 3, 0o170000, 0o120000
SHOWN = 5


@dataclass(frozen=True)
class Directory:
    """Where the directory lies, how many members it says there are, and by how much all places are shifted."""

    start: int
    size: int
    count: int
    shift: int


def zip_members(file: ForwardBytes, name: str, wanted: Wanted, limits: Limits = USUAL) -> Members:
    """The wanted members; a DataError if it is no zip, damaged, cut short or holds what can't be read."""
    directory = _directory(file, name)
    _check_before(file, name, directory.shift)
    found, starts, problems = MemberList(), array("q"), _Problems(name)
    at, end = directory.start, directory.start + directory.size
    while at < end:
        fixed = file.take(at, ENTRY.size)
        if len(fixed) < ENTRY.size or fixed[:4] != ENTRY_MARK:
            raise _damaged(name, f"no directory entry at byte {at:,}")
        fields = ENTRY.unpack(fixed)
        name_bytes, extra_bytes, comment_bytes = fields[10:13]
        tail = file.take(at + ENTRY.size, name_bytes + extra_bytes)
        member = as_listed(_with_slashes(_member_name(tail[:name_bytes], fields[3], tail[name_bytes:]), fields[1]))
        packed, size, start = _sizes(fields, tail[name_bytes:], name, member)
        starts.append(start + directory.shift)
        at += ENTRY.size + name_bytes + extra_bytes + comment_bytes
        if not wanted(member):
            found.others += not member.endswith("/")
            continue
        method = _method(fields, member, problems)
        problems.check_size(member, packed, size, limits)
        found.add(member, start + directory.shift, packed, size, method, fields[7])
    if len(starts) != directory.count and len(starts) % 2**16 != directory.count:
        raise _damaged(name, f"its directory has {len(starts):,} members, and says {directory.count:,}")
    problems.check()
    return found.members(_with_spans(found, np.array(starts, np.int64), directory.start, name))


def zip_content(data: bytes, name: str, method: int, size: int, crc: int, count: int | None = None) -> bytes:
    """A member's content by its bytes in the archive, or its first `count` bytes, fewer if `data` ends before them."""
    if len(data) < OWN.size or data[:4] != OWN_MARK:
        raise DataError(f"{name}: is not where the archive's directory says; copy or pack the archive again")
    name_bytes, extra_bytes = OWN.unpack_from(data)[-2:]
    packed = memoryview(data)[OWN.size + name_bytes + extra_bytes :]
    length = size if count is None else min(count, size)
    try:
        content = bytes(packed[:length]) if method == STORED else _inflated(packed, length)
    except zlib.error as error:
        raise DataError(f"{name}: can't be unpacked ({error}); copy or pack the archive again") from None
    if count is None and (len(content) != size or zlib.crc32(content) != crc):
        raise DataError(f"{name}: has another checksum than the archive's directory says; copy or pack it again")
    return content


def _inflated(packed: memoryview, length: int) -> bytes:
    """At most so many bytes of what is packed; zlib takes 0 for no limit."""
    return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, length) if length else b""


def _directory(file: ForwardBytes, name: str) -> Directory:
    tail_start = max(file.size_bytes - END_BYTES - MOST_COMMENT, 0)
    tail = file.take(tail_start, END_BYTES + MOST_COMMENT)
    at = tail.rfind(END)
    if at < 0 or at + END_BYTES > len(tail):
        if file.take(0, 4) in (OWN_MARK, b"PK\7\x08"):
            raise DataError(f"{name}: is cut short (a zip without its directory, which is at the end); copy it again")
        raise DataError(f"{name}: is no zip archive; pack it again with `zip -r`")
    disk, first_disk, _, count, size, start = struct.unpack_from("<4H2I", tail, at + 4)
    ends = tail_start + at
    locator = file.take(max(ends - LOCATOR_BYTES, 0), LOCATOR_BYTES)
    if locator[:4] == LOCATOR and ends >= LOCATOR_BYTES + END_64_BYTES:
        disk, stated, _ = struct.unpack_from("<IQI", locator, 4)
        places = (stated, ends - LOCATOR_BYTES - END_64_BYTES)  # the second where something stands before the zip
        ends, record = next(
            ((place, one) for place in places if (one := file.take(place, END_64_BYTES))[:4] == END_64), (0, b"")
        )
        if not record:
            raise _damaged(name, "no zip64 record where it should be")
        first_disk, count, size, start = struct.unpack_from("<I8xQQQ", record, 20)
    if disk or first_disk:
        raise DataError(f"{name}: is one part of a zip in several files; join them with `zip -s 0 … --out`")
    if size > ends or start > ends - size:
        raise _damaged(name, f"a directory of {size:,} bytes does not fit before byte {ends:,}")
    return Directory(ends - size, size, count, ends - size - start)


def _check_before(file: ForwardBytes, name: str, end: int) -> None:
    """Refuse another archive before the first member, as `cat` puts it there: a directory has its own members alone."""
    start = max(end - END_BYTES - MOST_COMMENT, 0)
    before = file.take(start, end - start)
    at = before.rfind(END)
    comment_bytes = int.from_bytes(before[at + END_BYTES - 2 : at + END_BYTES], "little")
    if at >= 0 and at + END_BYTES + comment_bytes == len(before):
        raise DataError(
            f"{name}: holds another archive before byte {end:,}; name each archive (name-{{000..009}}.zip), or pack "
            "all again as one with `zip -r`"
        )


def _member_name(stored: bytes, flags: int, extra: bytes) -> str:
    """UTF-8 if the flag or an extra field says so; else what fits, since many tools write it without a word."""
    unicode_path = next((body for kind, body in _extras(extra) if kind == UNICODE_PATH and body[:1] == b"\1"), b"")
    if unicode_path and zlib.crc32(stored) == int.from_bytes(unicode_path[1:5], "little"):
        stored = unicode_path[5:]
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored.decode(errors="surrogateescape") if flags & UTF_8 else stored.decode("cp437")


def _with_slashes(name: str, made_by: int) -> str:
    """A name from Windows, where some programs write its own separator, as it is unpacked."""
    return name.replace("\\", "/") if made_by >> 8 == WINDOWS and "/" not in name else name


def _extras(extra: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        found.append((kind, extra[at + 4 : at + 4 + length]))
        at += 4 + length
    return found


def _sizes(fields: tuple[int, ...], extra: bytes, name: str, member: str) -> tuple[int, int, int]:
    """Packed size, size and place, where need be from the zip64 field."""
    size, packed, start = fields[9], fields[8], fields[16]
    values = [size, packed, start]
    if IN_ZIP_64 in values:
        body = next((body for kind, body in _extras(extra) if kind == ZIP_64), b"")
        lacking = [number for number, value in enumerate(values) if value == IN_ZIP_64]
        if len(body) < 8 * len(lacking):
            raise _damaged(name, f"no zip64 sizes of {member}")
        for number, value in zip(lacking, struct.unpack_from(f"<{len(lacking)}Q", body), strict=True):
            values[number] = value
    if max(values) >= 2**62:
        raise _damaged(name, f"a size of {member} that is none")
    return values[1], values[0], values[2]


def _method(fields: tuple[int, ...], member: str, problems: _Problems) -> int:
    flags, method = fields[3], fields[4]
    if flags & ENCRYPTED:
        problems.encrypted(member)
    elif method not in (STORED, DEFLATED):
        problems.packed_otherwise(member, method)
    elif fields[1] >> 8 == UNIX and fields[15] >> 16 & FILE_KIND == LINK_KIND:
        return LINK_TO_NOTHING
    return method if method in (STORED, DEFLATED) else STORED


def _with_spans(found: MemberList, starts: NDArray[np.int64], end: int, name: str) -> NDArray[np.int64]:
    """The members' numbers, their packed sizes replaced by the bytes up to the next member, as far as one may reach."""
    numbers = found.numbers()
    if not len(numbers):
        return numbers
    borders = np.unique(np.append(starts[starts < end], end))
    start, packed = numbers[:, 0], numbers[:, 1]
    after = borders[np.minimum(np.searchsorted(borders, start, side="right"), len(borders) - 1)]
    wrong = np.flatnonzero((start < 0) | (after - start < OWN.size + packed) | (len(np.unique(start)) < len(start)))
    if len(wrong):
        raise _damaged(name, f"{found.names[int(wrong[0])]} overlaps the next member or the directory")
    numbers[:, 1] = np.minimum(after - start, OWN.size + 2 * MOST_COMMENT + packed + BEHIND_BYTES)
    return numbers


class _Problems:
    """What is wrong with members, the first few of each kind in words."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._kinds: dict[str, list[str]] = {}

    def encrypted(self, member: str) -> None:
        self._add("encrypted members", f"{self._name}: {member} is encrypted; pack it without a password")

    def packed_otherwise(self, member: str, method: int) -> None:
        by = METHODS.get(method, f"method {method}")
        words = f"{self._name}: {member} is packed by {by}, expected stored or deflated; pack it again with `zip -0 -r`"
        self._add("members packed otherwise", words)

    def check_size(self, member: str, packed: int, size: int, limits: Limits) -> None:
        """Note a member that unpacks to more than its bytes can hold, or than any picture takes."""
        where = f"{self._name}: {member}"
        problems = ProblemList()
        with problems.noting():
            check_ratio(size, packed, where)
        if not problems.lines and size > BYTES_PER_PIXEL * limits.pixels + FREE_BYTES:
            problems.add(f"{where}: unpacks to {size:,} bytes, more than a picture takes; raise --max-image-pixels")
        for line in problems.lines:
            self._add("members that are too large", line)

    def _add(self, kind: str, line: str) -> None:
        self._kinds.setdefault(kind, []).append(line)

    def check(self) -> None:
        problems = ProblemList()
        for kind, lines in self._kinds.items():
            problems.add_first(lines[:SHOWN], len(lines), self._name, kind)
        problems.check()


def _damaged(name: str, why: str) -> DataError:
    return DataError(f"{name}: is damaged ({why}); copy it again, or pack it again with `zip -r`")
