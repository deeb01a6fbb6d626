"""The files that HPatches 2016 retrieval leaves: curves, the AP of every query, and `.results` in the published layout.

Each function gives the bytes of one file, on whatever worker. What is measured, and how, is in `hbench_retrieval`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.pools import Task
from raybench.engine.stages import Mapped
from raybench.formats import hbench_retrieval as files
from raybench.formats.parquet import write_parquet

KINDS = ("image", "patch")  # what a query may look for; the scores of each are under its name


def curve_file(scores: Mapped, tasks: tuple[Task, ...], index: int) -> bytes:
    """PR points of every query of a task, for images and for patches, as Parquet."""
    arrays = scores.read(index)
    queries, length = arrays["image"].shape
    rank = np.tile(np.arange(length + 1), queries)
    columns: dict[str, NDArray[np.generic]] = {"query": np.repeat(tasks[index].signatures, length + 1), "rank": rank}
    for kind in KINDS:
        found = np.pad(np.cumsum(arrays[kind], axis=1, dtype=np.int64), ((0, 0), (1, 0)))
        columns[f"{kind}_recall"] = (found / np.maximum(found[:, -1:], 1)).ravel()
        columns[f"{kind}_precision"] = np.where(rank > 0, found.ravel() / np.maximum(rank, 1), 1.0)
    return write_parquet(columns)


def query_file(scores: Mapped, tasks: tuple[Task, ...], index: int) -> bytes:
    """The AP of every query of all tasks, as Parquet; there is one such file."""
    every = [scores.read(task) for task in range(len(tasks))]
    columns: dict[str, NDArray[np.generic]] = {
        "task": np.repeat([task.name for task in tasks], [len(arrays["image_ap"]) for arrays in every]),
        "query": np.concatenate([task.signatures for task in tasks]),
        **{f"{kind}_ap": np.concatenate([arrays[f"{kind}_ap"] for arrays in every]) for kind in KINDS},
    }
    return write_parquet(columns)


def result_file(lists: Mapped, tasks: tuple[Task, ...], index: int) -> bytes:
    """The `.results` file of a task in the published layout."""
    return files.write_names(tasks[index].content, lists.read(index)["lists"])
