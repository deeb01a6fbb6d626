"""Names of images that files of a set tell: the truth of Revisited Oxford and Paris, and plain lists."""

from __future__ import annotations

import json
from collections.abc import Callable

from raybench.errors import DataError


def revisited_names(data: bytes, name: str) -> list[str]:
    """The file names of references and queries: `imlist` and `qimlist`, which have no suffix."""
    try:
        truth = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: no JSON ({error})") from None
    images: list[str] = []
    for key in ("imlist", "qimlist"):
        found = truth.get(key) if isinstance(truth, dict) else None
        if not isinstance(found, list) or not all(isinstance(image, str) for image in found):
            raise DataError(f"{name}: expected a list of names under {key}")
        images += found
    return [f"{image}.jpg" for image in images]


def listed_names(data: bytes, name: str) -> list[str]:
    """One name per line."""
    try:
        return [line.strip() for line in data.decode().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: is no UTF-8 ({error}); expected one name per line") from None


READERS: dict[str, Callable[[bytes, str], list[str]]] = {"revisited": revisited_names, "lines": listed_names}
