"""A set of one's own as users have it: things, a folder for each, with several pictures of it; from real photos.

Each picture is searched for among all. Others of its thing are relevant; edited ones are hard to find.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np

from raybench.demo.copies import photo_tiles
from raybench.demo.edits import EDITS, cropped

THINGS, PERCENT = 24, 10  # things; what is cropped of the second picture of each
PLAIN, EDITED = 2, 2  # pictures of each thing
SEED = 2_024


def make_own_images(folder: Path) -> None:
    """`pictures/THING/NUMBER.jpg` and `truth.csv` below a folder."""
    random = np.random.default_rng(SEED)
    tiles = photo_tiles(random)
    chosen = random.permutation(len(tiles)).tolist()
    edits = list(EDITS.values())
    lines = ["query,reference,grade\n"]
    for thing in range(THINGS):
        tile, other = (tiles[chosen[place]] for place in (thing, thing + THINGS))
        made = [edits[(thing + number) % len(edits)](tile, other, random) for number in range(EDITED)]
        names = []
        for number, picture in enumerate([tile, cropped(tile, PERCENT), *made]):
            names.append(f"thing_{thing:02}/{number}")
            path = folder / "pictures" / f"{names[-1]}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture.save(path, quality=85)
        lines += [f"{one},{other},{_grade(other)}\n" for one, other in itertools.permutations(names, 2)]
    (folder / "truth.csv").write_text("".join(lines))


def _grade(name: str) -> str:
    return "positive" if int(name[-1]) < PLAIN else "hard"
