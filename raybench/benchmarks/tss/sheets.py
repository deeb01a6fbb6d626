"""Sheets of panels as JPEG: the overview of a pair, its thumb, and the contact sheet of a group.

An overview shows, per direction, source, warped image, true and found flow, error and foreground.

Made to answer at a glance: where is it wrong, by how much, and is it the flow, the mask or the pair (mirrored)?
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from raybench.benchmarks.tss.panels import GROUND, LOST, MOST_RATIO, OUTLINE, Pixels, error_colours, wheel_key
from raybench.visible import visible

PANEL_PX = 220
GAP_PX = 6
HEAD_PX = 54
LABEL_PX = 118
FOOT_PX = 40
THUMB_PX = 150
INK, PALE, ALARM = (27, 31, 36), (87, 96, 106), (178, 24, 43)
JPEG_QUALITY = 82

HEADINGS = (
    "image",
    "other image, warped to it",
    "true flow",
    "flow found",
    "error (blue: within T5)",
    "foreground found",
)


@dataclass(frozen=True)
class Direction:
    """One direction of a pair, drawn: its panels in the order of HEADINGS, None where there is nothing to show."""

    way: str  # 1 to 2
    panels: tuple[Pixels | None, ...]
    t5: float
    seg: float


@dataclass(frozen=True)
class Caption:
    """What is said above a pair."""

    name: str
    words: tuple[str, ...]  # MIRRORED PAIR, NO FLOW, masks estimated, …; capitals for what explains a low figure
    seg_name: str = "SegIUR"


def overview(directions: Sequence[Direction], caption: Caption) -> bytes:
    """The sheet of a pair as JPEG."""
    heights = [_panel_height(direction) for direction in directions]
    width = LABEL_PX + len(HEADINGS) * (PANEL_PX + GAP_PX)
    sheet = Image.new("RGB", (width, HEAD_PX + sum(heights) + GAP_PX * len(heights) + FOOT_PX), "white")
    draw = ImageDraw.Draw(sheet)
    name = visible(caption.name)
    draw.text((8, 6), name, INK, font=_font(18))
    x = 18 + draw.textlength(name, font=_font(18))
    for words in caption.words:
        draw.text((x, 9), words, ALARM if words.isupper() else PALE, font=_font(15))
        x += 14 + draw.textlength(words, font=_font(15))
    for column, heading in enumerate(HEADINGS):
        draw.text((LABEL_PX + column * (PANEL_PX + GAP_PX), HEAD_PX - 19), heading, PALE, font=_font(13))
    top = HEAD_PX
    for direction, height in zip(directions, heights, strict=True):
        _label(draw, direction, caption.seg_name, top)
        for column, panel in enumerate(direction.panels):
            place = (LABEL_PX + column * (PANEL_PX + GAP_PX), top)
            if panel is None:
                draw.rectangle((*place, place[0] + PANEL_PX, top + height), outline=(200, 205, 210))
                draw.text((place[0] + 12, top + 10), "absent", ALARM, font=_font(15))
            else:
                sheet.paste(shrunk(panel, PANEL_PX), place)
        top += height + GAP_PX
    _legend(sheet, draw, top)
    return jpeg(sheet)


def thumb(direction: Direction) -> bytes:
    """A strip of image, warped image and error, for the contact sheet."""
    chosen = [direction.panels[index] for index in (0, 1, 4)]
    height = round(_panel_height(direction) * THUMB_PX / PANEL_PX)
    strip = Image.new("RGB", (len(chosen) * THUMB_PX, height), (225, 228, 232))
    for column, panel in enumerate(chosen):
        if panel is not None:
            strip.paste(shrunk(panel, THUMB_PX), (column * THUMB_PX, 0))
    return jpeg(strip)


def contact_sheet(title: str, cells: Sequence[tuple[str, float, bytes]], columns: int = 3) -> bytes:
    """Thumbs of a group with name and T5, in the order given, as JPEG."""
    strips = [Image.open(io.BytesIO(data)) for _, _, data in cells]
    width, height = 3 * THUMB_PX + 10, max((strip.height for strip in strips), default=0) + 26
    rows = -(-len(cells) // columns)
    sheet = Image.new("RGB", (columns * width + 8, 40 + rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    draw.text((8, 8), visible(title), INK, font=_font(18))
    for index, ((name, t5, _), strip) in enumerate(zip(cells, strips, strict=True)):
        left, top = 8 + index % columns * width, 40 + index // columns * height
        draw.rectangle((left, top + 3, left + 12, top + 15), fill=_figure_colour(t5))
        draw.text((left + 18, top), f"{100 * t5:.1f}  {visible(name)}", INK, font=_font(13))
        sheet.paste(strip, (left, top + 20))
    return jpeg(sheet)


def shrunk(panel: Pixels, width: int) -> Image.Image:
    """The panel at this width; small ones are enlarged without smoothing."""
    size = (width, max(1, round(panel.shape[0] * width / panel.shape[1])))
    larger = width > panel.shape[1]
    return Image.fromarray(panel).resize(size, Image.Resampling.NEAREST if larger else Image.Resampling.BOX)


def jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=JPEG_QUALITY)
    return file.getvalue()


def _panel_height(direction: Direction) -> int:
    first = direction.panels[0]
    assert first is not None, "the image itself is always there"
    height, width = first.shape[:2]
    return max(1, int(0.5 + height * PANEL_PX / width))


def _label(draw: ImageDraw.ImageDraw, direction: Direction, seg_name: str, top: int) -> None:
    draw.text((8, top + 2), direction.way, INK, font=_font(20))
    for line, (name, value) in enumerate((("T5 = PCK@0.05", direction.t5), (seg_name, direction.seg))):
        y = top + 34 + line * 50
        draw.text((8, y), name, PALE, font=_font(12))
        draw.text((8, y + 14), f"{100 * value:.1f} %", _figure_colour(value), font=_font(22))


def _legend(sheet: Image.Image, draw: ImageDraw.ImageDraw, top: int) -> None:
    """The error scale below its column, the wheel below the flows, the marks below the rest."""
    error = LABEL_PX + 4 * (PANEL_PX + GAP_PX)
    ramp = error_colours(np.tile(np.linspace(0, MOST_RATIO, PANEL_PX), (10, 1)))
    sheet.paste(Image.fromarray(ramp), (error, top + 2))
    for value, words in ((0, "0"), (1, "T5"), (2, "2 T5"), (MOST_RATIO, "4 T5+")):
        x = error + value / MOST_RATIO * PANEL_PX
        draw.text((x, top + 14), words, PALE, font=_font(11), anchor="ra" if value == MOST_RATIO else "la")
    flow = LABEL_PX + 2 * (PANEL_PX + GAP_PX)
    sheet.paste(Image.fromarray(wheel_key(34)), (flow, top + 2))
    draw.text((flow + 42, top + 10), "direction of motion; white: none, grey: unknown", PALE, font=_font(11))
    x = LABEL_PX
    for colour, words in (
        (OUTLINE, "outline of the true mask"),
        (GROUND, "outside, background"),
        (LOST, "flow unknown"),
    ):
        draw.rectangle((x, top + 8, x + 10, top + 18), fill=colour, outline=PALE)
        draw.text((x + 15, top + 6), words, PALE, font=_font(11))
        x += 26 + int(draw.textlength(words, font=_font(11)))


def _figure_colour(value: float) -> tuple[int, int, int]:
    """Blue for good, red for bad, as in the error panels."""
    return (33, 102, 172) if value >= 0.8 else ALARM if value < 0.5 else (120, 80, 20)


def _font(size_px: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size_px)
