"""What one core and the disk of this machine can do at most: the libraries' own loops, nothing of ours around them.

`shares` measures stages against these in the same run; `plan_disc` counts with them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from raybench.descriptors.sscd_network import Network
from raybench.formats.images import decode_image
from tests.perf.figures import Measured, cpu_seconds_of, wall_seconds_of

ROUNDS = 5
WIDTH_PX, HEIGHT_PX = 1_024, 768
JPEGS = 12
QUERIES, REFERENCES, DIMENSIONS, K = 2_048, 16_384, (256, 512), 10  # a tile of the search
MEMORY_BYTES = 2**29  # far more than caches hold
FILE_BYTES = 2**28
FORWARD_SHAPE = (4, 3, 288, 384)  # a batch as a CPU gets it, of 1,024 x 768 px pictures at --size 288
FORWARD_ROUNDS = 3

Rows = NDArray[np.float32]


def figures(folder: Path) -> Iterator[Measured]:
    """Each with all its repeats; CPU seconds of one thread, but wall seconds for the disk."""
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    yield from _decoding()
    for dimension in DIMENSIONS:
        yield from _products(dimension)
    yield from _memory()
    yield from _disk(folder / "file")
    yield _forward()


def jpeg(seed: int) -> bytes:
    """A picture of slopes under noise, 1,024 x 768 px; some 190 KB, as photos of that size have."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), np.uint8)).resize((WIDTH_PX, HEIGHT_PX))
    noise = rng.integers(-12, 13, (HEIGHT_PX // 2, WIDTH_PX // 2, 1)).repeat(2, 0).repeat(2, 1)
    file = io.BytesIO()
    Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8)).save(file, "jpeg", quality=85)
    return file.getvalue()


def bare_decode(data: bytes) -> Image.Image:
    """Pillow alone, to pixels in its own memory."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def bare_resize(data: bytes) -> NDArray[np.uint8]:
    """Pillow alone, to what the network is fed with."""
    return np.asarray(bare_decode(data).resize(FORWARD_SHAPE[:1:-1], Image.Resampling.BILINEAR))


def numpy_product(queries: Rows, references: Rows, out: Rows) -> None:
    np.matmul(queries, references.T, out=out)


def torch_product(queries: Rows, references: Rows, out: Rows) -> None:
    torch.mm(torch.from_numpy(queries), torch.from_numpy(references).T, out=torch.from_numpy(out))


def unit_rows(count: int, dimension: int, seed: int = 0) -> Rows:
    """Rows of length 1."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rates(work: float, action: Callable[[], object], rounds: int = ROUNDS) -> list[float]:
    """Work per CPU second of each repeat; the first call, which loads and touches everything, does not count."""
    action()
    return [work / cpu_seconds_of(action) for _ in range(rounds)]


def _decoding() -> Iterator[Measured]:
    files = [jpeg(seed) for seed in range(JPEGS)]
    note = f"{np.mean([len(data) for data in files]) / 1e3:.0f} KB each"
    ways: dict[str, Callable[[bytes], object]] = {
        "decoded by Pillow": bare_decode,
        "decoded by decode_image": lambda data: decode_image(data, "made"),
        "decoded and resized by Pillow": bare_resize,
    }

    def decoded(decode: Callable[[bytes], object]) -> None:
        for data in files:
            decode(data)  # one at a time: pictures that are kept cost new memory

    for what, decode in ways.items():
        found = rates(JPEGS, partial(decoded, decode))
        yield Measured(f"JPEG {WIDTH_PX} x {HEIGHT_PX}, {what}", "images/s", found, note=note)


def _products(dimension: int) -> Iterator[Measured]:
    """Billions of multiplications and additions per second over one tile."""
    queries, references = unit_rows(QUERIES, dimension), unit_rows(REFERENCES, dimension, 1)
    work = 2 * QUERIES * REFERENCES * dimension / 1e9
    out = np.empty((QUERIES, REFERENCES), np.float32)  # once: new memory costs as much as a product of 64-d
    short = [torch.from_numpy(rows).bfloat16() for rows in (queries, references)]
    ways: dict[str, Callable[[], object]] = {
        "numpy": partial(numpy_product, queries, references, out),
        "torch": partial(torch_product, queries, references, out),
        f"faiss.knn, k = {K}": partial(faiss.knn, queries, references, K),
        "torch, bfloat16": lambda: torch.mm(short[0], short[1].T),
    }
    for library, action in ways.items():
        yield Measured(f"product of a tile, {dimension}-d, {library}", "GFLOP/s", rates(work, action))


def _memory() -> Iterator[Measured]:
    source = np.ones(MEMORY_BYTES // 8)
    target = np.empty_like(source)
    gigabytes = MEMORY_BYTES / 1e9
    yield Measured("memory, read", "GB/s", rates(gigabytes, source.sum))
    note = "bytes that are read; as many are written"
    yield Measured("memory, copied", "GB/s", rates(gigabytes, lambda: np.copyto(target, source)), note=note)


def _disk(path: Path) -> Iterator[Measured]:
    data = np.random.default_rng(0).bytes(FILE_BYTES)
    written, cached, cold = [], [], []
    for _ in range(FORWARD_ROUNDS):
        written.append(FILE_BYTES / 1e6 / wall_seconds_of(lambda: _write(path, data)))
        cached.append(FILE_BYTES / 1e6 / wall_seconds_of(path.read_bytes))
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
        cold.append(FILE_BYTES / 1e6 / wall_seconds_of(path.read_bytes))
    yield Measured("disk, written and synced", "MB/s", written)
    yield Measured("disk, read", "MB/s", cold, note="not from the page cache")
    yield Measured("page cache, read", "MB/s", cached)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def network() -> torch.nn.Module:
    """The R50 of SSCD with random weights, pixels side by side as CPUs like them."""
    return Network("CV_RESNET50", 512, 3.0).eval().to(memory_format=torch.channels_last)


def _forward() -> Measured:
    made = network()
    batch = torch.rand(FORWARD_SHAPE).to(memory_format=torch.channels_last)
    with torch.inference_mode():
        found = rates(FORWARD_SHAPE[0], lambda: made(batch), FORWARD_ROUNDS)
    batches, _, height, width = FORWARD_SHAPE
    return Measured(f"CV_RESNET50 forward, {height} x {width}, batches of {batches}", "images/s", found)
