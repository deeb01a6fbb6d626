"""Text of whole numbers, parsed as one array: descriptors such as SIFT's, four times as fast as by a CSV parser.

Only digits between separators are read here. Of all else (signs, points, blanks, lines of another length) nothing is
said but that it is not this: the caller reads it in the usual way, which also finds out what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FLOAT32_DIGITS = 7  # below 2**24, so that float32 holds each exactly
MOST_DIGITS = 15  # below 2**53, and float64
LINE_END = ord("\n")


def whole_rows(text: bytes, delimiter: str) -> NDArray[np.floating[Any]] | None:
    """The rows (n, dim) of lines of whole numbers without signs; None if the text is anything else.

    float32 where the digits fit it, else float64.

    >>> whole_rows(b"0,255\\n17,3\\n", ",").tolist()
    [[0.0, 255.0], [17.0, 3.0]]
    >>> whole_rows(b"0,255\\n-17,3\\n", ",") is None
    True
    """
    octets = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
    units = octets - np.uint8(ord("0"))  # what stands before the digits wraps around to above 9
    ends = np.flatnonzero(units > 9)  # the separator behind each value
    width = _width(octets.take(ends), ord(delimiter))
    gaps = ends[1:] - ends[:-1]
    most = int(max(gaps.max(initial=0) - 1, ends[0]))  # digits of a value
    if width is None or ends[0] == 0 or gaps.min(initial=2) < 2 or most > MOST_DIGITS:
        return None
    digits = np.empty(len(ends), np.uint8)  # of each value
    digits[0], digits[1:] = ends[0], gaps - 1
    at = ends - 1  # the last digit of each value, then the one before it …
    kind = np.float32 if most <= FLOAT32_DIGITS else np.float64
    values: NDArray[np.floating[Any]] = units.take(at).astype(kind)
    for place in range(1, most):
        at -= 1
        found = units.take(at, mode="wrap")
        found *= digits > place  # a value without a digit at this place met a neighbour's, or the text's other end
        values += found * kind(10**place)
    return values.reshape(-1, width)


def _width(separators: NDArray[np.uint8], delimiter: int) -> int | None:
    """Values per line, if every line has as many and no other separators are there."""
    width = int((separators == LINE_END).argmax()) + 1
    if len(separators) % width:
        return None
    lines = separators.reshape(-1, width)
    same = bool((lines[:, :-1] == delimiter).all() and (lines[:, -1] == LINE_END).all())
    return width if same else None
