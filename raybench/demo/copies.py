"""DISC- and Copydays-shaped data from real photos: pictures, edited copies of some of them, and others that are none.

Pictures are tiles of the photos that don't overlap, so that no two of them show the same thing; the textures among them
(brick, grass, gravel) are the look-alikes that distractors should be. Layout and names are the published ones.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raybench.demo.edits import EDITS, cropped
from raybench.demo.photos import load_photos
from raybench.formats.copydays import CROPS, JPEG_QUALITIES

TILE_HEIGHT, TILE_WIDTHS, ENLARGED = 96, (96, 112, 128), 1.5
MOST_TILES = 40  # of one photo, so that no large one rules the set
LEAST_CONTRAST = 16  # grey levels: a piece of bare sky can't be told from another
SEED = 2_021

ORIGINALS, REFERENCES, QUERIES, MATCHED = 20, 160, 60, 36


def make_copies(folder: Path) -> None:
    """`disc` and `copydays` below a folder, with `distractors` and `training` beside the Copydays blocks."""
    random = np.random.default_rng(SEED)
    pictures = photo_tiles(random)
    needed = ORIGINALS + REFERENCES + QUERIES - MATCHED
    originals, references, strangers, rest = np.split(
        random.permutation(len(pictures)), [ORIGINALS, ORIGINALS + REFERENCES, needed]
    )
    training = [pictures[i] for i in rest]
    _make_disc(folder / "disc", [pictures[i] for i in references], [pictures[i] for i in strangers], training, random)
    _make_copydays(folder / "copydays", [pictures[i] for i in originals], training, random)
    for index, i in enumerate(references):
        _save(pictures[i], folder / "distractors" / f"D{index:06}.jpg")
    shutil.copytree(folder / "disc" / "training", folder / "training", dirs_exist_ok=True)


def photo_tiles(random: np.random.Generator) -> list[Image.Image]:
    """Tiles of all photos; no two of them show the same thing."""
    found: list[Image.Image] = []
    for photo in load_photos().values():
        tiles = _tiles_of(photo, random)
        found += [tiles[i] for i in random.permutation(len(tiles))[:MOST_TILES]]
    return found


def _tiles_of(photo: NDArray[np.uint8], random: np.random.Generator) -> list[Image.Image]:
    """Tiles in rows of one height, of several widths."""
    tiles = []
    for top in range(0, photo.shape[0] - TILE_HEIGHT + 1, TILE_HEIGHT):
        left = 0
        while left + (width := int(random.choice(TILE_WIDTHS))) <= photo.shape[1]:
            tile = photo[top : top + TILE_HEIGHT, left : left + width]
            if tile.std() > LEAST_CONTRAST:
                size = (int(width * ENLARGED), int(TILE_HEIGHT * ENLARGED))
                tiles.append(Image.fromarray(tile).resize(size))
            left += width
    return tiles


def _make_disc(
    folder: Path,
    references: list[Image.Image],
    strangers: list[Image.Image],
    training: list[Image.Image],
    random: np.random.Generator,
) -> None:
    for index, picture in enumerate(references):
        _save(picture, folder / "val_ref" / f"R{index:06}.jpg")
    for index, picture in enumerate(training):
        _save(picture, folder / "training" / f"T{index:06}.jpg")
    edits = list(EDITS.values())
    sources = random.choice(len(references), MATCHED, replace=False)
    copies = [
        edits[place % len(edits)](references[source], training[place % len(training)], random)
        for place, source in enumerate(sources.tolist())
    ]
    queries = [*copies, *strangers]
    truth = [*(f"R{source:06}" for source in sources), *([""] * len(strangers))]
    lines = ["query_id,reference_id\n"]
    for number, place in enumerate(random.permutation(len(queries)).tolist()):
        _save(queries[place], folder / "val_query" / f"Q{number:05}.jpg", quality=70)
        lines.append(f"Q{number:05},{truth[place]}\n")
    (folder / "val_groundtruth_matches.csv").write_text("".join(lines))


def _make_copydays(
    folder: Path, originals: list[Image.Image], training: list[Image.Image], random: np.random.Generator
) -> None:
    edits = list(EDITS.values())
    for index, picture in enumerate(originals):
        name = f"2{index:03}00.jpg"
        _save(picture, folder / "original" / name)
        for quality in JPEG_QUALITIES:
            _save(picture, folder / "jpegqual" / str(quality) / name, quality)
        for percent in CROPS:
            _save(cropped(picture, percent), folder / "crops" / str(percent) / name)
        for copy in range(1 + index % 2):  # as in the published set, some originals have several strong copies
            edit = edits[(index + copy) % len(edits)]
            edited = edit(picture, training[index % len(training)], random)
            _save(edited, folder / "strong" / f"2{index:03}{copy + 1:02}.jpg")


def _save(picture: Image.Image, path: Path, quality: int = 92) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path, quality=quality)
