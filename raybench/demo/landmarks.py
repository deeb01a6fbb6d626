"""A set in the layout of Revisited Oxford and Paris, from real photos: places, views of them, and distractors.

A place is a piece of a photo. Easy references show nearly all of it, hard ones are edited, junk shows less than half of
it. A query is a picture in which the place stands beside other things; its box says where.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from raybench.demo.edits import EDITS
from raybench.demo.photos import load_photos

SET = "landmarks"
PHOTOS = ("astronaut", "chelsea", "coffee", "hubble", "motorcycle", "retina", "rocket", "tissue")
PLACE_PX, SHOWN_PX, BORDER_PX, NUDGE_PX = 160, 128, 24, 10
EASY, HARD, JUNK = 3, 3, 2  # references of each place
OTHERS, DISTRACTORS = 48, 60
SEED = 2_018


def make_landmarks(folder: Path) -> None:
    """`landmarks` and `revisitop1m` below a folder."""
    random = np.random.default_rng(SEED)
    photos = {name: Image.fromarray(photo) for name, photo in load_photos().items()}
    plain = [photos[name] for name in photos if name not in PHOTOS]
    references: list[tuple[int, str, Image.Image]] = []  # place, label, picture
    queries = []
    for place, photo in enumerate(PHOTOS):
        picture = _middle(photos[photo])
        queries.append(_query(picture, plain[place % len(plain)]))
        references += [(place, "easy", _view(picture, PLACE_PX - NUDGE_PX, random)) for _ in range(EASY)]
        edits = random.permutation(len(EDITS))[:HARD].tolist()
        other = plain[(place + 1) % len(plain)].crop((0, 0, PLACE_PX, PLACE_PX))
        references += [(place, "hard", list(EDITS.values())[edit](picture, other, random)) for edit in edits]
        references += [(place, "junk", _view(picture, PLACE_PX // 3, random)) for _ in range(JUNK)]
    references += [(-1, "", _piece(plain, random)) for _ in range(OTHERS)]
    _write_set(folder / SET, queries, [references[i] for i in random.permutation(len(references)).tolist()])
    _write_distractors(folder / "revisitop1m", [_piece(plain, random) for _ in range(DISTRACTORS)])


def _write_set(
    folder: Path,
    queries: list[tuple[Image.Image, tuple[float, ...]]],
    references: list[tuple[int, str, Image.Image]],
) -> None:
    names = [f"view_{number:06}" for number in np.random.default_rng(SEED).permutation(len(references)).tolist()]
    gnd = []
    for place, (picture, box) in enumerate(queries):
        _save(picture, folder / "jpg" / f"place_{place:06}.jpg")
        labelled = {
            label: [number for number, one in enumerate(references) if one[:2] == (place, label)]
            for label in ("easy", "hard", "junk")
        }
        gnd.append({"bbx": list(box), **labelled})
    for name, (_, _, picture) in zip(names, references, strict=True):
        _save(picture, folder / "jpg" / f"{name}.jpg")
    lists = {"imlist": names, "qimlist": [f"place_{place:06}" for place in range(len(queries))], "gnd": gnd}
    (folder / f"gnd_{folder.name}.json").write_text(json.dumps(lists) + "\n")


def _write_distractors(folder: Path, pictures: list[Image.Image]) -> None:
    names = [f"{number % 4:02}/{number:07}.jpg" for number in range(len(pictures))]
    for name, picture in zip(names, pictures, strict=True):
        _save(picture, folder / "jpg" / name)
    (folder / "revisitop1m.txt").write_text("".join(f"{name}\n" for name in names))


def _middle(photo: Image.Image) -> Image.Image:
    """The square in the middle of a photo, as a place."""
    side = min(photo.size) * 2 // 3
    left, top = (photo.width - side) // 2, (photo.height - side) // 2
    return photo.crop((left, top, left + side, top + side)).resize((PLACE_PX, PLACE_PX))


def _query(place: Image.Image, other: Image.Image) -> tuple[Image.Image, tuple[float, ...]]:
    """A place on another picture, and the box in which it is, which need not be whole pixels."""
    sheet = other.resize((PLACE_PX + 3 * BORDER_PX, PLACE_PX + 2 * BORDER_PX))
    sheet.paste(place, (2 * BORDER_PX, BORDER_PX))
    corner = (2 * BORDER_PX + 0.4, BORDER_PX - 0.3)
    return sheet, (*corner, corner[0] + PLACE_PX, corner[1] + PLACE_PX)


def _view(place: Image.Image, side: int, random: np.random.Generator) -> Image.Image:
    """A part of a place, this long on each side."""
    left, top = random.integers(0, PLACE_PX - side + 1, 2).tolist()
    return place.crop((left, top, left + side, top + side)).resize((SHOWN_PX, SHOWN_PX))


def _piece(photos: list[Image.Image], random: np.random.Generator) -> Image.Image:
    """A piece of a photo that shows no place."""
    photo = photos[int(random.integers(len(photos)))]
    left, top = (int(random.integers(0, length - SHOWN_PX + 1)) for length in photo.size)
    return photo.crop((left, top, left + SHOWN_PX, top + SHOWN_PX))


def _save(picture: Image.Image, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, quality=90)
