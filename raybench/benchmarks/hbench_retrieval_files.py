"""The files that HPatches 2016 retrieval leaves: curves, the AP of every query, and `.results` in the published layout.

Each is a stage whose shards are output files. What is measured, and how, is in `hbench_retrieval`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench_pools import Task
from raybench.digests import digest_of
from raybench.engine.plan import Shard
from raybench.engine.stage import FILE_BYTES, Mapped
from raybench.formats import hbench_retrieval as files
from raybench.formats.hbench_retrieval import Codes
from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays

KINDS = ("image", "patch")  # what a query may look for; the scores of each are under its name


@dataclass(frozen=True)
class Curves:
    """The export of PR points of every query, for images and for patches, a Parquet file a task."""

    scores: Mapped
    tasks: tuple[Task, ...]

    name = "curves"
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.scores.digest)

    def load(self, shard: Shard) -> tuple[Task, Arrays]:
        return self.tasks[shard.start], self.scores.read(shard.start)

    def compute(self, payload: tuple[Task, Arrays]) -> Arrays:
        task, scores = payload
        queries, length = scores["image"].shape
        rank = np.tile(np.arange(length + 1), queries)
        columns: dict[str, NDArray[np.generic]] = {"query": np.repeat(task.signatures, length + 1), "rank": rank}
        for kind in KINDS:
            found = np.pad(np.cumsum(scores[kind], axis=1, dtype=np.int64), ((0, 0), (1, 0)))
            columns[f"{kind}_recall"] = (found / np.maximum(found[:, -1:], 1)).ravel()
            columns[f"{kind}_precision"] = np.where(rank > 0, found.ravel() / np.maximum(rank, 1), 1.0)
        return {FILE_BYTES: np.frombuffer(write_parquet(columns), np.uint8)}

    def keys(self, shard: Shard) -> str:
        return f"task {self.tasks[shard.start].name}"


@dataclass(frozen=True)
class PerQuery:
    """The export of the AP of every query of all tasks, one Parquet file."""

    scores: Mapped
    tasks: tuple[Task, ...]

    name = "per-query"
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.scores.digest)

    def load(self, shard: Shard) -> list[Arrays]:
        return [self.scores.read(index) for index in range(len(self.tasks))]

    def compute(self, payload: list[Arrays]) -> Arrays:
        counts = [len(scores["image_ap"]) for scores in payload]
        columns: dict[str, NDArray[np.generic]] = {
            "task": np.repeat([task.name for task in self.tasks], counts),
            "query": np.concatenate([task.signatures for task in self.tasks]),
            **{f"{kind}_ap": np.concatenate([scores[f"{kind}_ap"] for scores in payload]) for kind in KINDS},
        }
        return {FILE_BYTES: np.frombuffer(write_parquet(columns), np.uint8)}

    def keys(self, shard: Shard) -> str:
        return f"all {len(self.tasks)} tasks"


@dataclass(frozen=True)
class ResultLists:
    """The export of `.results` files in the published layout, a task a file."""

    lists: Mapped
    tasks: tuple[Task, ...]

    name = "results"
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.lists.digest)

    def load(self, shard: Shard) -> tuple[Task, Codes]:
        return self.tasks[shard.start], self.lists.read(shard.start)["lists"]

    def compute(self, payload: tuple[Task, Codes]) -> Arrays:
        task, lists = payload
        return {FILE_BYTES: np.frombuffer(files.write_names(task.content, lists), np.uint8)}

    def keys(self, shard: Shard) -> str:
        return f"{self.tasks[shard.start].name}.results"
