"""What `check` tries of sets of pictures: headers, pictures decoded whole, and two of them described."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from raybench.engine.shards import Shard
from raybench.errors import DataError, ProblemList
from raybench.extract.image_headers import ImageSizes
from raybench.extract.images import DescribeImages, Extraction
from raybench.extract.trials import KEPT, LOOK_SECONDS, Looked, batch_words, look_through, try_batch
from raybench.sources.image_files import ImageFiles

HEADERS_AT_ONCE = 1_024


@dataclass(frozen=True)
class ImageTrial:
    """The sets of a plan by role, and how their pictures would be described."""

    sets: Mapping[str, ImageFiles]
    how: Extraction
    notes: tuple[str, ...] = ()

    def attempt(self, seed: int, problems: ProblemList) -> list[str]:
        lines: list[str] = []
        batch: tuple[ImageFiles, list[int]] | None = None
        for role, images in self.sets.items():
            headers = self._headers(images, seed)
            looked = look_through([item for item, _ in headers.good], images.read, partial(self._decode, images), seed)
            lines.append(f"{role}: headers of {headers.share} images read, {looked.share} decoded")
            lines += [*headers.note(problems, self.how.skip), *looked.note(problems, self.how.skip)]
            if batch is None and looked.good:
                batch = images, [item for item, _ in looked.good]
        if batch is not None:
            chosen = batch
            lines.append(try_batch(self.how.descriptor, lambda: self._described(*chosen), problems))
        return lines

    def _headers(self, images: ImageFiles, seed: int) -> Looked[None]:
        """Headers in an order drawn by the seed until all are read or time is up; good are those to decode."""
        order = np.random.default_rng(seed).permutation(len(images)).tolist()
        until = time.monotonic() + LOOK_SECONDS
        looked, count = Looked[None](0, len(order), [], []), 0
        for start in range(0, len(order), HEADERS_AT_ONCE):
            chosen = order[start : start + HEADERS_AT_ONCE]
            some = images.taken(np.array(chosen))
            sizes = ImageSizes(some, self.how.exif_rotate).load(Shard("headers", 0, 0, len(chosen)))
            for item, size in zip(chosen, sizes, strict=True):
                if isinstance(size, DataError):
                    looked.broken.extend(size.lines())
                elif size[0] * size[1] > images.limits.pixels:
                    looked.broken.append(images.limits.pixel_problem(*size, images.uri(item)))
                else:
                    looked.good.append((item, None))
            count += len(chosen)
            if time.monotonic() > until:
                break
        return Looked(count, len(order), looked.good, looked.broken)

    def _decode(self, images: ImageFiles, item: int, data: bytes) -> None:
        images.decoded(item, data, self.how.exif_rotate)

    def _described(self, images: ImageFiles, items: list[int]) -> str:
        some = images.taken(np.array(items[:KEPT]))
        order: NDArray[np.int64] = np.arange(len(some))
        stage = DescribeImages(some, order, replace(self.how, shard_size=None, skip=False))
        found, alone = (
            stage.compute(stage.load(Shard(stage.name, 0, 0, count)))["vectors"] for count in (len(some), 1)
        )
        return batch_words(self.how.descriptor, found, alone, "images")
