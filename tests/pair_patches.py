"""The same patches as PhotoTour's sheets, as single images, as strips and as vectors, with the same pairs of them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

POINTS, SIDE, PAIRS = 140, 64, 400


@dataclass(frozen=True)
class Patches:
    """300 patches, two of each of 150 points but the last; `lines` are pairs of their numbers, with a label."""

    folder: Path
    pixels: np.ndarray
    point: np.ndarray
    lines: list[tuple[int, int, int]]

    def named(self, name, label=str, header="a,b,label\n"):
        return header + "".join(f"{name(a)},{name(b)},{label(match)}\n" for a, b, match in self.lines)

    def written(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    @property
    def phototour(self) -> str:
        return "".join(f"{a} {self.point[a]} 0 {b} {self.point[b]} 0 0\n" for a, b, _ in self.lines)

    def sheets(self, name="sheets") -> Path:
        folder = self.folder / name
        folder.mkdir()
        for number in range(2):
            cells = np.zeros((256, SIDE, SIDE), np.uint8)
            some = self.pixels[number * 256 : (number + 1) * 256]
            cells[: len(some)] = some
            sheet = cells.reshape(16, 16, SIDE, SIDE).swapaxes(1, 2).reshape(16 * SIDE, 16 * SIDE)
            Image.fromarray(sheet).save(folder / f"patches{number:04}.bmp")
        (folder / "info.txt").write_text("".join(f"{point} 0\n" for point in self.point))
        return folder

    def singles(self, name="singles") -> Path:
        folder = self.folder / name
        (folder / "deep").mkdir(parents=True)
        for number, pixels in enumerate(self.pixels):
            Image.fromarray(pixels).save(folder / "deep" / f"p{number}.png", compress_level=1)
        return folder

    def strips(self, name="strips") -> Path:
        folder = self.folder / name
        for number in range(2):
            (folder / f"i_{number}").mkdir(parents=True)
            some = self.pixels[number * 150 : (number + 1) * 150]
            Image.fromarray(some.reshape(-1, SIDE)).save(folder / f"i_{number}" / "ref.png", compress_level=1)
        return folder


def make_patches(folder: Path) -> Patches:
    random = np.random.default_rng(31)
    point = np.minimum(np.arange(300) // 2, POINTS)
    cells = random.integers(60, 190, (150, 4, 4))
    noise = random.normal(0, 45, (300, SIDE, SIDE))
    large = np.kron(cells[np.arange(300) // 2], np.ones((1, 16, 16)))
    pixels = np.clip(large + noise, 0, 255).astype(np.uint8)
    a = random.integers(0, 300, PAIRS)
    b = np.where(np.arange(PAIRS) % 2 == 0, a ^ 1, random.integers(0, 300, PAIRS))
    lines = [(x, y, int(point[x] == point[y])) for x, y in zip(a.tolist(), b.tolist(), strict=True) if x != y]
    folder.mkdir()
    return Patches(folder, pixels, point, lines)
