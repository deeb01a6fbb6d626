"""Bytes of a large file by their place, asked for with rising places: headers that stand between long contents.

Read in blocks where places lie near each other, by themselves where they are far apart. Where the file lies, and what
a request costs there, the caller knows.
"""

from __future__ import annotations

from collections.abc import Callable

ReadRange = Callable[[int, int], bytes]  # bytes start..end of a file that has them all

ALONE_BYTES = 2**14  # read where the next place is far away: a header with all that may belong to it


class ForwardBytes:
    """A file of a known size; a place further on than `far_bytes` is worth a request of its own.

    >>> file = ForwardBytes(lambda start, end: b"abcdef"[start:end], 6, far_bytes=4)
    >>> file.take(1, 2), file.take(4, 9)
    (b'bc', b'ef')
    """

    def __init__(self, read_range: ReadRange, size_bytes: int, far_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._read_range, self._far_bytes = read_range, far_bytes
        self._block, self._start, self._last = b"", 0, 0

    def take(self, start: int, count: int) -> bytes:
        """These bytes, or fewer where the file ends."""
        end = min(start + count, self.size_bytes)
        if not self._start <= start <= end <= self._start + len(self._block):
            block_bytes = self._far_bytes if start - self._last <= self._far_bytes else ALONE_BYTES
            self._start = start
            self._block = self._read_range(start, min(start + max(count, block_bytes), self.size_bytes))
        self._last = end
        return self._block[start - self._start : max(end - self._start, 0)]
