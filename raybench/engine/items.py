"""Stages over items: a module-level function is the stage, one item is one shard.

The function's name names the stage, and the digest follows from function, version, items and inputs; so a step that
computes one thing per item needs no class. Stages over ranges of rows are classes (see `engine.stages`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from raybench.digests import digest_of
from raybench.engine.shards import Shard
from raybench.engine.stages import FILE_BYTES, Mapped
from raybench.formats.shardfile import Arrays


class PerItem(Mapped):
    """What a stage over items published: one shard per item. As an input it is handed over item by item."""

    @property
    def whole(self) -> Mapped:
        """The same shards as an input that every item gets as a whole."""
        return Mapped(self.store, self.name, self.digest, self.shards)


@dataclass(frozen=True)
class Each:
    """The stage `function(item, *inputs)`. Of an input that is PerItem, each call gets its own item's arrays."""

    function: Callable[..., Any]  # arrays; of `Write` the bytes of a file
    items: Sequence[Any]
    inputs: tuple[Any, ...]
    version: int

    on_device = False

    def __post_init__(self) -> None:
        for value in self.inputs:
            if isinstance(value, PerItem) and len(value.shards) != len(self.items):
                raise ValueError(f"{self.name}: {value.name} has {len(value.shards)} items, not {len(self.items)}")

    @property
    def name(self) -> str:
        return self.function.__name__.strip("_").replace("_", "-")

    @cached_property
    def digest(self) -> str:
        function = f"{self.function.__module__}.{self.function.__qualname__}"
        return digest_of(function, self.version, list(self.items), list(self.inputs))

    def load(self, shard: Shard) -> int:
        return shard.start

    def compute(self, payload: int) -> Arrays:
        arrays: Arrays = self._called(payload)
        return arrays

    def keys(self, shard: Shard) -> str:
        return name_of(self.items[shard.start])

    def _called(self, index: int) -> Any:
        inputs = (value.read(index) if isinstance(value, PerItem) else value for value in self.inputs)
        return self.function(self.items[index], *inputs)


class Write(Each):
    """The stage whose function gives the bytes of one output file per item."""

    def compute(self, payload: int) -> Arrays:
        return {FILE_BYTES: np.frombuffer(self._called(payload), np.uint8)}


def name_of(item: Any) -> str:
    """An item in words: its name, or itself."""
    return str(getattr(item, "name", item))
