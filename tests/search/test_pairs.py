"""Distances of listed pairs do not depend on how pairs, images or blocks are cut."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import DataError
from raybench.extract.patches import Features
from raybench.metrics.partials import Rows
from raybench.search import pairs as pairs_step
from raybench.search.pairs import Pairs, pair_distances

IMAGES, PATCHES = 7, 11


@dataclass(frozen=True)
class Made:
    """Made-up features; every other image has values that only float64 holds."""

    dimension: int
    kind: str

    name = "made"
    on_device = False

    @property
    def digest(self):
        return f"made-{self.dimension}-{self.kind}"

    def load(self, shard):
        return [self.image(item) for item in range(shard.start, shard.stop)]

    def compute(self, payload):
        return {"vectors": np.concatenate(payload), "counts": np.array([len(rows) for rows in payload])}

    def image(self, item):
        random = np.random.default_rng(item)
        if self.kind == "bytes":
            return random.integers(0, 256, (PATCHES, self.dimension)).astype(np.uint8)
        rows = random.normal(size=(PATCHES, self.dimension))
        return rows if item % 2 else rows.astype(np.float32)

    def keys(self, shard):
        return str(shard)


def listed(count, seed):
    random = np.random.default_rng(seed)
    columns = [random.integers(0, high, count).astype(np.int32) for high in (IMAGES, PATCHES, IMAGES, PATCHES)]
    return Pairs(*columns)


def distances(folder, made, images_per_shard, pairs, distance, shard_size):
    run = Run(str(folder), str(folder / "stages"), InlineExecutor(Observer()), Observer())
    mapped = run.map(made, IMAGES, images_per_shard)
    features = Features(mapped, "made", tuple(f"s/{i}" for i in range(IMAGES)), images_per_shard)
    folded = run.fold(pair_distances(run, features, pairs, distance, shard_size), Rows)
    return run.read(folded, 0)["values"]


@settings(max_examples=25, deadline=None)
@given(
    distance=st.sampled_from(["L2", "L1", "hamming"]),
    dimension=st.sampled_from([1, 3, 16, 128]),
    images_per_shard=st.integers(1, 8),
    shard_size=st.sampled_from([1, 7, 40, 1000]),
    block=st.sampled_from([1, 5, 2048]),
    seed=st.integers(0, 3),
)
def test_however_the_work_is_cut_the_bytes_are_the_same(
    tmp_path_factory, distance, dimension, images_per_shard, shard_size, block, seed
):
    made = Made(dimension, "bytes" if distance == "hamming" else "floats")
    pairs = listed(60, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_step, "BLOCK", block)
        folder = tmp_path_factory.mktemp("cut")
        found = distances(folder, made, images_per_shard, pairs, distance, shard_size)
    a, b = (
        np.stack([made.image(image)[patch] for image, patch in zip(images, patches, strict=True)])
        for images, patches in ((pairs.a_image, pairs.a_patch), (pairs.b_image, pairs.b_patch))
    )
    from raybench.search.distances import row_distances

    one_by_one = [row_distances(a[i : i + 1], b[i : i + 1], distance)[0] for i in range(len(pairs))]
    assert found.tobytes() == np.array(one_by_one).tobytes()


def test_a_patch_that_is_not_there_is_named(tmp_path):
    pairs = Pairs(*(np.array([value], np.int32) for value in (3, PATCHES, 0, 0)))
    with pytest.raises(DataError, match=r"s/3 has 11 patches, the tasks name patch 11"):
        distances(tmp_path, Made(4, "floats"), 2, pairs, "L2", 10)


def test_no_shard_opens_all_feature_files(tmp_path):
    """Pairs are brought into tiles of files x files, so that a shard of many needs few of them."""
    images, patches, count = 64, 4, 4096
    random = np.random.default_rng(0)
    pairs = Pairs(*(random.integers(0, high, count).astype(np.int32) for high in (images, patches, images, patches)))
    run = Run(str(tmp_path), str(tmp_path / "stages"), InlineExecutor(Observer()), Observer())
    mapped = run.map(Made(2, "floats"), images, 1)
    features = Features(mapped, "made", tuple(map(str, range(images))), 1)
    order = pairs_step._tiled(features, pairs, tiles=16)
    for start in range(0, count, count // 16):
        part = pairs.at(order[start : start + count // 16])
        opened = set(part.a_image.tolist()) | set(part.b_image.tolist())
        assert len(opened) < images * 0.8
