"""How much of a machine one input file may take, so that a few kB made by a stranger can't take all of it.

What published sets hold is far below. A job's options raise the two numbers of `Limits`; messages name these options.
Sources carry the limits to wherever a file is read. What is read is the same under any, so they are in no digest; what
is beyond them is found before a stage is planned.
"""

from __future__ import annotations

from dataclasses import dataclass

from raybench.errors import DataError

MOST_PIXELS = (
    2**27
)  # a picture of 11,585 x 11,585 px: some 1 GB while it is decoded. Those of DISC2021 have below 2**24
MOST_UNPACKED_BYTES = 2**32
MOST_DIMENSION = 2**20  # of a vector, of which a row at least is held
MOST_RATIO = 1_100  # of what a file says it holds to its own size; deflate ends at 1,032
FREE_BYTES = 2**26  # below this no ratio is asked for


@dataclass(frozen=True)
class Limits:
    """Pixels of one picture, mask, strip or flow; bytes of names or vectors that one file holds packed."""

    pixels: int = MOST_PIXELS
    unpacked_bytes: int = MOST_UNPACKED_BYTES

    def check_pixels(self, width: int, height: int, name: str) -> None:
        """Raise DataError if a picture has too many pixels.

        >>> Limits(pixels=100).check_pixels(20, 10, "a.png")
        Traceback (most recent call last):
        raybench.errors.DataError: a.png: 20 x 10 px, more than 100 in all; make it smaller, or raise --max-image-pixels
        """
        if width * height > self.pixels:
            raise DataError(self.pixel_problem(width, height, name))

    def pixel_problem(self, width: int, height: int, name: str) -> str:
        """What is said of a picture that has too many pixels."""
        found = f"{width} x {height} px, more than {self.pixels:,} in all"
        return f"{name}: {found}; make it smaller, or raise --max-image-pixels"

    def check_unpacked(self, size_bytes: int, name: str, what: str) -> None:
        """Raise DataError if what has to be held whole is too large."""
        if size_bytes > self.unpacked_bytes:
            raise DataError(
                f"{name}: {what} would take {size_bytes:,} bytes of memory, more than {self.unpacked_bytes:,}; "
                "is the file what it should be? If so, raise --max-unpacked-bytes"
            )


USUAL = Limits()


def check_ratio(said_bytes: int, file_bytes: int, name: str) -> None:
    """Raise DataError if a header says more than a file of this size can hold, however well it is compressed."""
    if said_bytes > max(MOST_RATIO * file_bytes, FREE_BYTES):
        raise DataError(
            f"{name}: says that it holds {said_bytes:,} bytes, which a file of {file_bytes:,} can't; it may be damaged"
        )
