"""The k nearest references of many queries along a run of references, with a running threshold.

Blocks of references pass by all queries. Of each query a list of scores is kept, and only what may still be among its
k best enters: a score that is at least the k-th best so far, less what both may be off. At the end the float64 routine
measures what is left on the lists, once, and decides: neither blocks nor the scores' precision show in what comes out.
Where scores can't tell enough apart (equal vectors, one huge one), `nearest` does it slice by slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.metrics.partials import TopK
from raybench.search.distances import RowPairs, measured_by
from raybench.search.nearest import Neighbours, nearest
from raybench.search.proposers import Proposer
from raybench.search.scores import Lengths, Reached, Scores, is_tame, rounded_down, set_places
from raybench.search.tiles import even_size, room_for
from raybench.search.value_tiles import bound_of_kth

FIRST_REFERENCES = 2_048  # that pass by first
FIRST_CELLS = 1 << 22  # scores that are looked at on the host, before anything is ruled out
SLICE_REFERENCES = 32_768  # of the slices that `nearest` gets

Vectors = NDArray[np.float32]
MakeScores = Callable[[Vectors], Scores]


class TooManyInQuestion(Exception):
    """Scores leave more pairs in question than lists have room for."""


@dataclass(frozen=True)
class References:
    """A run of references in pieces, views of mapped files that are never joined. A place is that in the whole set."""

    places: Sequence[NDArray[np.int64]]
    pieces: Sequence[Vectors]

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    @property
    def starts(self) -> NDArray[np.int64]:
        """The number of each piece's first reference in the run."""
        return np.cumsum([0, *map(len, self.pieces)])[:-1]

    def blocks(self, most: int) -> Iterator[tuple[int, Vectors]]:
        """Consecutive references of one piece, and the number of the first in the run; few at first, then `most`.

        The first block costs more per score, as nothing is ruled out yet. Each later one is at most as large as all
        before it, so that the lists have room for what it brings.
        """
        for first, piece in zip(self.starts.tolist(), self.pieces, strict=True):
            start = 0
            while start < len(piece):
                stop = start + min(max(first + start, FIRST_REFERENCES), most)
                yield first + start, piece[start:stop]
                start = stop


def nearest_along(
    queries: Vectors,
    references: References,
    k: int,
    distances: Sequence[str],
    make_scores: MakeScores,
    otherwise: Callable[[], Proposer],
) -> list[Neighbours]:
    """The k nearest references of each query (all if there are fewer) by each distance. Ties go to the lower place.

    >>> from raybench.search.by_numpy import ByNumpy
    >>> from raybench.search.scores import FloatScores
    >>> rows = References([np.arange(3)], [np.float32([[2], [1], [-1]])])
    >>> by_l2, by_ip = nearest_along(np.float32([[1]]), rows, 2, ["squared_L2", "ip"], FloatScores, ByNumpy)
    >>> by_l2.place.tolist(), by_ip.place.tolist()
    ([[1, 0]], [[0, 1]])
    """
    k = min(k, len(references))
    if k and all(is_tame(rows) for rows in (queries, *references.pieces)):
        lengths = Lengths.of(references.pieces)
        try:
            # Of references of one length one product serves all distances.
            together = [tuple(distances)] if lengths.is_narrow else [(distance,) for distance in distances]
            return [
                found
                for some in together
                for found in _decided(
                    queries,
                    references,
                    k,
                    some,
                    _in_question(queries, references, k, some, lengths, make_scores(queries)),
                )
            ]
        except TooManyInQuestion:
            pass
    return [_slice_by_slice(queries, references, k, distance, otherwise()) for distance in distances]


def _in_question(
    queries: Vectors, references: References, k: int, distances: Sequence[str], lengths: Lengths, scores: Scores
) -> RowPairs:
    """Pairs with every reference that may be among a query's k nearest by one of the distances; in order of queries."""
    with_offsets = "squared_L2" in distances and not lengths.is_narrow
    slack = lengths.spread if "squared_L2" in distances and lengths.is_narrow else 0.0
    lists = Lists(len(queries), k, slack, scores.rounding)
    seen = settled = 0
    for first, block in references.blocks(scores.block_references):
        errors = scores.put(block, lengths.offsets(block) if with_offsets else None)
        cells = scores.tile_cells if settled else min(scores.tile_cells, FIRST_CELLS)
        height = even_size(len(queries), cells // len(block))
        tiles = [slice(start, min(start + height, len(queries))) for start in range(0, len(queries), height)]
        seen += len(block)
        for rows in tiles:
            if not settled:
                lists.enter_all(rows, first, scores.values(rows), errors[rows])
            else:
                lists.enter(rows, first, scores.reaching(rows, lists.floor[rows] - errors[rows]), errors[rows])
            if seen >= max(2 * settled, k):
                lists.settle(rows)
        if seen >= max(2 * settled, k):
            settled = seen
    for rows in tiles:
        lists.settle(rows)
    return lists.pairs()


class Lists:
    """Of each query the references in question, with their scores. `floor`: at least k references surely reach it.

    `floor` is lowered by `slack`, by which the order of scores may differ from that of a distance.
    """

    def __init__(self, queries: int, k: int, slack: float, rounding: float) -> None:
        self.floor = np.full(queries, -np.inf)
        self._errors = np.zeros(queries)  # the largest of any score that was entered
        self._count = np.zeros(queries, np.int64)
        self._score = np.full((queries, room_for(k)), -np.inf, np.float32)
        self._number = np.zeros((queries, room_for(k)), np.int32)
        self._k, self._slack, self._rounding = k, slack, rounding

    def enter_all(self, rows: slice, first: int, values: NDArray[np.float32], errors: NDArray[np.float64]) -> None:
        """Enter what may be among the k best of these scores, (queries, references)."""
        if values.shape[1] >= self._k:
            kth = -bound_of_kth(-values, self._k)
            self._raise_floor(rows, kth, errors)
        query, reference = set_places(values >= self._lowest_in_question(rows, errors)[:, None])
        self.enter(rows, first, (query + rows.start, reference, values[query, reference]), errors)

    def enter(self, rows: slice, first: int, reached: Reached, errors: NDArray[np.float64]) -> None:
        """Enter pairs of a block of references, of which `first` is the number of the first."""
        query, reference, score = reached
        np.maximum(self._errors[rows], errors, out=self._errors[rows])
        if self._crowded(rows, query):
            self.settle(rows)
            kept = score >= self._lowest_in_question(rows, errors)[query - rows.start]
            query, reference, score = query[kept], reference[kept], score[kept]
            if self._crowded(rows, query):
                raise TooManyInQuestion
        place = self._count[query] + turns(query)
        self._score[query, place], self._number[query, place] = score, first + reference
        self._count[rows] += np.bincount(query - rows.start, minlength=rows.stop - rows.start)

    def settle(self, rows: slice) -> None:
        """Raise the floor by what is on the lists of these queries, and strike what is not in question any more."""
        score, number = self._score[rows], self._number[rows]
        kth = np.partition(score, score.shape[1] - self._k, axis=1)[:, score.shape[1] - self._k]
        self._raise_floor(rows, kth, self._errors[rows])
        there = np.arange(score.shape[1]) < self._count[rows, None]
        query, place = set_places(there & (score >= self._lowest_in_question(rows, self._errors[rows])[:, None]))
        kept, turn = (score[query, place], number[query, place]), turns(query)
        score[:] = -np.inf
        score[query, turn], number[query, turn] = kept
        self._count[rows] = np.bincount(query, minlength=len(score))

    def pairs(self) -> RowPairs:
        """All that is on the lists: queries, and numbers of references in the run."""
        query = np.repeat(np.arange(len(self._count)), self._count)
        return query, self._number[query, turns(query)].astype(np.int64)

    def _crowded(self, rows: slice, query: NDArray[np.int64]) -> bool:
        more = np.bincount(query - rows.start, minlength=rows.stop - rows.start)
        return bool((self._count[rows] + more).max(initial=0) > self._score.shape[1])

    def _raise_floor(self, rows: slice, kth: NDArray[np.float32], errors: NDArray[np.float64]) -> None:
        """At least k references have a score of at least `kth`, which may be off and rounded."""
        known = np.isfinite(kth)
        exact = kth.astype(np.float64)
        surely = np.where(known, exact - self._rounding * np.abs(exact, where=known, out=np.zeros(len(exact))), -np.inf)
        np.maximum(self.floor[rows], surely - errors - self._slack, out=self.floor[rows])

    def _lowest_in_question(self, rows: slice, errors: NDArray[np.float64]) -> NDArray[np.float32]:
        """The lowest stored score that may still be in question: before it was rounded it may have been higher."""
        exact = self.floor[rows] - errors
        return rounded_down(exact / np.where(exact > 0, 1.0 + self._rounding, 1.0 - self._rounding))


def turns(query: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of these, which rise: how many equal ones stand before it.

    >>> turns(np.array([3, 3, 5, 5, 5])).tolist()
    [0, 1, 0, 1, 2]
    """
    first = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(len(query)) - np.repeat(first, np.diff(first, append=len(query)))


def _decided(
    queries: Vectors, references: References, k: int, distances: Sequence[str], pairs: RowPairs
) -> list[Neighbours]:
    """What is in question, measured and ordered."""
    query, number = pairs
    measured = np.empty((len(distances), len(query)))
    place = np.empty(len(query), np.int64)
    piece = np.searchsorted(references.starts, number, "right") - 1
    for index, (places, vectors) in enumerate(zip(references.places, references.pieces, strict=True)):
        (own,) = np.nonzero(piece == index)
        row = number[own] - references.starts[index]
        place[own] = places[row]
        measured[:, own] = measured_by(queries, vectors, (query[own], row), distances)
    found = [Neighbours.unknown(len(queries), k) for _ in distances]
    for one, by_distance in zip(found, measured, strict=True):
        one.fill(query, place, by_distance)
    return found


def _slice_by_slice(queries: Vectors, references: References, k: int, distance: str, proposer: Proposer) -> Neighbours:
    """By `nearest`, which copes with equal vectors and numbers of any size."""
    whole = TopK.of(np.zeros(0, np.int64), np.zeros((0, k)), np.zeros((0, k), np.int64), k)
    for places, piece in zip(references.places, references.pieces, strict=True):
        for start in range(0, len(piece), SLICE_REFERENCES):
            at = slice(start, start + SLICE_REFERENCES)
            found = nearest(queries, piece[at], k, distance, proposer, places[at])
            own = TopK.of(np.arange(len(queries)), found.distance, found.place, k)
            whole = TopK.merged([whole, own]) if len(whole.query) else own
    return Neighbours(whole.distance, whole.reference)
