"""The truth of HPatches 2016 retrieval: pools of images, their queries, and what is relevant to each.

The truth is `X.labels` where that is there, else the query's own patch in all images of its sequence. Everything that
is wrong is noted, file by file, before anything is computed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.hbench.inputs import ResultFiles, TaskFiles
from raybench.errors import ProblemList
from raybench.formats.hbench_retrieval import NO_PATCH, Codes, RetrievalTask, image_of, patch_code, patch_of, signature
from raybench.search.neighbours import PoolQueries
from raybench.sources.patches import Source, items_of

SEED_GROUP = re.compile(r"(.+_\d+s)_\d+")  # <train|test>_<easy|hard>_<n>s_<seed>


@dataclass(frozen=True)
class PoolTask:
    """A `.benchmark`: pool, queries that count with their clusters (queries, most), and the first query's number."""

    name: str
    content: RetrievalTask
    clusters: Codes
    start: int

    @property
    def stop(self) -> int:
        return self.start + len(self.content.queries)

    @property
    def signatures(self) -> NDArray[np.str_]:
        """The queries by name."""
        return np.array([signature(self.content.pool, code) for code in self.content.queries.tolist()])

    @property
    def group(self) -> str | None:
        """The name without its seed, if it has one."""
        found = SEED_GROUP.fullmatch(self.name)
        return found[1] if found else None


@dataclass(frozen=True)
class GivenLists:
    """What the `.results` file of a task says of its queries that count, (queries, names)."""

    name: str
    lists: Codes


def pool_tasks(found: TaskFiles[RetrievalTask, Codes], limit: int | None) -> tuple[PoolTask, ...]:
    """The tasks with their truth, their queries numbered one after the other."""
    built: list[PoolTask] = []
    for name, content in found.sound.items():
        clusters = found.labels[name] if name in found.labels else _clusters(content)
        kept = RetrievalTask(content.pool, content.queries[:limit])
        built.append(PoolTask(name, kept, clusters[:limit], built[-1].stop if built else 0))
    return tuple(built)


def _clusters(task: RetrievalTask) -> Codes:
    """Without labels the cluster is `SEQ.*.K` over the pool's images of the query's sequence."""
    sequences = np.array([image.split("/")[0] for image in task.pool])
    same = sequences == sequences[image_of(task.queries)][:, None]  # (queries, pool images)
    code = patch_code(np.arange(len(sequences))[None, :], patch_of(task.queries)[:, None])
    return np.where(same, code, NO_PATCH)


def given_tasks(tasks: Sequence[PoolTask], results: ResultFiles[Codes]) -> tuple[GivenLists, ...]:
    """The lists of each task that has results, which are all unless something was noted."""
    return tuple(
        GivenLists(task.name, results.parsed[task.name][: len(task.content.queries)])
        for task in tasks
        if task.name in results.parsed
    )


def located_pools(
    tasks: Sequence[PoolTask], folder: str, source: Source, problems: ProblemList
) -> tuple[PoolQueries, ...]:
    """The pools with images as items of the source; names and indices that are not there are noted."""
    items = items_of(source, sorted({image for task in tasks for image in task.content.pool}), problems)
    counts = source.counts(items.values(), problems)
    pools = []
    for task in tasks:
        pool = task.content.pool
        images = np.array([items.get(image, -1) for image in pool], np.int32)
        count = np.array([counts.get(int(item), np.iinfo(np.int32).max) for item in images], np.int64)
        image, patch = image_of(task.content.queries), patch_of(task.content.queries)
        beyond = np.flatnonzero(patch >= count[image])
        if len(beyond):
            line = int(beyond[0])
            problems.add(
                f"{folder}/{task.name}.benchmark: line {line + 2}: patch "
                f"{signature(pool, int(task.content.queries[line]))} is out of range; {pool[image[line]]} has "
                f"{count[image[line]]} patches ({len(beyond):,} such lines)"
            )
        first = patch_code(np.arange(len(pool)), np.zeros(len(pool), np.int64))
        pools.append(PoolQueries(images, first, images[image], patch.astype(np.int32), task.start))
    return tuple(pools)
