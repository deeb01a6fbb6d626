"""Source x Descriptor -> Features: vectors of patch images, from pixels or read from disk, in shards of images.

Batches never cross a patch image, so that no figure depends on the shard size. `Features` is the handle by which later
steps gather rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import gpu_words
from raybench.descriptors.patch_descriptors import Descriptor
from raybench.descriptors.specs import DescriptorSpec
from raybench.digests import digest_of
from raybench.engine.run import FAN_IN, Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError, OutOfReach, ProblemList
from raybench.extract.checked_rows import broken_rows, checked_rows
from raybench.extract.narrow_rows import as_bytes, compact
from raybench.formats.shardfile import Arrays
from raybench.sources.patches import Source

MaybeItem = tuple[str, NDArray[Any] | None]  # a file's name and content; None: can't be read, and is skipped

PATCHES_PER_BATCH = 1_024
IMAGES_PER_SHARD = 16  # one whole HPatches sequence: some 85 MB of pixels in, 10 MB of 128-d vectors out


@dataclass(frozen=True)
class Extract:
    """The stage that computes descriptors of patch strips."""

    source: Source
    descriptor: DescriptorSpec
    device: str
    batch_size: int | None
    skip: bool = False
    wanted: frozenset[int] = frozenset()  # no part of the digest: others may want other images of the same files

    name = "extract"
    version = 1

    @property
    def digest(self) -> str:
        parts = (self.source.digest, self.descriptor.digest, self.device, self.batch_size, self.skip)
        return digest_of(self.name, self.version, *parts)

    @property
    def on_device(self) -> bool:
        return self.device == "gpu"

    @cached_property
    def _opened(self) -> Descriptor:
        descriptor: Descriptor = self.descriptor.open()
        return descriptor

    @cached_property
    def _moved(self) -> Descriptor:
        descriptor: Descriptor = self.descriptor.placed(self._opened, gpu=self.on_device)
        return descriptor

    @property
    def device_words(self) -> str:
        """What this process found of its GPU, for receipts."""
        return gpu_words() if self.on_device else ""

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_opened", "_moved")}

    def load(self, shard: Shard) -> list[MaybeItem]:
        return self.prepared(_readable(self.source, shard, self.skip, self.wanted))

    def prepared(self, items: list[MaybeItem]) -> list[MaybeItem]:
        """What `compute` takes, from names and patches."""
        return [(uri, None if patches is None else self._prepared(uri, patches)) for uri, patches in items]

    def compute(self, payload: list[MaybeItem]) -> Arrays:
        there = [(uri, prepared) for uri, prepared in payload if prepared is not None]
        vectors = self._described(there)
        return _features([(uri, None if prepared is None else next(vectors)) for uri, prepared in payload])

    def keys(self, shard: Shard) -> str:
        return _range(self.source.keys, shard)

    def counts(self, shard: Shard) -> NDArray[np.int64]:
        return _counts(self.source, shard)

    def _prepared(self, uri: str, patches: NDArray[np.uint8]) -> NDArray[Any]:
        prepared: NDArray[Any] = self.descriptor.prepared(self._opened, patches)
        shape = getattr(prepared, "shape", ())
        if tuple(shape[:1]) != (len(patches),):
            found = f"shape {tuple(shape)}" if shape else f"a {type(prepared).__name__}"
            raise DataError(
                f"{uri}: prepare() of descriptor {self.descriptor.name} gave {found} for {len(patches)} patches; "
                f"expected an array ({len(patches)}, …)"
            )
        return prepared

    def _described(self, items: list[tuple[str, NDArray[Any]]]) -> Iterator[NDArray[Any]]:
        """The vectors of each item. All batches of the shard are one sequence, so that a device never runs dry."""
        size = self.batch_size or PATCHES_PER_BATCH
        cuts = [(item, start) for item, (_, rows) in enumerate(items) for start in range(0, max(len(rows), 1), size)]
        described = self.descriptor.described_each(
            self._moved, (items[item][1][start : start + size] for item, start in cuts)
        )
        for item, batches in itertools.groupby(cuts, key=itemgetter(0)):
            uri, prepared = items[item]
            parts = [
                checked_rows(next(described), min(size, len(prepared) - start), self.descriptor, uri, "patches")
                for _, start in batches
            ]
            yield self._checked(uri, np.concatenate(parts))

    def _checked(self, uri: str, vectors: NDArray[Any]) -> NDArray[Any]:
        bad = broken_rows(vectors)
        if len(bad):
            raise DataError(
                f"{uri}: descriptor {self.descriptor.name} of patch {bad[0]} has NaN or infinite values "
                f"({len(bad)} such patches); mend the descriptor"
            )
        return vectors


@dataclass(frozen=True)
class ReadVectors:
    """The stage that reads descriptors from disk, kept as the smallest of uint8, float32, float64 that is exact."""

    source: Source
    distance: str
    skip: bool = False
    wanted: frozenset[int] = frozenset()

    name = "read-vectors"
    version = 2
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.source.digest, self.distance == "hamming", self.skip)

    def load(self, shard: Shard) -> list[MaybeItem]:
        return _readable(self.source, shard, self.skip, self.wanted)

    def compute(self, payload: list[MaybeItem]) -> Arrays:
        narrowed = as_bytes if self.distance == "hamming" else compact
        return _features([(uri, None if vectors is None else narrowed(uri, vectors)) for uri, vectors in payload])

    def keys(self, shard: Shard) -> str:
        return _range(self.source.keys, shard)

    def counts(self, shard: Shard) -> NDArray[np.int64]:
        return _counts(self.source, shard)


@dataclass(frozen=True)
class Features:
    """Vectors of patch images: `gather` fetches rows by (image, patch)."""

    mapped: Mapped
    root: str
    images: tuple[str, ...]
    images_per_shard: int

    @property
    def digest(self) -> str:
        return self.mapped.digest

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_open", "_start", "_count")}

    @cached_property
    def _open(self) -> dict[int, NDArray[Any]]:
        """Vectors of the shards that were opened."""
        return {}

    @cached_property
    def _start(self) -> NDArray[np.int64]:
        """The row of each image's first patch within its shard, once that was opened."""
        return np.zeros(len(self.images), np.int64)

    @cached_property
    def _count(self) -> NDArray[np.int64]:
        """The patches of each image, once its shard was opened."""
        return np.zeros(len(self.images), np.int64)

    def shard_of(self, image: NDArray[np.int32]) -> NDArray[np.int32]:
        """The shards in which images are."""
        return image // np.int32(self.images_per_shard)

    def gather(self, image: NDArray[np.int32], patch: NDArray[np.int32]) -> NDArray[Any]:
        """Rows (n, dim) of the patches, in this order. Shards are mapped, never loaded whole.

        Neighbours in one shard are taken at once, so bring rows in an order of few changes between shards.
        """
        shards = self.shard_of(image)
        edges = [0, *(np.flatnonzero(shards[1:] != shards[:-1]) + 1).tolist(), len(image)]
        runs = [slice(start, stop) for start, stop in itertools.pairwise(edges)]
        vectors = [self._vectors(int(shards[run.start])) for run in runs]
        rows = self._rows(image, patch)
        out: NDArray[Any] = np.empty((len(image), vectors[0].shape[1]), np.result_type(*vectors))
        for found, run in zip(vectors, runs, strict=True):
            if found.dtype == out.dtype:
                np.take(found, rows[run], axis=0, out=out[run], mode="clip")  # "raise" would copy twice
            else:  # read vectors are of one kind in one shard and of another in the next, whichever holds them
                out[run] = found[rows[run]]
        return out

    def holds(self, image: NDArray[np.int32], patch: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of these patches are there; image -1 is none."""
        there: NDArray[np.bool_] = image >= 0
        for shard in np.unique(self.shard_of(image[there])).tolist():
            self._vectors(shard)
        return there & (patch < self._count[image])

    def whole(self, image: int) -> NDArray[Any]:
        """All rows of one image, as a view of its mapped shard."""
        vectors = self._vectors(image // self.images_per_shard)
        return vectors[self._start[image] : self._start[image] + self._count[image]]

    def _vectors(self, shard: int) -> NDArray[Any]:
        if shard not in self._open:
            arrays = self.mapped.read(shard)
            counts = arrays["counts"]
            own = slice(shard * self.images_per_shard, shard * self.images_per_shard + len(counts))
            self._count[own], self._start[own] = counts, np.cumsum(counts) - counts
            self._check_dimension(shard, arrays["vectors"])
            self._open[shard] = arrays["vectors"]
        return self._open[shard]

    def _check_dimension(self, shard: int, vectors: NDArray[Any]) -> None:
        for other, opened in self._open.items():
            if len(vectors) and len(opened) and vectors.shape[1] != opened.shape[1]:
                here, there = (self.images[index * self.images_per_shard] for index in (shard, other))
                raise DataError(
                    f"{self.root}: {here} and those after it have dimension {vectors.shape[1]}, {there} has "
                    f"{opened.shape[1]}; all must be the same"
                )

    def _rows(self, image: NDArray[np.int32], patch: NDArray[np.int32]) -> NDArray[np.int64]:
        """Rows within each image's shard, which is open."""
        beyond = patch >= self._count[image]
        if beyond.any():
            worst = int(beyond.argmax())
            raise DataError(
                f"{self.root}: {self.images[image[worst]]} has {self._count[image[worst]]} patches, "
                f"the tasks name patch {patch[worst]}"
            )
        return self._start[image] + patch


@dataclass(frozen=True)
class Unreadable:
    """The stage that lists images of which nothing could be read (`--on-bad-input skip`)."""

    features: Features
    shards: tuple[int, ...]

    name = "unreadable"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.features.mapped.digest, self.shards)

    def load(self, shard: Shard) -> list[tuple[int, NDArray[np.int64]]]:
        mine = self.shards[shard.start : shard.stop]
        first = self.features.images_per_shard
        return [(index * first, self.features.mapped.read(index)["counts"]) for index in mine]

    def compute(self, payload: list[tuple[int, NDArray[np.int64]]]) -> Arrays:
        return {"images": np.concatenate([first + np.flatnonzero(counts == 0) for first, counts in payload])}

    def keys(self, shard: Shard) -> str:
        return f"feature files {shard.start}..{shard.stop - 1}"


def unreadable_images(run: Run, features: Features, wanted: list[int]) -> list[str]:
    """Keys of the wanted images of which nothing could be read."""
    shards = tuple(sorted({item // features.images_per_shard for item in wanted}))
    mapped = run.map(Unreadable(features, shards), len(shards), FAN_IN)
    asked = set(wanted)
    found = [image for shard in mapped.shards for image in run.read(mapped, shard.index)["images"].tolist()]
    return [features.images[image] for image in found if image in asked]


def extract_features(run: Run, stage: Extract | ReadVectors, wanted: list[int], shard_size: int | None) -> Features:
    """Features of the wanted images; the plan is over the whole source, so other benchmarks share it."""
    size = shard_size or IMAGES_PER_SHARD
    stage = replace(stage, wanted=frozenset(wanted))
    mapped = run.map(stage, len(stage.source.keys), size, wanted)
    return Features(mapped, stage.source.root, stage.source.keys, size)


def _readable(source: Source, shard: Shard, skip: bool, wanted: frozenset[int]) -> list[MaybeItem]:
    """Each item's name and content; None where it can't be read and may be skipped, or nobody asked for it."""
    items: list[MaybeItem] = []
    for item in range(shard.start, shard.stop):
        try:
            items.extend(source.read(item, item + 1))
        except DataError as error:
            if item in wanted and (not skip or isinstance(error, OutOfReach)):
                raise
            items.append((source.uri(item), None))
    return items


def _features(items: list[MaybeItem]) -> Arrays:
    dimensions = {vectors.shape[1]: uri for uri, vectors in items if vectors is not None and len(vectors)}
    if len(dimensions) > 1:
        (one, here), (other, there) = list(dimensions.items())[:2]
        raise DataError(f"{there}: dimension {other}, but {here} has {one}; all must be the same")
    width = next(iter(dimensions), 0)
    counts = np.array([0 if vectors is None else len(vectors) for _, vectors in items], np.int64)
    parts = [vectors.reshape(-1, width) for _, vectors in items if vectors is not None]
    return {"vectors": np.concatenate(parts) if parts else np.zeros((0, 0), np.float32), "counts": counts}


def _counts(source: Source, shard: Shard) -> NDArray[np.int64]:
    """The patches of each image of a shard, from headers alone; 0 where they can't be told."""
    counts = source.counts(range(shard.start, shard.stop), ProblemList())
    return np.array([counts.get(item, 0) for item in range(shard.start, shard.stop)], np.int64)


def _range(keys: tuple[str, ...], shard: Shard) -> str:
    first, last = keys[shard.start], keys[shard.stop - 1]
    return first if first == last else f"{first} … {last}"
