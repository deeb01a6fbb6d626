"""How a published model wants its pictures: resized, its middle cut out, normalised; by Pillow, on whole grey levels.

The steps and their rounding are those of torchvision's and of transformers' transforms of Pillow images. Where a
library resizes tensors instead, a grey level may differ by one. Who published the steps, and in which words, is known
to `hf_preprocessing`, `timm_images` and `torchvision_images`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from raybench.formats.images import Preprocess

LEVELS = Preprocess.divisor  # by which whole grey levels are divided, unless a model has its own scale


@dataclass(frozen=True)
class ModelPreprocess:
    """Resizing to a short edge (one number), to height and width (two), or not at all; then the middle, `crop` (height,
    width), black where the picture is smaller; then levels over `divisor`, minus `mean`, over `std`.

    `cut_from`: where the middle begins if as many pixels can't be left on both sides: `before` half a pixel (as
    transformers does), or at the `even` number (as torchvision does).
    """

    resize: tuple[int, ...] = ()
    crop: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    interpolation: str = "bilinear"
    divisor: float = LEVELS
    cut_from: str = "before"

    @property
    def facts(self) -> tuple[Any, ...]:
        """What a digest covers."""
        return ("model", *vars(self).values())

    @property
    def words(self) -> str:
        """The steps in one line.

        >>> ModelPreprocess((256,), (224, 224)).words.split(", minus ")[0]
        'short edge 256 px, bilinear, its middle 224 x 224 px'
        """
        sizes = {0: "as they are", 1: "short edge {} px", 2: "{} x {} px (height x width)"}
        steps = [sizes[len(self.resize)].format(*self.resize), *([self.interpolation] if self.resize else [])]
        if self.crop is not None:
            steps.append(f"its middle {self.crop[0]} x {self.crop[1]} px")
        mean, std = (",".join(f"{round(value, 6)}" for value in values) for values in (self.mean, self.std))
        levels = "levels 0 to 1" if self.divisor == LEVELS else f"levels over {self.divisor:.6g}"
        return ", ".join([*steps, f"minus mean {mean}", f"over deviation {std} of {levels}"])

    def shape(self, width: int, height: int) -> tuple[int, int]:
        """Height and width of what the network gets.

        >>> ModelPreprocess((40,)).shape(70, 53), ModelPreprocess((40,), (32, 32)).shape(70, 53)
        ((40, 52), (32, 32))
        """
        return self.crop or self._resized_shape(width, height)

    def resized(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture (h, w, 3) as the network gets it, still in whole grey levels."""
        height, width = self._resized_shape(image.shape[1], image.shape[0])
        if self.resize:
            filter_ = Image.Resampling[self.interpolation.upper()]
            image = np.asarray(Image.fromarray(image).resize((width, height), filter_))
        return image if self.crop is None else self._middle(image, self.crop)

    def _resized_shape(self, width: int, height: int) -> tuple[int, int]:
        if not self.resize:
            return height, width
        if len(self.resize) == 2:
            return self.resize[0], self.resize[1]
        short, long = min(width, height), max(width, height)
        edges = self.resize[0], int(self.resize[0] * long / short)
        return edges if height <= width else edges[::-1]

    def _middle(self, image: NDArray[np.uint8], crop: tuple[int, int]) -> NDArray[np.uint8]:
        missing = [max(0, wanted - there) for wanted, there in zip(crop, image.shape, strict=False)]
        if any(missing):  # half before, half behind
            first = [count // 2 if self.cut_from == "even" else (count + 1) // 2 for count in missing]
            sides = [(one, count - one) for one, count in zip(first, missing, strict=True)]
            image = np.pad(image, [*sides, (0, 0)])
        top, left = (self._start(there - wanted) for there, wanted in zip(image.shape, crop, strict=False))
        return image[top : top + crop[0], left : left + crop[1]]

    def _start(self, spare: int) -> int:
        return round(spare / 2) if self.cut_from == "even" else spare // 2


Steps = Preprocess | ModelPreprocess  # by which pictures are prepared
