"""A made set in the shape of the 2017 HPatches tasks: sequences of ref, e1..t5 with growing noise, lists by split CSV.

Noise is chosen so that e is easy and t is hard: the views of a patch overlap with the nearest of other patches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybench.benchmarks.hpatches.inputs import NOISE_LEVELS
from raybench.benchmarks.hpatches.retrieval import SplitQueries, cuts_of_pools
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.extract.patches import IMAGES_PER_SHARD, Features
from raybench.formats.hpatches import ReferencePatches
from raybench.formats.shardfile import Arrays
from raybench.search.count_closer import GroupedPatches, Search
from raybench.search.pairs import Pairs

SEQUENCES, IMAGES, DIMENSION = 40, 16, 128
NOISE = (0.0, 0.7, 1.1, 1.5)  # of ref, e, h, t, where a patch has deviation 1


@dataclass(frozen=True)
class MadeLevels:
    """A stage in place of extraction: image 0 of a sequence is ref, then e1..e5, h1..h5, t1..t5."""

    patches: int

    name = "extract"
    on_device = False

    @property
    def digest(self) -> str:
        return f"made-levels-1-{self.patches}"

    def load(self, shard: Shard) -> Shard:
        return shard

    def compute(self, payload: Shard) -> Arrays:
        shape, vectors = (self.patches, DIMENSION), []
        for image in range(payload.start, payload.stop):
            number = image % IMAGES
            point = np.random.default_rng([1, image // IMAGES]).standard_normal(shape, np.float32)
            noise = np.random.default_rng([2, image]).standard_normal(shape, np.float32)
            vectors.append(point + np.float32(NOISE[-(-number // 5)]) * noise)
        return {"vectors": np.concatenate(vectors), "counts": np.full(len(payload), self.patches, np.int64)}

    def keys(self, shard: Shard) -> str:
        return f"images {shard.start}..{shard.stop - 1}"


def features(run: Run, patches: int, sequences: int = SEQUENCES) -> Features:
    """The vectors of every image, published in the run's store."""
    images = tuple(f"s{image // IMAGES:03d}/{image % IMAGES:02d}" for image in range(sequences * IMAGES))
    return Features(run.map(MadeLevels(patches), len(images), IMAGES_PER_SHARD), run.store, images, IMAGES_PER_SHARD)


def image(sequence: np.ndarray, level: int, number: np.ndarray) -> np.ndarray:
    """The image of a number at a level."""
    return (sequence * IMAGES + np.where(number > 0, 5 * level + number, 0)).astype(np.int32)


def verification(patches: int, per_list: int) -> Pairs:
    """Positives, intra and inter negatives at every level, in the manner of the published lists (images 0 to 4)."""
    rng = np.random.default_rng(0)
    sequence, other = rng.integers(SEQUENCES, size=(2, per_list))
    a_number = rng.integers(5, size=per_list)
    b_number = (a_number + rng.integers(1, 5, size=per_list)) % 5
    a_patch = rng.integers(patches, size=per_list).astype(np.int32)
    wrong = (a_patch + rng.integers(1, patches, size=per_list).astype(np.int32)) % patches
    parts = []
    for level in range(len(NOISE_LEVELS)):
        for b_sequence, b_patch in ((sequence, a_patch), (sequence, wrong), (other, wrong)):
            a, b = image(sequence, level, a_number), image(b_sequence, level, b_number)
            parts.append((a, a_patch, b, b_patch))
    return Pairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def retrieval(patches: int, queries: int, distractors: int) -> tuple[SplitQueries, Pairs]:
    """Queries and other distractors from the ref images, and the pairs of each query with its fifteen views."""
    chosen = np.random.default_rng(0).permutation(SEQUENCES * patches)[: queries + distractors]
    sequence, patch = (part.astype(np.int32) for part in divmod(chosen, patches))
    asked, others = slice(0, queries), slice(queries, None)
    sides = [GroupedPatches(sequence[at] * np.int32(IMAGES), patch[at], sequence[at]) for at in (asked, others)]
    search = Search(sides[0], sides[1], cuts_of_pools(sequence[asked], sequence[others]), 0)
    names = tuple(f"v_{number:02d}" for number in range(SEQUENCES))
    views = (sides[0].image[:, None] + np.arange(1, IMAGES, dtype=np.int32)).reshape(-1)
    query, own = (np.repeat(values, IMAGES - 1) for values in (sides[0].image, sides[0].patch))
    queries_named = ReferencePatches(names, sequence[asked], patch[asked])
    return SplitQueries("made", queries_named, search), Pairs(query, own, views, own)
