"""Pictures x image descriptor -> VectorSet: headers first, then pictures in batches of one shape.

A first stage reads image headers alone. By their sizes pictures are put into an order in which those of one resulting
shape stand together, and that order is cut into shards; a batch holds pictures of one shape and never crosses a shard.
Every row carries `index`, its picture's position in the source's order.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import gpu_words
from raybench.descriptors.image_descriptors import ImageDescriptor, ImageSpec
from raybench.descriptors.own_errors import blamed_on_class
from raybench.digests import digest_of
from raybench.engine.run import FAN_IN, Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError, OutOfReach, Problems
from raybench.extract.checked_rows import broken_rows, checked_rows
from raybench.extract.image_headers import Headers, read_headers
from raybench.extract.joined_sets import join_shards
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays
from raybench.sources.image_files import ImageFiles

IMAGES_PER_BATCH = {"gpu": 64, "cpu": 4}  # more are slower on a CPU: activations leave its caches
SHARDS = 64  # aimed at, so that eight GPUs have eight each
PICTURES_PER_SHARD = (16, 2_048)  # fewest, most
# Of prepared pictures in one shard: several wait for each device, in the object store.
PREPARED_BYTES_PER_SHARD = 128 * 2**20


@dataclass(frozen=True)
class Extraction:
    """How pictures become vectors. `device` is `gpu` or `cpu`; with `skip`, what can't be decoded is left out."""

    descriptor: ImageSpec
    device: str
    batch_size: int | None = None
    shard_size: int | None = None
    skip: bool = False
    exif_rotate: bool = False


@dataclass(frozen=True)
class Described:
    """A set's vectors, the index of each image that could not be read, and of each that was read as far as it goes."""

    vectors: VectorSet
    skipped: NDArray[np.int64]
    cut_short: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True)
class Prepared:
    """A shard's pictures, ready for the device: stacks of one shape, with the index of each picture."""

    index: list[NDArray[np.int64]]
    stacks: list[NDArray[Any]]
    skipped: list[int]
    cut_short: list[int]


@dataclass(frozen=True)
class DescribeImages:
    """The stage that describes pictures; `order` is the index of each, by shape."""

    images: ImageFiles
    order: NDArray[np.int64]
    how: Extraction

    name = "describe-images"
    version = 1

    @property
    def digest(self) -> str:
        how, pillow = replace(self.how, shard_size=None), f"pillow {version('pillow')}"
        return digest_of(self.name, self.version, self.images, self.order, how, pillow)

    @property
    def on_device(self) -> bool:
        return self.how.device == "gpu"

    @cached_property
    def _opened(self) -> ImageDescriptor:
        return self.how.descriptor.open()

    @cached_property
    def _moved(self) -> Any:
        return self.how.descriptor.placed(self._opened, gpu=self.on_device)

    @property
    def device_words(self) -> str:
        """What this process found of its GPU, for receipts."""
        return gpu_words() if self.on_device else ""

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_opened", "_moved")}

    def load(self, shard: Shard) -> Prepared:
        found: dict[tuple[Any, ...], list[tuple[int, NDArray[Any]]]] = defaultdict(list)
        skipped: list[int] = []
        cut_short: list[int] = []
        for number, prepared in self._prepared(self.order[shard.start : shard.stop].tolist(), cut_short):
            if prepared is None:
                skipped.append(number)
            else:
                found[prepared.shape].append((number, prepared))
        index = [np.array([number for number, _ in alike], np.int64) for alike in found.values()]
        stacks = [np.stack([picture for _, picture in alike]) for alike in found.values()]
        return Prepared(index, stacks, skipped, cut_short)

    def compute(self, payload: Prepared) -> Arrays:
        index = np.concatenate([*payload.index, np.zeros(0, np.int64)])
        vectors = self._described(payload) if len(index) else self._no_rows()
        cut_short = {"cut_short": np.array(payload.cut_short, np.int64)} if payload.cut_short else {}
        return {**vector_arrays(index, vectors), "skipped": np.array(payload.skipped, np.int64), **cut_short}

    def keys(self, shard: Shard) -> str:
        first, last = (self.images.keys[self.order[item]] for item in (shard.start, shard.stop - 1))
        return f"{len(shard)} images by shape, {first} … {last}, in {self.images.root}"

    def _prepared(self, wanted: list[int], cut_short: list[int]) -> Iterator[tuple[int, NDArray[Any] | None]]:
        """Each picture's index and what `prepare` made of it, None where it can't be decoded and may be skipped.

        The index of each whose file is cut short is added to `cut_short`.
        """
        for index, data in zip(wanted, self.images.files.read_each(wanted), strict=True):
            try:
                if isinstance(data, DataError):
                    raise data
                image, is_cut = self.images.readable(index, data, self.how.exif_rotate)
            except DataError as error:
                if not self.how.skip or isinstance(error, OutOfReach):
                    raise
                yield index, None
            else:
                cut_short += [index] * is_cut
                yield index, np.asarray(self.how.descriptor.prepared(self._opened, image))

    def _described(self, payload: Prepared) -> NDArray[Any]:
        size = self.how.batch_size or IMAGES_PER_BATCH[self.how.device]
        cuts = [(which, start) for which, stack in enumerate(payload.stacks) for start in range(0, len(stack), size)]
        batches = (payload.stacks[which][start : start + size] for which, start in cuts)
        index = [payload.index[which][start : start + size] for which, start in cuts]
        parts = []
        for some, rows in zip(index, self.how.descriptor.described_each(self._moved, batches), strict=True):
            checked = checked_rows(rows, len(some), self.how.descriptor, self.images.uri(int(some[0])), "images")
            self._check_finite(some, checked)
            parts.append(checked)
        self._check_dimension(index, parts)
        return np.concatenate(parts)

    def _check_finite(self, index: NDArray[np.int64], vectors: NDArray[Any]) -> None:
        bad = broken_rows(vectors)
        if len(bad):
            raise DataError(
                f"{self.images.uri(int(index[bad[0]]))}: its descriptor {self.how.descriptor.name} has NaN or infinite "
                f"values ({len(bad)} of a batch of {len(index)}); mend the descriptor"
            )

    def _check_dimension(self, index: Sequence[NDArray[np.int64]], parts: Sequence[NDArray[Any]]) -> None:
        for (one, here), (other, there) in itertools.pairwise(zip(index, parts, strict=True)):
            if here.shape[1] != there.shape[1]:
                first, second = (self.images.uri(int(some[0])) for some in (one, other))
                raise DataError(
                    _other_dimension(self.how.descriptor.name, second, there.shape[1], first, here.shape[1])
                )

    def _no_rows(self) -> NDArray[Any]:
        """No rows of the right dimension, which only the descriptor knows: ask it about a black picture."""
        black = np.asarray(self.how.descriptor.prepared(self._opened, np.zeros((64, 64, 3), np.uint8)))
        return np.asarray(next(self.how.descriptor.described_each(self._moved, [black[np.newaxis]])))[:0]


@dataclass(frozen=True)
class Survey:
    """The stage that looks over described shards: their dimension, which pictures could not be decoded, and of which
    only a part."""

    mapped: Mapped

    name = "survey-images"
    version = 2
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.mapped.digest)

    def load(self, shard: Shard) -> list[Arrays]:
        return [self.mapped.read(index) for index in range(shard.start, shard.stop)]

    def compute(self, payload: list[Arrays]) -> Arrays:
        return {
            "dimension": np.array([arrays["vectors"].shape[1] for arrays in payload], np.int64),
            "skipped": np.concatenate([arrays["skipped"] for arrays in payload]),
            "cut_short": np.concatenate([arrays.get("cut_short", np.zeros(0, np.int64)) for arrays in payload]),
        }

    def keys(self, shard: Shard) -> str:
        return f"described shards {shard.start}..{shard.stop - 1}"


def describe_images(run: Run, sets: Mapping[str, ImageFiles], how: Extraction) -> dict[str, Described]:
    """The vectors of each set of pictures, by its role (queries …), which messages name.

    Without `skip` every broken header, of whichever set, is an error before any picture is decoded.
    """
    headers = {role: read_headers(run, images, how.exif_rotate) for role, images in sets.items()}
    broken = dict.fromkeys(line for each in headers.values() for line in each.broken.values())  # sets may share files
    if broken and not how.skip:
        raise Problems(broken)
    return {role: _describe(run, role, images, headers[role], how) for role, images in sets.items()}


def _describe(run: Run, role: str, images: ImageFiles, headers: Headers, how: Extraction) -> Described:
    if len(headers.broken) == len(images):
        raise DataError(f"{images.root}: none of its {len(images)} images can be decoded")
    order, prepared_bytes = shape_order(how.descriptor, headers)
    stage = DescribeImages(images, order, how)
    mapped = run.map(stage, len(order), how.shard_size or default_shard_size(len(order), prepared_bytes))
    late, cut_short = _survey(run, mapped, stage)
    vectors = VectorSet(role, mapped, len(images))
    if how.shard_size is None:  # whoever gives a size gets files of it
        vectors = join_shards(run, vectors)
    return Described(vectors, np.array(sorted([*headers.broken, *late]), np.int64), np.sort(cut_short))


def shape_order(descriptor: ImageSpec, headers: Headers) -> tuple[NDArray[np.int64], int]:
    """The index of each picture by (resulting shape, index), and the bytes of all prepared pictures, one per value.

    A descriptor that does not say which shape it makes is taken to keep the picture's own.
    """
    shape = getattr(descriptor.open(), "shape", None) or (lambda width, height: (height, width))
    # As one number each: of a million rows, `unique` along an axis takes a second.
    kinds, kind = np.unique(headers.sizes[:, 0] << 32 | headers.sizes[:, 1], return_inverse=True)
    sizes = [divmod(both, 2**32) for both in kinds.tolist()]
    with blamed_on_class(descriptor.target):
        made = np.array([shape(width, height) if width else (0, 0) for width, height in sizes], np.int64)
    shapes = made[kind]  # (n, 2): height, width
    index = np.setdiff1d(np.arange(len(headers.sizes)), np.array(list(headers.broken), np.int64))
    by_shape = np.lexsort((index, shapes[index, 1], shapes[index, 0]))
    return index[by_shape], int(3 * shapes[index].prod(axis=1).sum())


def default_shard_size(count: int, prepared_bytes: int) -> int:
    """Pictures in a shard: by their number and size alone, never by the cluster."""
    fewest, most = PICTURES_PER_SHARD
    fitting = PREPARED_BYTES_PER_SHARD * count // max(prepared_bytes, 1)
    return max(min(-(-count // SHARDS), most, fitting), min(fewest, max(fitting, 1)))


def _survey(run: Run, mapped: Mapped, stage: DescribeImages) -> tuple[list[int], NDArray[np.int64]]:
    """The index of each picture that turned out to be broken, and of each that is cut short.

    An error if not all vectors have one dimension.
    """
    surveyed = run.map(Survey(mapped), len(mapped.shards), FAN_IN)
    looks = [run.read(surveyed, shard.index) for shard in surveyed.shards]
    dimension = np.concatenate([look["dimension"] for look in looks])
    other = np.flatnonzero(dimension != dimension[0])
    if len(other):
        first, second = (stage.keys(mapped.shards[index]) for index in (0, int(other[0])))
        raise DataError(_other_dimension(stage.how.descriptor.name, second, dimension[other[0]], first, dimension[0]))
    skipped, cut_short = (np.concatenate([look[name] for look in looks]) for name in ("skipped", "cut_short"))
    return skipped.tolist(), cut_short


def _other_dimension(name: str, here: str, found: int, there: str, expected: int) -> str:
    return f"{here}: descriptor {name} has dimension {found}, of {there} it has {expected}; all must be the same"
