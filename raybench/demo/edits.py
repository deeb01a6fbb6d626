"""What people do to pictures before they post them again: the edits that copy detection must see through.

Each takes a picture, another one to mix in, and a generator; sizes may change. Following the kinds of the Copydays
`strong` block and of DISC's query edits, with our own recipes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

Edit = Callable[[Image.Image, Image.Image, np.random.Generator], Image.Image]


def overlaid(picture: Image.Image, other: Image.Image, random: np.random.Generator) -> Image.Image:
    """Pasted at three fifths of its size onto another picture."""
    background = other.resize(picture.size)
    small = picture.resize((picture.width * 3 // 5, picture.height * 3 // 5))
    place = tuple(int(random.integers(0, room + 1)) for room in (picture.width * 2 // 5, picture.height * 2 // 5))
    background.paste(small, (place[0], place[1]))
    return background


def rotated(picture: Image.Image, _: Image.Image, random: np.random.Generator) -> Image.Image:
    """Turned by 8 to 25 degrees, the corners black."""
    degrees = float(random.uniform(8, 25)) * int(random.choice([-1, 1]))
    return picture.rotate(degrees, Image.Resampling.BILINEAR, expand=True)


def captioned(picture: Image.Image, _: Image.Image, random: np.random.Generator) -> Image.Image:
    """With a meme's two lines of text."""
    out = picture.copy()
    draw = ImageDraw.Draw(out)
    font = ImageFont.load_default(size=max(picture.height // 7, 10))
    words = np.array(["WHEN", "THE", "FOLD", "ENDS", "ALL", "SHARDS", "ARE", "ONE"])
    for y in (4, picture.height - picture.height // 5):
        line = " ".join(random.choice(words, 3, replace=False))
        draw.text((6, y), line, fill="white", font=font, stroke_width=2, stroke_fill="black")
    return out


def blurred(picture: Image.Image, _: Image.Image, random: np.random.Generator) -> Image.Image:
    """Out of focus and darker, or paler."""
    soft = picture.filter(ImageFilter.GaussianBlur(float(random.uniform(2, 4))))
    return ImageEnhance.Brightness(soft).enhance(float(random.choice([0.55, 1.5])))


def collaged(picture: Image.Image, other: Image.Image, random: np.random.Generator) -> Image.Image:
    """Beside another picture, on either side."""
    pair = [picture, other.resize(picture.size)]
    if random.integers(2):
        pair.reverse()
    sheet = Image.new("RGB", (2 * picture.width, picture.height))
    sheet.paste(pair[0], (0, 0))
    sheet.paste(pair[1], (picture.width, 0))
    return sheet


def recoloured(picture: Image.Image, _: Image.Image, random: np.random.Generator) -> Image.Image:
    """With other colours, and mirrored every second time."""
    hue, saturation, value = picture.convert("HSV").split()
    turn = int(random.integers(40, 216))
    turned = Image.merge("HSV", (hue.point(lambda level: (level + turn) % 256), saturation, value)).convert("RGB")
    return ImageOps.mirror(turned) if random.integers(2) else turned


def cropped(picture: Image.Image, percent: int) -> Image.Image:
    """The middle of the picture with `percent` of its surface cut off."""
    side = (1 - percent / 100) ** 0.5
    width, height = (max(round(length * side), 8) for length in picture.size)
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))


EDITS: dict[str, Edit] = {
    "overlaid": overlaid,
    "rotated": rotated,
    "captioned": captioned,
    "blurred": blurred,
    "collaged": collaged,
    "recoloured": recoloured,
}
