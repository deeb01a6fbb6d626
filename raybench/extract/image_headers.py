"""Pictures -> their sizes, from headers alone: the plan of an extraction needs them, and no pixels.

What is wrong with a file is kept beside the sizes, so that all broken ones are said together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.errors import DataError, OutOfReach, ProblemList
from raybench.formats.shardfile import Arrays
from raybench.sources.image_files import ImageFiles

FILES_PER_SHARD = 4_096  # of which headers are read
HEADERS_AT_ONCE = 256
SHOWN = 5
# Most headers end before the first, some (a large profile or preview comes first) before the second; None is the whole.
HEAD_BYTES = (16 * 2**10, 256 * 2**10, None)


@dataclass(frozen=True)
class Headers:
    """What image headers say: width and height of each picture (zeros where there are none), what is wrong by index."""

    sizes: NDArray[np.int64]  # (n, 2)
    broken: dict[int, str]


@dataclass(frozen=True)
class ImageSizes:
    """The stage that reads image headers."""

    images: ImageFiles
    exif_rotate: bool = False

    name = "image-sizes"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.images.digest, self.exif_rotate)

    def load(self, shard: Shard) -> list[tuple[int, int] | DataError]:
        found: dict[int, tuple[int, int] | DataError] = {}
        for start in range(shard.start, shard.stop, HEADERS_AT_ONCE):
            wanted = list(range(start, min(start + HEADERS_AT_ONCE, shard.stop)))
            for count in HEAD_BYTES:
                wanted = [item for item in wanted if not isinstance(found.get(item), tuple)]
                heads = self.images.files.read_starts(wanted, count)
                # Not in threads: Pillow's warnings can't be turned off for one of them.
                found.update((item, self._size(item, head)) for item, head in zip(wanted, heads, strict=True))
        self._check_there(look for look in found.values() if isinstance(look, OutOfReach))
        return [found[item] for item in range(shard.start, shard.stop)]

    def compute(self, payload: list[tuple[int, int] | DataError]) -> Arrays:
        broken = {item: str(look) for item, look in enumerate(payload) if isinstance(look, DataError)}
        sizes = [(0, 0) if isinstance(look, DataError) else look for look in payload]
        return {
            "sizes": np.array(sizes, np.int64).reshape(-1, 2),
            "broken": np.array(list(broken), np.int64),
            "reason": np.array(list(broken.values()), np.str_),
        }

    def keys(self, shard: Shard) -> str:
        return f"{self.images.uri(shard.start)} … {self.images.keys[shard.stop - 1]}"

    def _check_there(self, away: Iterable[OutOfReach]) -> None:
        """Raise for these images: kept as broken, they would be found so once they are back."""
        problems, lines = ProblemList(), list(dict.fromkeys(map(str, away)))
        problems.add_first(lines[:SHOWN], len(lines), self.images.root, "images that can't be read")
        problems.check()

    def _size(self, item: int, head: bytes | DataError) -> tuple[int, int] | DataError:
        if isinstance(head, DataError):
            return head
        try:
            return self.images.size(item, head, self.exif_rotate)
        except DataError as error:
            return error


def read_headers(run: Run, images: ImageFiles, exif_rotate: bool) -> Headers:
    """The headers of all pictures; one of too many pixels is broken, whatever the limits were when it was looked at."""
    mapped = run.map(ImageSizes(images, exif_rotate), len(images), FILES_PER_SHARD)
    broken: dict[int, str] = {}
    sizes = []
    for shard in mapped.shards:
        arrays = run.read(mapped, shard.index)
        sizes.append(arrays["sizes"])
        index = (shard.start + arrays["broken"]).tolist()
        broken.update(zip(index, arrays["reason"].tolist(), strict=True))
    found = np.concatenate(sizes)
    for item in np.flatnonzero(found.prod(axis=1) > images.limits.pixels).tolist():
        width, height = found[item].tolist()
        broken[item] = images.limits.pixel_problem(width, height, images.uri(item))
    return Headers(found, dict(sorted(broken.items())))
