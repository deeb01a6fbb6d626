"""What `check` tries of a plan in some seconds: inputs, read whole in an order drawn by the seed, and one small batch.

Nothing is published. What can't be read is a problem, or counted where it may be skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import CONTROL_FILE
from raybench.descriptors.specs import DescriptorSpec
from raybench.errors import DataError, InputError, OwnCodeFailed, ProblemList
from raybench.parallel import ahead

LOOK_SECONDS = 2.0  # for one set of files
FILES_AHEAD = 32
KEPT = 2  # good inputs, for the batch
MOST_DIFFERENCE = 0.05  # of rows that a batch changes, of their size: half precision and some bits that flip stay below
OF_GPUS = ("CUDA", "NVIDIA", "cuda")  # signs of a class that needs one

Read = TypeVar("Read")
Content = TypeVar("Content")


class Trial(Protocol):
    """What can be tried of a plan."""

    @property
    def notes(self) -> Sequence[str]:
        """What a run would note of its inputs, known already."""
        ...

    def attempt(self, seed: int, problems: ProblemList) -> list[str]:
        """Try it, note what is wrong, and say what was tried, a line each."""
        ...


@dataclass(frozen=True)
class NoTrial:
    """Of a plan whose inputs were all read when it was made."""

    notes: tuple[str, ...] = ()

    def attempt(self, seed: int, problems: ProblemList) -> list[str]:
        return []


@dataclass(frozen=True)
class Looked(Generic[Content]):
    """How many of how many inputs were read whole, the first good ones, and what is wrong with others."""

    count: int
    all: int
    good: list[tuple[int, Content]]
    broken: list[str]

    @property
    def share(self) -> str:
        """How many of how many, in words."""
        return f"all {self.all:,}" if self.count == self.all else f"{self.count:,} of {self.all:,}"

    def note(self, problems: ProblemList, skip: bool) -> list[str]:
        """Note what is broken; with `skip` only if nothing else is there, else it is returned as a line."""
        if not self.broken or (skip and self.good):
            more = "" if self.count == self.all else " at least"
            return [f"{len(self.broken):,}{more} can't be read and will be skipped"] if self.broken else []
        for line in self.broken:
            problems.add(line)
        return []


def look_through(
    items: Sequence[int], read: Callable[[int], Read], decode: Callable[[int, Read], Content], seed: int
) -> Looked[Content]:
    """Read items in an order drawn by the seed, some at once; decode each here, until all are done or time is up."""
    order = np.random.default_rng(seed).permutation(np.asarray(items, np.int64)).tolist()
    until = time.monotonic() + LOOK_SECONDS
    looked = Looked[Content](0, len(order), [], [])
    count = 0
    for item, content in zip(order, ahead(lambda item: _or_error(read, item), order, FILES_AHEAD), strict=True):
        count += 1
        try:
            if isinstance(content, InputError):
                raise content
            found = decode(item, content)
        except InputError as error:
            looked.broken.extend(error.lines())
        else:
            looked.good.extend([(item, found)] * (len(looked.good) < KEPT))
        if time.monotonic() > until:
            break
    return Looked(count, len(order), looked.good, looked.broken)


def batch_words(descriptor: DescriptorSpec, found: NDArray[Any], alone: NDArray[Any], noun: str) -> str:
    """What a batch gave, in words, if its first rows are what they are `alone`, but for the noise of arithmetic."""
    rows = found[: len(alone)].astype(np.float64)
    if rows.shape != alone.shape or np.abs(rows - alone).sum() > MOST_DIFFERENCE * np.abs(rows).sum():
        raise DataError(
            f"descriptor {descriptor.name}: gives {noun} other rows when others are in their batch (tried: "
            f"{len(found)} at once, then {len(alone)} of them), or at a second call; let a row depend "
            "on its own input only (no means over the batch, no chance; a network in eval mode)"
        )
    same = len(found) > 1 and bool((found == found[0]).all())
    return f"{len(found)} {noun}, {found.shape[1]} values each" + "; their rows are all the same, is that meant?" * same


def _or_error(read: Callable[[int], Read], item: int) -> Read | InputError:
    try:
        return read(item)
    except InputError as error:
        return error


def try_batch(descriptor: DescriptorSpec, action: Callable[[], str], problems: ProblemList) -> str:
    """What a small batch gave, in words; what it raised is noted, unless it asks for a GPU and none is here."""
    lacking = not CONTROL_FILE.exists()
    if lacking and descriptor.precision.needs_gpu:
        return f"{descriptor.name} not tried: {descriptor.precision.needs_gpu} needs a GPU, and there is none here"
    try:
        return f"{descriptor.name} tried: {action()}"
    except InputError as error:
        problems.add(error)
    except OwnCodeFailed as error:
        if lacking and any(sign in error.line for sign in OF_GPUS):
            return f"{descriptor.name} not tried: it asks for a GPU, and there is none here ({error.line})"
        problems.add(error.line)
    return f"{descriptor.name} failed"
