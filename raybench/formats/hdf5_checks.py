"""What an HDF5 file must not do: lead to other files, unpack to more than it says, or send libhdf5 round in circles.

libhdf5 2.0 walks the objects of a global heap, where strings of any length lie, by sizes that the file gives. A size
of zero makes it walk for ever, one that wraps around makes it read elsewhere. So heaps are walked here before that.
"""

from __future__ import annotations

import io
import math
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import h5py
import numpy as np

from raybench.errors import DataError
from raybench.formats.limits import Limits

DEFLATE, SHUFFLE, CHECKSUM = 1, 2, 3
FILTERS = {DEFLATE, SHUFFLE, CHECKSUM, 4, 5, 6, 32_000}  # gzip, shuffle, fletcher32, szip, nbit, scaleoffset, lzf
DEFLATE_RATIO = 1_032  # the most that gzip unpacks a byte to
SMALL_BYTES = 2**26  # a chunk that can't unpack to more than this is not looked at
REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])  # to a string
HEAP = b"GCOL\x01\x00\x00\x00"
HEAP_HEADER = 16  # bytes, as of each object in it
MOST_OBJECTS = 2**16  # of a heap: the number of one has 16 bits
SCANNED_BYTES = 2**24  # looked through at once
INFLATED_BYTES = 2**20
SLACK_BYTES = 4_096  # that packing may add to a chunk, beside a 64th


def own_dataset(file: h5py.File, key: str, name: str, limits: Limits) -> Any:
    """The data set under a key, if it lies in this file and its chunks can be unpacked within the limits."""
    if not isinstance(file.get(key, getlink=True), h5py.HardLink):
        raise DataError(f"{name}: {key} is a link, and links are never followed; copy the data into the file")
    found = file[key]
    if not isinstance(found, h5py.Dataset):
        raise DataError(f"{name}: {key} is no data set; expected an array")
    if found.is_virtual or found.external:
        raise DataError(f"{name}: {key} lies in other files, which are never opened; copy the data into the file")
    filters = _filters(found)
    behind = [one for one in filters[filters.index(DEFLATE) + 1 :] if one != CHECKSUM] if DEFLATE in filters else []
    if not set(filters) <= FILTERS or behind:
        raise DataError(f"{name}: {key} is packed in an unusual way (filters {filters}); expected gzip, lzf or nothing")
    if found.chunks:
        limits.check_unpacked(_chunk_bytes(found), name, f"a chunk of {key}")
    return found


def check_chunks(dataset: Any, start: int, stop: int, name: str) -> None:
    """Raise DataError for a packed chunk of these rows that is, or unpacks to, more than a chunk.

    libhdf5 takes memory for as much as the file says or gzip gives.
    """
    filters = _filters(dataset)
    if not filters or dataset.id.get_storage_size() * DEFLATE_RATIO <= SMALL_BYTES:
        return
    steps = dataset.chunks
    firsts = [range(start // steps[0] * steps[0], stop, steps[0])]
    firsts += [range(0, size, step) for size, step in zip(dataset.shape[1:], steps[1:], strict=True)]
    for number in range(math.prod(len(one) for one in firsts)):
        place = np.unravel_index(number, [len(one) for one in firsts])
        corner = tuple(int(one[at]) for one, at in zip(firsts, place, strict=True))
        info = dataset.id.get_chunk_info_by_coord(corner)
        if info.byte_offset is None:
            continue
        _check_packed(info.size, _chunk_bytes(dataset), name)
        if DEFLATE in filters and info.size * DEFLATE_RATIO > max(SMALL_BYTES, _chunk_bytes(dataset)):
            _check_inflated(dataset.id.read_direct_chunk(corner)[1], _chunk_bytes(dataset), name)


def _check_packed(size: int, unpacked: int, name: str) -> None:
    if size > unpacked + unpacked // 64 + SLACK_BYTES:
        raise DataError(f"{name}: a chunk of {unpacked:,} bytes takes {size:,} packed; the file is damaged")


def _check_inflated(packed: bytes, most: int, name: str) -> None:
    inflater, total = zlib.decompressobj(), 0
    while packed and not inflater.eof:
        total += len(inflater.decompress(packed, INFLATED_BYTES))
        packed = inflater.unconsumed_tail
        if total > most:
            raise DataError(f"{name}: a chunk of {most:,} bytes unpacks to more than that; the file is damaged")


def _filters(dataset: Any) -> list[int]:
    made = dataset.id.get_create_plist()
    return [int(made.get_filter(number)[0]) for number in range(made.get_nfilters())]


def _chunk_bytes(dataset: Any) -> int:
    return int(math.prod(dataset.chunks) * dataset.dtype.itemsize)


def longest_string(opened: h5py.File, dataset: Any, file: BinaryIO, name: str) -> int:
    """The bytes of the longest string that a data set of strings may lead to.

    A global heap that can't be walked to its end is a DataError, and so is a string that is not in one, or longer than
    any in there: libhdf5 takes memory by what the reference to it says.
    """
    if opened.id.get_create_plist().get_sizes() != (8, 8):
        raise DataError(f"{name}: addresses of other than 8 bytes; expected a file as h5py writes it")
    heaps = {start: _longest(heap, f"{name}: the strings at byte {start:,}") for start, heap in _heaps(file, name)}
    longest, base = max(heaps.values(), default=1), opened.userblock_size
    starts = np.array([0, 2**64 - 1, *(start - base for start in heaps)], np.uint64)
    for raw in _raw_blocks(dataset, file, name):
        references = np.frombuffer(raw[: len(raw) // REFERENCE.itemsize * REFERENCE.itemsize], REFERENCE)
        if references["length"].max(initial=0) > longest or not np.isin(references["heap"], starts).all():
            raise DataError(f"{name}: a string that is not where it should be; the file is damaged, write it again")
    return longest


def _raw_blocks(dataset: Any, file: BinaryIO, name: str) -> Iterator[bytes]:
    """The bytes of a data set as they are before conversion; of packed chunks only those of gzip."""
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None:  # None: in the header itself, or never written
            file.seek(offset)
            yield file.read(dataset.size * REFERENCE.itemsize)
        return
    filters = [one for one in _filters(dataset) if one != CHECKSUM]
    if filters not in ([], [DEFLATE], [SHUFFLE], [SHUFFLE, DEFLATE]):
        return
    most = math.prod(dataset.chunks) * REFERENCE.itemsize
    for number in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(number)
        _check_packed(info.size, most, name)
        raw = dataset.id.read_direct_chunk(info.chunk_offset)[1]
        plain = (zlib.decompressobj().decompress(raw, most) if DEFLATE in filters else raw)[:most]
        count = len(plain) // REFERENCE.itemsize
        if SHUFFLE in filters:
            octets = np.frombuffer(plain[: count * REFERENCE.itemsize], np.uint8)
            plain = octets.reshape(REFERENCE.itemsize, count).T.tobytes()
        yield plain


def _longest(heap: bytes, where: str) -> int:
    words = np.frombuffer(heap[: len(heap) // 8 * 8], "<u8").tolist()
    at, longest = HEAP_HEADER // 8, 1
    for _ in range(MOST_OBJECTS):
        if at + 2 > len(words):
            return longest
        size = words[at + 1]  # of free space, whose number is 0, with this header
        taken = 2 + -(-size // 8) if words[at] & 0xFFFF else size // 8
        if taken < 2 or at + taken > len(words):
            raise DataError(f"{where} are damaged; write the file again")
        longest = max(longest, size)
        at += taken
    raise DataError(f"{where} are more than {MOST_OBJECTS:,}; write the file again")


def _heaps(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Every global heap: where it begins, and its bytes."""
    end = file.seek(0, io.SEEK_END)
    for start in _signatures(file, end):
        file.seek(start)
        size = int.from_bytes(file.read(HEAP_HEADER)[8:], "little")
        if not HEAP_HEADER <= size <= end - start:
            raise DataError(f"{name}: the strings at byte {start:,} end behind the file; it may be cut short")
        file.seek(start)
        yield start, file.read(size)


def _signatures(file: BinaryIO, end: int) -> Iterator[int]:
    for begin in range(0, end, SCANNED_BYTES):
        file.seek(begin)
        block = file.read(SCANNED_BYTES + len(HEAP) - 1)
        at = block.find(HEAP)
        while at >= 0:
            yield begin + at
            at = block.find(HEAP, at + 1)
