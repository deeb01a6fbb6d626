"""A run whose stages are compared and not computed: it walks over a finished run's store and publishes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.engine.items import Write, name_of
from raybench.engine.run import Run, output_name
from raybench.engine.shards import Shard, Shards
from raybench.engine.stages import FILE_BYTES, Mapped, Stage
from raybench.errors import CorruptShard, InputError, RaybenchError
from raybench.formats import shardfile
from raybench.formats.shardfile import Arrays
from raybench.runs.sessions import Session
from raybench.runs.verifying.other_cuts import computed_otherwise
from raybench.search.codecs import CodecFailed


class NotStored(RaybenchError):
    """The walk needs a shard that can't be read from the store; names it."""


class CheckedRun(Run):
    """Computes a share of the shards of each stage again and keeps a line for each that differs from what is stored."""

    def __init__(self, out: str, store: str, session: Session, share: float, seed: int) -> None:
        super().__init__(out, store, session.executor, session.observer)
        self.stages = self.stored = self.looked_at = 0
        self.differences: list[str] = []
        self.not_verified: list[str] = []
        self._share, self._random = share, random.Random(seed)

    def map(self, stage: Stage, count: int, size: int, wanted: Iterable[int] | None = None) -> Mapped:
        """Compare some of the stage's stored shards."""
        digest = digest_of(shardfile.VERSION, stage.digest, count, size)
        mapped = Mapped(self.store, stage.name, digest, Shards(stage.name, count, size))
        numbers = range(len(mapped.shards)) if wanted is None else sorted({item // size for item in wanted})
        there = {entry.name for entry in storage.list_files(mapped.folder)}
        stored = [number for number in numbers if mapped.shards[number].file_name in there]
        if numbers and not stored:
            _raise_if_it_can_only_fail(stage, mapped.shards[numbers[0]])
        if len(stored) < len(numbers):
            missing = len(numbers) - len(stored)
            self.not_verified.append(f"{stage.name}: {missing:,} of {len(numbers):,} shards are not in the store")
        for number in self._chosen(stored):
            self._compare(stage, mapped, number)
        return mapped

    def write(self, pattern: str, function: Callable[..., Any], items: Sequence[Any], *inputs: Any) -> None:
        """Compare some of the output files."""
        names = [output_name(pattern.format(name=name_of(item), item=item)) for item in items]
        self.files += names
        stage = Write(function, items, inputs, version=0)
        shards = Shards(stage.name, len(names), 1)
        for number in self._chosen(range(len(names))):
            with _noting(stage.name, self.not_verified):
                found = computed_otherwise(stage, shards[number])[FILE_BYTES].tobytes()
                self.looked_at += 1
                if found != self.file(names[number]):
                    self.differences.append(f"{stage.name}: file {names[number]} differs from what the stages give")

    def read(self, mapped: Mapped, index: int) -> Arrays:
        """A stored shard for the driver; nothing is mended."""
        try:
            return mapped.read(index)
        except CorruptShard as broken:
            raise NotStored(f"{mapped.name}: shard {index} can't be read ({broken.reason})") from broken

    def _chosen(self, numbers: Sequence[int]) -> list[int]:
        """A random share of a stage's shards, at least one where there is one."""
        if not numbers:
            return []
        self.stages, self.stored = self.stages + 1, self.stored + len(numbers)
        return sorted(self._random.sample(numbers, min(max(round(self._share * len(numbers)), 1), len(numbers))))

    def _compare(self, stage: Stage, mapped: Mapped, number: int) -> None:
        shard = mapped.shards[number]
        try:
            stored = mapped.read(number)
        except CorruptShard as broken:
            self.differences.append(f"{stage.name}: shard {number} can't be read: {broken.reason}")
            return
        with _noting(f"{stage.name}: shard {number}", self.not_verified):
            found = computed_otherwise(stage, shard)
            self.looked_at += 1
            where = f"{stage.name}: shard {number} ({stage.keys(shard)})"
            self.differences += [f"{where}: {words}" for words in differing(stored, found)]

    def file(self, name: str) -> bytes | None:
        """An output file's content, if it is there."""
        try:
            return storage.read(storage.join(self.out, name))
        except FileNotFoundError:
            return None


def _raise_if_it_can_only_fail(stage: Stage, shard: Shard) -> None:
    """Let a codec that could not be trained fail as it did in the run, which went on without it and stored nothing."""
    try:
        computed_otherwise(stage, shard)
    except CodecFailed:
        raise
    except (CorruptShard, InputError):
        return


@contextmanager
def _noting(what: str, notes: list[str]) -> Iterator[None]:
    """Note that something can't be computed again, for want of what it rests on, and go on behind it."""
    try:
        yield
    except (CorruptShard, InputError) as error:
        reason = error.reason if isinstance(error, CorruptShard) else str(error)
        notes.append(f"{what}: can't be computed again ({reason})")


def differing(stored: Arrays, found: Arrays) -> list[str]:
    """How arrays differ, in words, one line for each; bytes count, so that equal NaN are equal."""
    lines = []
    for name in dict.fromkeys([*stored, *found]):
        if name not in stored or name not in found:
            lines.append(f"{name} is {'not stored' if name not in stored else 'stored but not computed'}")
        elif stored[name].shape != found[name].shape:
            lines.append(f"{name} has shape {stored[name].shape}, computed again {found[name].shape}")
        elif stored[name].dtype != found[name].dtype or stored[name].tobytes() != found[name].tobytes():
            lines.append(f"{name} differs in {_amount(stored[name], found[name])}")
    return lines


def _amount(stored: NDArray[Any], found: NDArray[Any]) -> str:
    """How many values differ, where the first of them is, and by how much."""
    same = (stored == found) | ((stored != stored) & (found != found))
    places = np.argwhere(~same)
    if not len(places):
        return f"its bits alone ({stored.dtype}, computed again {found.dtype})"
    words = f"{len(places):,} of {stored.size:,} values, the first in row {places[0][0]:,}"
    if stored.dtype.kind not in "biuf":
        return words
    far = np.abs(stored[~same].astype(np.float64) - found[~same].astype(np.float64))
    return f"{words}, by up to {far.max():.3g}"
