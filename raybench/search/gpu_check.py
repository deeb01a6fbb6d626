"""A GPU's searches tried on a small one whose answer is known, before any result rests on them.

torch's wheel and that of faiss-gpu each bring a CUDA runtime of their own, for which the driver must do. A library that
fails, or that is off by more than `bound` allows, is found here: references stand so close behind each other that such
an error changes their order, and the order must be that of the float64 routine.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.cuda import GpuFacts, gpu_facts
from raybench.errors import ConfigError, reason_of
from raybench.search.bound import Bound
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import ByTorch
from raybench.search.coarse import CoarseScores
from raybench.search.distances import SET_DISTANCES, measured
from raybench.search.nearest import nearest
from raybench.search.proposers import Proposer
from raybench.search.running import References, nearest_along

QUERIES, CLOSE_REFERENCES, DIMENSION, K = 16, 64, 64, 10
TRIED_PIECE = 128  # references
STEPS = (2.0, 2.0**10)  # between one reference and the next, in errors of float32; the second is for coarse scores

Rows = NDArray[np.float32]
Search = Callable[[Rows, Rows, int, str], NDArray[np.int64]]  # of queries and references: the k nearest of each query


def disagreement(search: Search) -> str:
    """How a search differs from float64, in a few words; empty if it does not."""
    for distance in SET_DISTANCES:
        for step in STEPS:
            queries, references = close_rows(distance, step)
            try:
                found = search(queries, references, K, distance)
            except Exception as cause:  # noqa: BLE001 (FAISS and CUDA raise what they like; each means "not this one")
                return f"failed: {reason_of(cause)}"
            wrong = int((found != exact_nearest(queries, references, distance)).any(axis=1).sum())
            if wrong:
                return f"wrong neighbours by {distance} for {wrong} of {QUERIES} queries"
    return ""


def close_rows(distance: str, step: float) -> tuple[Rows, Rows]:
    """Queries and references: each query has some near it, one behind the other by `step` errors of float32.

    Directions are drawn at random; the last coordinate is solved for the wanted distance.
    """
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((QUERIES, DIMENSION))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    queries[:, -1] = 1.0
    near = queries[:, None] + 0.5 * rng.standard_normal((QUERIES, CLOSE_REFERENCES, DIMENSION)) / DIMENSION**0.5
    near[..., -1] = 0.0
    gap = step * float(Bound(distance, DIMENSION).errors(np.array([2.0]), 2.0)[0])
    wanted = gap * rng.permuted(np.tile(np.arange(CLOSE_REFERENCES), (QUERIES, 1)), axis=1)
    if distance == "ip":
        near[..., -1] = 3.0 - wanted - np.einsum("qd,qrd->qr", queries, near)
    else:
        squares = np.square(near - queries[:, None])[..., :-1].sum(axis=2)
        near[..., -1] = 1.0 - np.sqrt(1.0 + wanted - squares)
    return queries.astype(np.float32), near.reshape(-1, DIMENSION).astype(np.float32)


def exact_nearest(queries: Rows, references: Rows, distance: str) -> NDArray[np.int64]:
    """The rows of the K nearest, by the routine that decides, of all pairs."""
    pairs = np.divmod(np.arange(len(queries) * len(references)), len(references))
    distances = measured(queries, references, pairs, distance).reshape(len(queries), -1)
    return np.argsort(distances, axis=1, kind="stable")[:, :K]


@dataclass(frozen=True)
class CheckedGpu:
    """What makes a proposer on the GPU of this process, None where there is no GPU; and words for receipts."""

    make_proposer: Callable[[], Proposer] | None
    words: str


def check_gpu(
    facts: GpuFacts, needed: Mapping[str, Search], proposers: Mapping[str, Callable[[], Proposer]]
) -> CheckedGpu:
    """The first of the proposers that agrees with float64. A GPU on which none does, or not all that is needed, is
    refused."""
    if not facts.is_there:
        return CheckedGpu(None, facts.words)
    facts.check()
    failed = [f"{name} {problem}" for name, search in needed.items() if (problem := disagreement(search))]
    for name, make in {} if failed else proposers.items():
        problem = disagreement(search_of(make))
        if not problem:
            return CheckedGpu(make, "; ".join([facts.words, *failed, f"searched by {name}"]))
        failed.append(f"{name} {problem}")
    raise ConfigError(
        f"the GPU of {socket.gethostname()} ({facts.words}): {'; '.join(failed)}; "
        "install versions that fit together (see constraints.txt), or give --device cpu"
    )


def search_of(make: Callable[[], Proposer]) -> Search:
    """A search with a proposer that is made at the first call, and goes with the search. It must settle most queries:
    what it leaves open `nearest` finds without it, rightly but slowly."""
    made = cache(make)

    def search(queries: Rows, references: Rows, k: int, distance: str) -> NDArray[np.int64]:
        left = sum(len(unsettled) for _, unsettled in made().near(queries, references, k, distance))
        if left > len(queries) // 2:
            raise RuntimeError(f"leaves {left} of {len(queries)} queries open")
        return nearest(queries, references, k, distance, made()).place

    return search


def _by_scores(queries: Rows, references: Rows, k: int, distance: str) -> NDArray[np.int64]:
    """By torch's bfloat16 scores on the GPU; where they can't tell enough apart, that is numpy's to do."""
    # In pieces: what comes after the first block goes by a running threshold, as nearly all of a search does.
    edges = range(TRIED_PIECE, len(references), TRIED_PIECE)
    whole = References(np.split(np.arange(len(references)), edges), np.split(references, edges))
    (found,) = nearest_along(queries, whole, k, [distance], partial(CoarseScores, device="cuda"), ByNumpy)
    return found.place


@cache
def checked_gpu() -> CheckedGpu:
    """The GPU of this process, looked at once. Most searches there are torch's; FAISS has the rest, if it is right."""
    by_torch = partial(ByTorch, "cuda")
    needed = {"torch in bfloat16": _by_scores, "torch": search_of(by_torch)}
    return check_gpu(gpu_facts(), needed, {"FAISS": ByFaiss.on_gpu, "torch": by_torch})


def proposer_for(gpu: bool) -> Proposer:
    """What proposes in this process: on the GPU what was found to be right there, else FAISS on the CPU."""
    make = checked_gpu().make_proposer if gpu else None
    return make() if make is not None else ByFaiss(gpu=False)
