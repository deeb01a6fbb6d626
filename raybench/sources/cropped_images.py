"""Pictures as Revisited Oxford and Paris take them: a file that is cut short is read as far as it goes, and queries are
cropped to a box before anything else.

A crop has Pillow's meaning: each number of a box is rounded to a whole one (halves to even), right and lower edge are
not included, and what lies outside the picture is black.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.formats.images import decode_cut_image
from raybench.formats.limits import Limits
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles
from raybench.sources.listings import read_listing


@dataclass(frozen=True)
class CroppedImages(ImageFiles):
    """Pictures in files, each cropped to its box: (n, 4) of x1, y1, x2, y2. Without boxes they are whole."""

    boxes: NDArray[np.float64] | None = None

    @classmethod
    def of_files(cls, images: ImageFiles, boxes: NDArray[np.float64] | None = None) -> CroppedImages:
        """These pictures, with a box for each."""
        digest = digest_of("cropped", images.digest, boxes)
        return cls(images.files, digest, images.limits, images.is_there, boxes)

    @classmethod
    def remembered(cls, uri: str, limits: Limits, boxes: NDArray[np.float64] | None = None) -> CroppedImages:
        """The pictures of a listing that was made of such a source; their files may be gone."""
        known = read_listing(uri)
        files = FolderFiles(known.root, known.keys, is_there=False)
        return cls(files, known.digest, limits, is_there=False, boxes=boxes)

    def taken(self, items: NDArray[np.int64]) -> CroppedImages:
        """Only these pictures, in this order, with their boxes."""
        if np.array_equal(items, np.arange(len(self))):
            return self
        files = self.files.taken(items)
        digest = digest_of("arranged", self.digest, items)
        return replace(self, files=files, digest=digest, boxes=None if self.boxes is None else self.boxes[items])

    def decoded(self, item: int, data: bytes, exif_rotate: bool = False) -> NDArray[np.uint8]:
        """The crop of the picture in a file's content; EXIF's turn is not applied, whatever is asked for."""
        return self.readable(item, data)[0]

    def readable(self, item: int, data: bytes, exif_rotate: bool = False) -> tuple[NDArray[np.uint8], bool]:
        """The same, and whether the file is cut short."""
        image, is_cut = decode_cut_image(data, self.uri(item), self.limits)
        return (image if self.boxes is None else cropped(image, self.boxes[item])), is_cut

    def size(self, item: int, head: bytes, exif_rotate: bool = False) -> tuple[int, int]:
        """Width and height of the crop; of a picture with too many pixels its own, which is said of it then."""
        width, height = super().size(item, head)
        if self.boxes is None or width * height > self.limits.pixels:
            return width, height
        x1, y1, x2, y2 = whole_box(self.boxes[item])
        return x2 - x1, y2 - y1


def whole_box(box: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """A box in whole pixels.

    >>> whole_box(np.array([2.5, 3.5, 10.5, 11.4]))
    (2, 4, 10, 11)
    """
    x1, y1, x2, y2 = (round(value) for value in box.tolist())
    return x1, y1, x2, y2


def cropped(image: NDArray[np.uint8], box: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The pixels of a picture (height, width, 3) in a box, which has some.

    >>> cropped(np.full((2, 2, 3), 9, np.uint8), np.array([1, 1, 3, 2.4]))[:, :, 0].tolist()
    [[9, 0]]
    """
    x1, y1, x2, y2 = whole_box(box)
    found = np.zeros((y2 - y1, x2 - x1, 3), np.uint8)
    left, top = max(x1, 0), max(y1, 0)
    inside = image[top : max(y2, 0), left : max(x2, 0)]
    if inside.size:
        found[top - y1 : top - y1 + inside.shape[0], left - x1 : left - x1 + inside.shape[1]] = inside
    return found
