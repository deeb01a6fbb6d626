"""Each stage's share of its ceiling: the bare loop over the same work takes turns with it, on one core.

100% would be nothing but the library's own arithmetic, or nothing but the moving of bytes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import faiss
import numpy as np
import torch

from raybench import storage
from raybench.descriptors.image_descriptors import resolve_images
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.extract.image_headers import Headers
from raybench.extract.images import DescribeImages, Extraction, describe_images, shape_order
from raybench.extract.patches import Features
from raybench.formats import hbench
from raybench.formats.images import Preprocess
from raybench.search.pairs import pair_distances
from raybench.search.set_search import search_sets
from raybench.sources.image_files import ImageFiles
from tests.perf import ceilings, scene
from tests.perf.figures import Measured, cpu_seconds_of, shown
from tests.perf.full_size import csv_of_bytes
from tests.perf.image_extraction import BACKBONE, BATCH, DIMS, SIZE, make_weights
from tests.perf.search import made_up

ROUNDS = 5
FEW_ROUNDS = 3  # of what takes seconds
PICTURES, DESCRIBED = 48, 12
QUERIES, REFERENCES, K = 2_048, 65_536, 10
CSV_FILES, CSV_PATCHES = 24, 1_300  # as HPatches has them on average
SHARD_BYTES = 2**26

Action = Callable[[], object]


def figures(folder: Path) -> Iterator[Measured]:
    """From pictures to published files, in the order in which data walks."""
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    runs = _new_runs(folder)
    yield from _pictures(folder, runs)
    yield _csv(folder)
    for dimension in ceilings.DIMENSIONS:
        yield _search(runs, dimension)
    yield _pairs(runs)
    yield from _shard_files(folder)


def share(what: str, work: float, unit: str, ours: Action, ceiling: Action, called: str, rounds: int) -> Measured:
    """The ceiling's CPU seconds over ours, turn by turn; its note has both as rates."""
    ours()
    ceiling()
    turns = [(cpu_seconds_of(ceiling), cpu_seconds_of(ours)) for _ in range(rounds)]
    least, own = (work / min(side) for side in zip(*turns, strict=True))
    note = f"{shown(own, unit)} {unit}, where {called} makes {shown(least, unit)}"
    return Measured(what, "share", [bare / whole for bare, whole in turns], note=note)


def _new_runs(folder: Path) -> Iterator[Run]:
    """Runs with a new store each, in this process."""
    for number in itertools.count():
        yield Run(f"{folder}/{number}/out", f"{folder}/{number}/store", InlineExecutor(Observer()), Observer())


def _pictures(folder: Path, runs: Iterator[Run]) -> Iterator[Measured]:
    """Loading alone (read, decode, resize), then to published vectors of the network."""
    pictures = folder / "pictures"
    pictures.mkdir()
    for number in range(PICTURES):
        (pictures / f"{number:02d}.jpg").write_bytes(ceilings.jpeg(number))
    images, files = ImageFiles.scan(str(pictures)), sorted(pictures.iterdir())
    weights = make_weights(folder / "weights.pt")
    spec = resolve_images(f"sscd:{weights}", {"backbone": BACKBONE, "dims": DIMS}, Preprocess(SIZE))
    how = Extraction(spec, "cpu", BATCH)
    sizes = np.tile([ceilings.WIDTH_PX, ceilings.HEIGHT_PX], (PICTURES, 1))
    stage = DescribeImages(images, shape_order(spec, Headers(sizes, {}))[0], how)
    whole = Shard(stage.name, 0, 0, PICTURES)
    yield share(
        f"loading pictures (read, decode, resize to {SIZE})",
        PICTURES,
        "images/s",
        lambda: stage.load(whole),
        lambda: [ceilings.bare_resize(file.read_bytes()) for file in files],
        "Pillow in a loop",
        ROUNDS,
    )

    some = ImageFiles.of(str(pictures), storage.list_files(str(pictures))[:DESCRIBED])
    network = ceilings.network()

    def bare_forward() -> None:
        for start in range(0, DESCRIBED, BATCH):
            pixels = np.stack([ceilings.bare_resize(file.read_bytes()) for file in files[start : start + BATCH]])
            with torch.inference_mode():
                network(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255)

    yield share(
        f"extraction ({BACKBONE} at {SIZE}, to published vectors)",
        DESCRIBED,
        "images/s",
        lambda: describe_images(next(runs), {"all": some}, how),
        bare_forward,
        "the bare network after Pillow",
        FEW_ROUNDS,
    )


def _csv(folder: Path) -> Measured:
    """Descriptors of whole numbers in CSV files, from the page cache to rows."""
    rng = np.random.default_rng(0)
    files = [folder / f"{number}.csv" for number in range(CSV_FILES)]
    for file in files:
        file.write_bytes(csv_of_bytes(rng.integers(0, 256, (CSV_PATCHES, scene.DIMENSION), np.uint8)))
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    return share(
        "reading CSV descriptors (0..255)",
        megabytes,
        "MB/s",
        lambda: [hbench.read_descriptors(storage.read(str(file)), file.name) for file in files],
        lambda: [np.frombuffer(file.read_bytes(), np.uint8).sum(dtype=np.int64) for file in files],
        "one pass over the bytes",
        ROUNDS,
    )


def _search(runs: Iterator[Run], dimension: int) -> Measured:
    """From sets in the store to folded neighbours, against the products alone by the faster of two libraries."""
    run = next(runs)
    sets = [made_up(run, role, n, dimension) for role, n in (("queries", QUERIES), ("references", REFERENCES))]
    queries = ceilings.unit_rows(ceilings.QUERIES, dimension)
    references = ceilings.unit_rows(ceilings.REFERENCES, dimension, 1)
    tiles = QUERIES * REFERENCES // (len(queries) * len(references))
    tile = queries, references, np.empty((len(queries), len(references)), np.float32)
    ways = (ceilings.numpy_product, ceilings.torch_product)
    product = min(ways, key=lambda way: min(cpu_seconds_of(lambda: way(*tile)) for _ in range(FEW_ROUNDS)))
    return share(
        f"search {QUERIES:,} x {REFERENCES:,}, {dimension}-d, k = {K}",
        2 * QUERIES * REFERENCES * dimension / 1e9,
        "GFLOP/s",
        lambda: search_sets(next(runs), sets[0], sets[1], K, "squared_L2", device="cpu"),
        lambda: [product(*tile) for _ in range(tiles)],
        f"the product by {product.__name__.removesuffix('_product')}",
        FEW_ROUNDS,
    )


def _pairs(runs: Iterator[Run]) -> Measured:
    """Distances of listed pairs, against copying as many bytes as they gather."""
    stored, pairs = scene.features(next(runs)), scene.pairs()
    gathered_bytes = 2 * len(pairs) * scene.DIMENSION * 4
    source = np.ones(ceilings.MEMORY_BYTES // 8)
    target = np.empty_like(source)
    whole, rest = divmod(gathered_bytes // 8, len(source))

    def copied() -> None:
        for length in [*[len(source)] * whole, rest]:
            np.copyto(target[:length], source[:length])

    def measured() -> None:
        features = Features(stored.mapped, stored.root, stored.images, stored.images_per_shard)
        pair_distances(next(runs), features, pairs, "L2", None)

    what = f"pairs ({len(pairs):,} distances, {scene.DIMENSION}-d)"
    return share(what, gathered_bytes / 1e9, "GB/s gathered", measured, copied, "copying in a row", ROUNDS)


def _shard_files(folder: Path) -> Iterator[Measured]:
    """A shard of vectors published and read back, checksums included."""
    rows = np.random.default_rng(0).standard_normal((SHARD_BYTES // 2_048, 512), np.float32)
    shard = Shard("made", 0, 0, len(rows))
    mapped = Mapped(str(folder), "made", "made", (shard,))
    content, plain = rows.tobytes(), folder / "plain"

    def publish() -> None:
        mapped.publish(shard, {"vectors": rows})

    def write() -> None:
        plain.write_bytes(content)

    megabytes = SHARD_BYTES / 1e6
    yield share("publishing a shard file of 64 MB", megabytes, "MB/s", publish, write, "writing the bytes", ROUNDS)
    what = "opening a shard file of 64 MB, checksums included"
    yield share(
        what, megabytes, "MB/s", lambda: mapped.read(0), rows.view(np.uint64).sum, "reading as much memory", ROUNDS
    )
