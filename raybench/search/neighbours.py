"""Nearest neighbours as stages: targets of each patch of an image pair, and the nearest in a pool of whole images.

Features are mapped, never loaded whole; `search.nearest` decides, so neither shards nor tiles show in what comes out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.patches import Features
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import TopK
from raybench.search.by_torch import multiplier, tiler
from raybench.search.closer import nearest_and_closer
from raybench.search.count_closer import gathered, uses_device
from raybench.search.nearest import nearest

MATCH_ARRAYS = ("index", "distance", "closer", "fewest", "most")
IMAGE_PAIRS_PER_SHARD = 10  # two sequences at one level: 0.2 s of work, 0.6 MB out
POOL_IMAGES_PER_SHARD = 12  # two sequences at one level


@dataclass(frozen=True)
class ImagePairs:
    """Pairs of images, counted into a Features' images. `truth` says where each patch of `a` is in `b`."""

    a: NDArray[np.int32]
    b: NDArray[np.int32]
    truth: tuple[NDArray[np.int64] | None, ...]  # None: at its own index

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True)
class Matches:
    """Matches of image pairs in published shards; `first` is the number of each shard's first pair."""

    mapped: Mapped
    first: tuple[int, ...]

    def read(self, pairs: Sequence[int]) -> Iterator[Arrays]:
        """For each pair `index` and `distance` (patches, K), and the targets before the true one (see `closer`)."""
        for shard, own in itertools.groupby(pairs, lambda pair: int(np.searchsorted(self.first, pair, "right")) - 1):
            arrays = self.mapped.read(shard)
            ends = np.cumsum(arrays["counts"])
            for pair in own:
                place = pair - self.first[shard]
                rows = slice(ends[place] - arrays["counts"][place], ends[place])
                yield {name: arrays[name][rows] for name in MATCH_ARRAYS}


@dataclass(frozen=True)
class MatchPatches:
    """The stage over image pairs: the K nearest targets of each reference patch, and the rank of the true one."""

    features: Features
    pairs: ImagePairs
    k: int
    distance: str
    on_device: bool  # no part of the digest: the bytes are the same

    name = "matches"
    version = 2

    @cached_property
    def digest(self) -> str:
        pairs = (self.pairs.a, self.pairs.b, self.pairs.truth)
        return digest_of(self.name, self.version, self.features.mapped.digest, self.distance, self.k, pairs)

    def load(self, shard: Shard) -> range:
        return range(shard.start, shard.stop)

    def compute(self, payload: range) -> Arrays:
        return joined_matches([self._match(pair) for pair in payload])

    def keys(self, shard: Shard) -> str:
        first, last = (self._words(pair) for pair in (shard.start, shard.stop - 1))
        return first if first == last else f"{first} … {last}"

    def _match(self, pair: int) -> Arrays:
        queries, references = (self.features.whole(int(side[pair])) for side in (self.pairs.a, self.pairs.b))
        _check_dimension(self.features, queries, references, self._words(pair))
        given = self.pairs.truth[pair]
        truth = np.arange(len(queries)) if given is None else given
        found, before = nearest_and_closer(
            queries, references, truth, self.k, self.distance, tiler(self.on_device, self.distance)
        )
        return {"index": found.place, "distance": found.distance, **vars(before)}

    def _words(self, pair: int) -> str:
        return f"{self.features.images[self.pairs.a[pair]]} to {self.features.images[self.pairs.b[pair]]}"


def joined_matches(matches: Sequence[Arrays]) -> Arrays:
    """Matches of several pairs as one shard, which `Matches` reads."""
    joined = {name: np.concatenate([found[name] for found in matches]) for name in MATCH_ARRAYS}
    return {"counts": np.array([len(found["closer"]) for found in matches], np.int64), **joined}


def match_images(
    run: Run, features: Features, pairs: ImagePairs, k: int, distance: str, shard_size: int | None
) -> Matches:
    """The matches of every image pair, by its number."""
    stage = MatchPatches(features, pairs, k, distance, uses_device(run, distance))
    mapped = run.map(stage, len(pairs), shard_size or IMAGE_PAIRS_PER_SHARD)
    return Matches(mapped, tuple(shard.start for shard in mapped.shards))


@dataclass(frozen=True)
class PoolQueries:
    """One pool of images with its queries; images count into a Features' images.

    `first` is the number of each image's first patch as a reference, rising, `start` that of the first query.
    """

    images: NDArray[np.int32]
    first: NDArray[np.int64]
    query_image: NDArray[np.int32]
    query_patch: NDArray[np.int32]
    start: int


@dataclass(frozen=True)
class SearchPools:
    """The stage over (pool, image): the nearest of a pool's queries among the patches of a few of its images."""

    features: Features
    pools: tuple[PoolQueries, ...]
    k: int
    distance: str
    on_device: bool  # no part of the digest: the bytes are the same

    name = "neighbours"
    version = 1

    @cached_property
    def digest(self) -> str:
        pools = [(pool.images, pool.first, pool.query_image, pool.query_patch) for pool in self.pools]
        return digest_of(self.name, self.version, self.features.mapped.digest, self.distance, self.k, pools)

    @cached_property
    def _first(self) -> NDArray[np.int64]:
        """The number of each pool's first item, and of the end."""
        return np.cumsum([0, *(len(pool.images) for pool in self.pools)])

    def load(self, shard: Shard) -> list[tuple[int, range]]:
        """The pools that the shard meets, with the places of its images in each."""
        met = []
        for pool, (first, end) in enumerate(itertools.pairwise(self._first.tolist())):
            places = range(max(shard.start, first) - first, min(shard.stop, end) - first)
            if len(places):
                met.append((pool, places))
        return met

    def compute(self, payload: list[tuple[int, range]]) -> Arrays:
        return TopK.merged([self._search(self.pools[pool], places) for pool, places in payload]).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"pool images {shard.start:,}..{shard.stop - 1:,}"

    def work(self, shard: Shard) -> float:
        return float(sum(len(self.pools[pool].query_image) * len(places) for pool, places in self.load(shard)))

    def rows(self, shard: Shard) -> NDArray[np.int64]:
        met = [self.pools[pool] for pool, _ in self.load(shard)]
        return np.unique(np.concatenate([pool.start + np.arange(len(pool.query_image)) for pool in met]))

    def _search(self, pool: PoolQueries, places: range) -> TopK:
        images = [self.features.whole(int(pool.images[place])) for place in places]
        numbers = [pool.first[place] + np.arange(len(rows)) for place, rows in zip(places, images, strict=True)]
        queries = gathered(self.features, pool.query_image, pool.query_patch)
        for place, rows in zip(places, images, strict=True):
            _check_dimension(self.features, queries, rows, self.features.images[pool.images[place]])
        found = nearest(queries, np.concatenate(images), self.k, self.distance, multiplier(self.on_device))
        number = pool.start + np.arange(len(queries))
        return TopK.of(number, found.distance, np.concatenate(numbers)[found.place], self.k)


def search_pools(
    run: Run, features: Features, pools: tuple[PoolQueries, ...], k: int, distance: str, shard_size: int | None
) -> Mapped:
    """TopK of every query, in shards that are still to be folded."""
    count = sum(len(pool.images) for pool in pools)
    stage = SearchPools(features, pools, k, distance, uses_device(run, distance))
    return run.map(stage, count, shard_size or POOL_IMAGES_PER_SHARD)


def _check_dimension(features: Features, queries: NDArray[Any], references: NDArray[Any], where: str) -> None:
    if queries.shape[1] != references.shape[1]:
        raise DataError(
            f"{features.root}: {where}: dimension {queries.shape[1]} and {references.shape[1]}; all must be the same"
        )
