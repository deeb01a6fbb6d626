"""Cases in pictures: what a run got wrong or right, drawn while its data is there, shown by any report later.

`pictures/cases.json` in the output folder has the words of every case, and its images as small JPEGs in base64. What is
read back is held to its form and to a size, since a run's folder may come from anywhere.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.errors import DataError, blamed_on_file
from raybench.table import Table

CASES = "pictures/cases.json"
KINDS = ("", "missed", "false alarm", "worst", "best", "right")
MOST_BYTES = 2**24  # of the file: some thousand images
PHOTO_PX, PHOTO_QUALITY = 240, 72  # some 7 KB each, so that a page of many runs stays small
WORDS = ("title", "caption", "kind", "unit", "row", "alt")


def thumbnail(image: NDArray[np.uint8] | None, most_px: int = PHOTO_PX, quality: int = PHOTO_QUALITY) -> bytes:
    """A small JPEG of RGB or grey levels; nothing of nothing."""
    if image is None:
        return b""
    from PIL import Image  # which help does without

    small = Image.fromarray(image)
    small.thumbnail((most_px, most_px))
    written = io.BytesIO()
    small.save(written, "JPEG", quality=quality, optimize=True)
    return written.getvalue()


def alt_text(panels: Iterable[PicturePanel]) -> str:
    """What the panels show, for who does not see them."""
    return "; ".join(f"{panel.label}: {panel.name}" for panel in panels)


def cases_text(pictures: Sequence[ReportPicture]) -> bytes:
    """Cases as the content of a file, which `parsed_cases` reads."""
    return json.dumps([asdict(picture) for picture in pictures], default=_in_base64).encode()


def _in_base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def parsed_cases(data: bytes, name: str) -> list[ReportPicture]:
    """The cases of a file; raises DataError."""
    if len(data) > MOST_BYTES:
        raise DataError(f"{name}: larger than {MOST_BYTES:,} bytes; no run writes such a file, run again")
    with blamed_on_file(f"{name}: not as a run leaves it", "run again with --overwrite"):
        return [_picture(case) for case in json.loads(data)]


def _picture(case: dict[str, Any]) -> ReportPicture:
    words = {name: _text(case[name]) for name in WORDS}
    if words["kind"] not in KINDS:
        raise ValueError(f"unknown kind {words['kind']!r}")
    return ReportPicture(**words, jpeg=_jpeg(case["jpeg"]), panels=tuple(map(_panel, case["panels"])))


def _panel(panel: dict[str, Any]) -> PicturePanel:
    right = panel["right"]
    if right is not None and not isinstance(right, bool):
        raise ValueError("right is neither true nor false")
    return PicturePanel(_text(panel["label"]), _text(panel["name"]), _jpeg(panel["jpeg"]), right)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where words are expected")
    return value


def _jpeg(value: Any) -> bytes:
    data = base64.b64decode(_text(value), validate=True)
    if data and not data.startswith(b"\xff\xd8"):
        raise ValueError("an image that is no JPEG")
    return data


def stored_cases(out: str, _: dict[str, Any], __: Sequence[Table]) -> list[ReportPicture]:
    """The cases of a finished run, if it drew any; raises DataError."""
    uri = storage.join(out, CASES)
    return parsed_cases(storage.read_start(uri, MOST_BYTES + 1), uri) if storage.exists(uri) else []
