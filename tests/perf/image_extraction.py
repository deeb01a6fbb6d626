"""CV_RESNET50 at 288 over JPEGs on two warm actors of one thread each, against a bare torch loop with two threads."""

from __future__ import annotations

import itertools
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from raybench.descriptors.image_descriptors import ImageSpec, resolve_images
from raybench.descriptors.sscd import Sscd
from raybench.descriptors.sscd_backbones import file_key
from raybench.descriptors.sscd_network import Network
from raybench.engine.progress import Observer
from raybench.engine.ray_core import connect
from raybench.engine.run import Executor, Run
from raybench.extract.images import Extraction, describe_images
from raybench.formats.images import Preprocess
from raybench.sources.image_files import ImageFiles
from tests.perf.figures import Figure
from tests.perf.full_size import tree

IMAGES, FEW_IMAGES = 192, 24
SIZES_PX = ((640, 480), (480, 640), (512, 512))
SIZE, BATCH, THREADS = 288, 4, 2
BACKBONE, DIMS = "CV_RESNET50", 512
TARGET = 0.91  # at most 1.1 times its time
CLOSE = 1e-5
MEAN, DEVIATION = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])


def figures(folder: Path, images: int = IMAGES) -> Iterator[Figure]:
    """The whole extraction, then full batches of one shape against one image at a time."""
    weights = make_weights(folder / "weights.pt")
    spec = resolve_images(f"sscd:{weights}", {"backbone": BACKBONE, "dims": DIMS}, Preprocess(SIZE))
    many, few = make_images(folder / "many", images), make_images(folder / "few", min(FEW_IMAGES, images))
    timed = partial(ours_seconds, folder, itertools.count(), spec)
    executor = connect("local", cpus=THREADS, gpus=0, device="cpu", observer=Observer())
    try:
        timed(executor, make_images(folder / "warm", 2 * THREADS), None, 2)  # actors up, modules imported
        paths = [Path(many.uri(item)) for item in range(len(many))]
        half = len(paths) // 2
        first, own_first, before = loop_seconds(weights, paths[:half])
        started = sum(tree(os.getpid()).values())
        ours, rows = timed(executor, many, BATCH, None)
        cpu_seconds = sum(tree(os.getpid()).values()) - started
        # On both sides of ours, so that a neighbour slows both.
        second, own_second, after = loop_seconds(weights, paths[half:])
        np.testing.assert_allclose(rows, np.concatenate([before, after]), atol=CLOSE)
        what = f"{len(paths)} JPEGs, {BACKBONE} at {SIZE}"
        note = f"CPU seconds: ours {cpu_seconds:.1f}, Ray's own included, torch {own_first + own_second:.1f}"
        yield Figure(what, ours, f"torch, {THREADS} threads", first + second, TARGET, note)
        grouped, _ = timed(executor, few, BATCH, None)
        single, _ = timed(executor, few, 1, None)
        yield Figure(f"{len(few)} of them, batches of {BATCH}", grouped, "batches of 1", single, None, "on CPUs")
    finally:
        executor.close()


def make_weights(path: Path) -> Path:
    """A weight file of random values."""
    torch.manual_seed(0)
    state = Network(BACKBONE, DIMS, 3.0).state_dict()
    torch.save({file_key(BACKBONE, key): value for key, value in state.items()}, path)
    return path


def make_images(folder: Path, count: int) -> ImageFiles:
    """Noise over slopes, in three shapes by turns: some 100 KB each."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        width, height = SIZES_PX[number % len(SIZES_PX)]
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8)).resize((width, height))
        noise = rng.integers(-12, 13, (height, width, 3))
        Image.fromarray(np.clip(np.asarray(coarse) + noise, 0, 255).astype(np.uint8)).save(folder / f"{number:04d}.jpg")
    return ImageFiles.scan(str(folder))


def ours_seconds(
    folder: Path,
    rounds: Iterator[int],
    spec: ImageSpec,
    executor: Executor,
    images: ImageFiles,
    batch_size: int | None,
    shard_size: int | None,
) -> tuple[float, NDArray[np.float32]]:
    """Seconds from a listed folder to published vectors, and these in name order."""
    place = folder / f"round-{next(rounds)}"
    run = Run(f"{place}/out", f"{place}/store", executor, Observer())
    started = time.monotonic()
    vectors = describe_images(run, {"all": images}, Extraction(spec, "cpu", batch_size, shard_size))["all"].vectors
    seconds = time.monotonic() - started
    rows = np.empty((len(images), DIMS), np.float32)
    for shard in vectors.mapped.shards:
        index, found = vectors.read(shard.index)
        rows[index] = found
    return seconds, rows


def loop_seconds(weights: Path, paths: list[Path]) -> tuple[float, float, NDArray[np.float32]]:
    """Seconds and CPU seconds of a plain loop that does the same in this process, in full batches too; and its rows."""
    network = Sscd(str(weights), SIZE, "short_edge", backbone=BACKBONE, dims=DIMS).load("cpu")
    network = network.to(memory_format=torch.channels_last)
    torch.set_num_threads(THREADS)
    rows = np.empty((len(paths), DIMS), np.float32)
    waiting: dict[tuple[int, ...], list[tuple[int, NDArray[np.float32]]]] = defaultdict(list)

    def flush(batch: list[tuple[int, NDArray[np.float32]]]) -> None:
        stack = torch.from_numpy(np.stack([picture for _, picture in batch]))
        with torch.inference_mode():
            found = network(stack.to(memory_format=torch.channels_last))
        rows[[number for number, _ in batch]] = found.numpy()

    started, own = time.monotonic(), time.process_time()
    for number, path in enumerate(paths):
        picture = preprocessed(path)
        waiting[picture.shape].append((number, picture))
        if len(waiting[picture.shape]) == BATCH:
            flush(waiting.pop(picture.shape))
    for batch in waiting.values():
        flush(batch)
    return time.monotonic() - started, time.process_time() - own, rows


def preprocessed(path: Path) -> NDArray[np.float32]:
    """The published preprocessing, plainly."""
    image = Image.open(path).convert("RGB")
    short = min(image.size)
    width, height = (int(SIZE * side / short) for side in image.size)
    pixels = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR), np.float32) / np.float32(255)
    return ((pixels - MEAN) / DEVIATION).transpose(2, 0, 1)
