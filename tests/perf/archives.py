"""50,000 small images read from a tar, beside the same in a folder: images per second, and memory as images grow.

Both are read in the order of an extraction (by shape, then name), with and without decoding. Plain baselines: a loop
over the files that opens each, and one over `tarfile`.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from raybench.sources.image_files import ImageFiles
from tests.perf.figures import Figure, Measured, best_of_each

IMAGES, FEW = 50_000, 5_000
SIDES = (48, 64, 80)  # px, of which a batch holds one shape
DIFFERENT = 500  # images; the others are as large, by other names
ROUNDS = 3
TARGET, LISTING_TARGET = 1.0, 2.0  # of a folder's rate; of tarfile's
MOST_READING_MB = 32  # beyond what was held once the tar was listed: windows of contents, however many images there are
MOST_GROWTH_MB = 48  # from few to all, names and places of 45,000 images included
SHARD = 2_048  # images that one worker reads
READ = """
import sys
import numpy as np
from raybench.sources.image_files import ImageFiles
from tests.perf.archives import read_through
from tests.perf.figures import peak_resident_bytes
images = ImageFiles.scan(sys.argv[1])
listed = peak_resident_bytes()
read_through(images, np.arange(len(images)).tolist())
print(listed, peak_resident_bytes())
"""


def figures(folder: Path) -> Iterator[Figure | Measured]:
    """Listing, reading and decoding; then memory, in processes of their own."""
    names = make_images(folder / "set", IMAGES)
    archive = pack(folder / "set", folder / "set.tar", names)
    few = pack(folder / "set", folder / "few.tar", names[:FEW])
    plain, packed = ImageFiles.scan(f"{folder}/set"), ImageFiles.scan(str(archive))
    order = by_shape(len(plain))
    ours, theirs = best_of_each(lambda: ImageFiles.scan(str(archive)), lambda: listed_plainly(archive), ROUNDS)
    yield Figure(f"{IMAGES:,} images of a tar listed", ours, "tarfile", theirs, LISTING_TARGET, rate(ours))
    store = str(folder / "store")
    ImageFiles.scan(str(archive), store=store)
    ours, theirs = best_of_each(
        lambda: ImageFiles.scan(str(archive), store=store), lambda: ImageFiles.scan(f"{folder}/set"), ROUNDS
    )
    yield Figure("the same by its index in the store", ours, "folder listed", theirs, None, rate(ours))
    ours, theirs = best_of_each(lambda: read_through(packed, order), lambda: read_through(plain, order), ROUNDS)
    yield Figure("read in the order of an extraction", ours, "folder", theirs, TARGET, rate(ours))
    ours, theirs = best_of_each(
        lambda: read_through(packed, order), lambda: read_plainly(folder / "set", names, order), ROUNDS
    )
    yield Figure("the same", ours, "open() per file", theirs, TARGET, rate(ours))
    ours, theirs = best_of_each(
        lambda: read_through(packed, order, decode=True), lambda: read_through(plain, order, decode=True), ROUNDS
    )
    yield Figure("the same, decoded", ours, "folder", theirs, 0.95, rate(ours))
    all_of_them, some = ([peaks_of(one) for _ in range(ROUNDS)] for one in (archive, few))
    size = f"the tar has {archive.stat().st_size / 1e6:.0f} MB"
    reading = [peak - listed for listed, peak in all_of_them]
    yield Measured(f"memory to read {IMAGES:,} once they are listed", "MB", reading, most=MOST_READING_MB, note=size)
    grown = [peak - other for (_, peak), (_, other) in zip(all_of_them, some, strict=True)]
    what = f"peak memory from {FEW:,} to {IMAGES:,} images, names included"
    yield Measured(what, "MB", grown, most=MOST_GROWTH_MB)


def make_images(folder: Path, count: int) -> list[str]:
    """JPEGs of three sizes in turns; names in order."""
    folder.mkdir()
    random = np.random.default_rng(0)
    contents = []
    for number in range(DIFFERENT):
        side = SIDES[number % len(SIDES)]
        file = io.BytesIO()
        coarse = Image.fromarray(random.integers(0, 255, (8, 8, 3), np.uint8))
        coarse.resize((side, 48), Image.Resampling.BICUBIC).save(file, "JPEG")
        contents.append(file.getvalue())
    names = [f"{number:06d}.jpg" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(contents[shape_of(number) + len(SIDES) * (number % (DIFFERENT // len(SIDES)))])
    return names


def shape_of(number: int) -> int:
    return number % len(SIDES)


def by_shape(count: int) -> list[int]:
    """All images in the order of an extraction: one shape after the other."""
    number = np.arange(count)
    return [int(one) for one in np.lexsort((number, number % len(SIDES)))]


def pack(folder: Path, target: Path, names: Sequence[str]) -> Path:
    with tarfile.open(target, "w") as archive:
        for name in names:
            archive.add(folder / name, name)
    return target


def read_through(images: ImageFiles, order: Sequence[int], decode: bool = False) -> int:
    """Read images a shard at a time, as workers do; returns their bytes."""
    total = 0
    for start in range(0, len(order), SHARD):
        shard = order[start : start + SHARD]
        for item, content in zip(shard, images.files.read_each(shard), strict=True):
            assert isinstance(content, bytes)
            total += len(content)
            if decode:
                images.decoded(item, content)
    return total


def read_plainly(folder: Path, names: Sequence[str], order: Sequence[int]) -> int:
    return sum(len((folder / names[item]).read_bytes()) for item in order)


def listed_plainly(archive: Path) -> int:
    with tarfile.open(archive) as file:
        return len(file.getnames())


def rate(seconds: float) -> str:
    return f"{IMAGES / seconds:,.0f} images/s"


def peaks_of(archive: Path) -> tuple[float, float]:
    """Peak resident MB of a process that lists an archive, and once it has read all of it."""
    said = subprocess.run([sys.executable, "-c", READ, str(archive)], check=True, capture_output=True, text=True)
    listed, peak = map(int, said.stdout.split())
    return listed / 1e6, peak / 1e6
