"""Sheets of copy detection's cases: rows of framed pictures with words below them, as one JPEG."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from raybench.visible import visible

PICTURE, WORDS_HEIGHT, GAP = (200, 150), 34, 12  # px
PER_LINE = 2  # cases beside each other
RIGHT_COLOUR, WRONG_COLOUR, OTHER_COLOUR = (26, 127, 55), (207, 34, 46), (87, 96, 106)


@dataclass(frozen=True)
class Panel:
    """One picture of a case: what it is, its name, and whether it is right (None: neither)."""

    label: str
    name: str
    image: NDArray[np.uint8] | None
    right: bool | None = None


def match_sheet(cases: Sequence[Sequence[Panel]]) -> bytes:
    """A JPEG with all cases; nothing if there are none."""
    if not cases:
        return b""
    across = max(len(case) for case in cases)
    width, height = across * (PICTURE[0] + GAP) + GAP, PICTURE[1] + WORDS_HEIGHT + 2 * GAP
    lines = -(-len(cases) // PER_LINE)
    sheet = Image.new("RGB", (width * min(PER_LINE, len(cases)), height * lines), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=13)
    for number, case in enumerate(cases):
        left, top = width * (number % PER_LINE), height * (number // PER_LINE)
        for column, panel in enumerate(case):
            _draw(sheet, draw, font, panel, (left + GAP + column * (PICTURE[0] + GAP), top + GAP))
    written = io.BytesIO()
    sheet.save(written, "JPEG", quality=85)
    return written.getvalue()


def _draw(sheet: Image.Image, draw: ImageDraw.ImageDraw, font: object, panel: Panel, at: tuple[int, int]) -> None:
    colour = OTHER_COLOUR if panel.right is None else RIGHT_COLOUR if panel.right else WRONG_COLOUR
    box = (at[0] - 2, at[1] - 2, at[0] + PICTURE[0] + 1, at[1] + PICTURE[1] + 1)
    draw.rectangle(box, outline=colour, width=2)
    if panel.image is not None:
        picture = Image.fromarray(panel.image)
        picture.thumbnail(PICTURE)
        sheet.paste(picture, (at[0] + (PICTURE[0] - picture.width) // 2, at[1] + (PICTURE[1] - picture.height) // 2))
    draw.text((at[0], at[1] + PICTURE[1] + 3), panel.label, fill=colour, font=font)  # type: ignore[arg-type]
    draw.text((at[0], at[1] + PICTURE[1] + 18), visible(panel.name), fill="black", font=font)  # type: ignore[arg-type]
