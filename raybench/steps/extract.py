"""Source x Descriptor -> Features: vectors of patch images, from pixels or read from disk, in shards of images.

Batches never cross a patch image, so that no figure depends on the shard size. `Features` is the handle by which later
steps gather rows.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors import Descriptor, DescriptorSpec, moved
from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.run import Run
from raybench.engine.stage import Mapped
from raybench.errors import DataError
from raybench.formats.shardfile import Arrays
from raybench.sources import Item, Strips, VectorFiles

PATCHES_PER_BATCH = 1_024
IMAGES_PER_SHARD = 16  # one whole HPatches sequence: some 85 MB of pixels in, 10 MB of 128-d vectors out


@dataclass(frozen=True)
class Extract:
    """The stage that computes descriptors of patch strips."""

    source: Strips
    descriptor: DescriptorSpec
    device: str
    batch_size: int | None

    name = "extract"
    version = 1

    @property
    def digest(self) -> str:
        parts = (self.source.digest, self.descriptor.digest, self.device, self.batch_size)
        return digest_of(self.name, self.version, *parts)

    @property
    def on_device(self) -> bool:
        return self.device == "gpu"

    @cached_property
    def _opened(self) -> Descriptor:
        return self.descriptor.open()

    @cached_property
    def _moved(self) -> Descriptor:
        return moved(self._opened, gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_opened", "_moved")}

    def load(self, shard: Shard) -> list[Item]:
        return [(uri, self._opened.prepare(patches)) for uri, patches in self.source.read(shard.start, shard.stop)]

    def compute(self, payload: list[Item]) -> Arrays:
        return _features([(uri, self._describe(uri, prepared)) for uri, prepared in payload])

    def keys(self, shard: Shard) -> str:
        return _range(self.source.keys, shard)

    def _describe(self, uri: str, prepared: NDArray[Any]) -> NDArray[Any]:
        size = self.batch_size or PATCHES_PER_BATCH
        batches = [prepared[start : start + size] for start in range(0, max(len(prepared), 1), size)]
        vectors = np.concatenate([self._checked(uri, batch) for batch in batches])
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1)) if vectors.dtype.kind == "f" else np.zeros(0)
        if len(bad):
            raise DataError(
                f"{uri}: descriptor {self.descriptor.name} of patch {bad[0]} has NaN or infinite values "
                f"({len(bad)} such patches); mend the descriptor"
            )
        return vectors

    def _checked(self, uri: str, batch: NDArray[Any]) -> NDArray[Any]:
        vectors = np.asarray(self._moved.describe(batch))
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise DataError(
                f"{uri}: descriptor {self.descriptor.name} gave an array of shape {vectors.shape} for {len(batch)} "
                f"patches; expected ({len(batch)}, dimension)"
            )
        return vectors


@dataclass(frozen=True)
class ReadVectors:
    """The stage that reads descriptors from disk. They stay float64 unless float32 holds them exactly."""

    source: VectorFiles
    distance: str

    name = "read-vectors"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.source.digest, self.distance == "hamming")

    def load(self, shard: Shard) -> list[Item]:
        return list(self.source.read(shard.start, shard.stop))

    def compute(self, payload: list[Item]) -> Arrays:
        for uri, vectors in payload:
            bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
            if len(bad):
                raise DataError(f"{uri}: line {bad[0] + 1}: NaN or infinite value")
        if self.distance == "hamming":
            return _features([(uri, _as_bytes(uri, vectors)) for uri, vectors in payload])
        return _features([(uri, _compact(vectors)) for uri, vectors in payload])

    def keys(self, shard: Shard) -> str:
        return _range(self.source.keys, shard)


@dataclass(frozen=True)
class Features:
    """Vectors of patch images: `gather` fetches rows by (image, patch)."""

    mapped: Mapped
    root: str
    images: tuple[str, ...]
    images_per_shard: int

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
            if found.shape[1] != out.shape[1]:
                raise DataError(
                    f"{self.root}: {self.images[image[run.start]]} has dimension {found.shape[1]}, "
                    f"{self.images[image[0]]} has {out.shape[1]}; all must be the same"
                )
            if found.dtype == out.dtype:
                np.take(found, rows[run], axis=0, out=out[run], mode="clip")  # "raise" would copy twice
            else:  # read vectors are float32 in one shard and float64 in the next, whichever holds them
                out[run] = found[rows[run]]
        return out

    def rows_of(self, image: int) -> NDArray[Any]:
        """All rows of one image, as a view of its mapped shard."""
        vectors = self._vectors(image // self.images_per_shard)
        start = int(self._start[image])
        return vectors[start : start + int(self._count[image])]

    def _vectors(self, shard: int) -> NDArray[Any]:
        if shard not in self._open:
            arrays = self.mapped.read(shard)
            counts = arrays["counts"]
            own = slice(shard * self.images_per_shard, shard * self.images_per_shard + len(counts))
            self._count[own], self._start[own] = counts, np.cumsum(counts) - counts
            self._open[shard] = arrays["vectors"]
        return self._open[shard]

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


def extract_features(run: Run, stage: Extract | ReadVectors, wanted: list[int], shard_size: int | None) -> Features:
    """Features of the wanted images; the plan is over the whole source, so other benchmarks share it."""
    size = shard_size or IMAGES_PER_SHARD
    mapped = run.map(stage, len(stage.source.keys), size, wanted)
    return Features(mapped, stage.source.root, stage.source.keys, size)


def _features(items: list[Item]) -> Arrays:
    dimensions = {vectors.shape[1]: uri for uri, vectors in items if len(vectors)}
    if len(dimensions) > 1:
        (one, here), (other, there) = list(dimensions.items())[:2]
        raise DataError(f"{there}: dimension {other}, but {here} has {one}; all must be the same")
    width = next(iter(dimensions), 0)
    vectors = [vectors.reshape(-1, width) for _, vectors in items]
    counts = np.array([len(rows) for rows in vectors], np.int64)
    return {"vectors": np.concatenate(vectors), "counts": counts}


def _compact(vectors: NDArray[np.float64]) -> NDArray[Any]:
    narrow = vectors.astype(np.float32)
    return narrow if np.array_equal(narrow, vectors) else vectors


def _as_bytes(uri: str, vectors: NDArray[np.float64]) -> NDArray[np.uint8]:
    narrow = vectors.astype(np.uint8)
    bad = np.flatnonzero((narrow != vectors).any(axis=1))
    if len(bad):
        raise DataError(f"{uri}: line {bad[0] + 1}: --distance hamming needs bits (0, 1) or bytes (0..255)")
    return narrow


def _range(keys: tuple[str, ...], shard: Shard) -> str:
    first, last = keys[shard.start], keys[shard.stop - 1]
    return first if first == last else f"{first} … {last}"
