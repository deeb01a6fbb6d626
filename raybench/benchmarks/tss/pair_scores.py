"""Truth x results -> scores of flow pairs, in shards of pairs; what is wrong with a pair travels along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.scoring import PairScore, Rules, Side, score_pair
from raybench.benchmarks.tss.trees import TruthSet
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.errors import DataError
from raybench.formats.shardfile import Arrays

PAIRS_PER_SHARD = 4  # of 800 x 600: some 40 MB read


class Results(Protocol):
    """Where the results of pairs come from: a Results tree, or flows that were just computed."""

    @property
    def digest(self) -> str: ...

    def result(self, item: int) -> Side: ...


@dataclass(frozen=True)
class PairScores:
    """Scores by pair: SegIUR and T1..T50 both ways, states of flows and masks, and a problem, or nothing."""

    index: NDArray[np.int64]  # (pairs,), rising once merged
    values: NDArray[np.float64]  # (pairs, 2, 51)
    states: NDArray[np.int8]  # (pairs, 2): flows, masks
    problems: NDArray[np.str_]  # (pairs,)

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        columns = [(part.index, part.values, part.states, part.problems) for part in parts]
        index, values, states, problems = (np.concatenate(column) for column in zip(*columns, strict=True))
        order = np.argsort(index)
        if np.any(np.diff(index[order]) == 0):
            raise ValueError("a pair comes twice")
        return cls(index[order], values[order], states[order], problems[order])

    def to_arrays(self) -> Arrays:
        return {"index": self.index, "values": self.values, "states": self.states, "problems": self.problems}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(arrays["index"], arrays["values"], arrays["states"], arrays["problems"])


@dataclass(frozen=True)
class ScorePairs:
    """The stage that scores pairs. A pair that can't be read gets NaN and the reason, so that all are said together."""

    truth: TruthSet
    results: Results
    rules: Rules

    name = "score-pairs"
    version = 2
    on_device = False

    @property
    def digest(self) -> str:
        keys = [pair.key for pair in self.truth.pairs]
        rules = (self.rules.tool, self.rules.auto_flip, self.rules.use_prec)
        return digest_of(self.name, self.version, keys, self.truth.digest, self.results.digest, rules)

    def load(self, shard: Shard) -> list[tuple[int, Side, Side] | tuple[int, str]]:
        return [self._sides(item) for item in range(shard.start, shard.stop)]

    def compute(self, payload: list[Any]) -> Arrays:
        scored = [self._scored(*item) for item in payload]
        index = np.array([item[0] for item in payload], np.int64)
        values = np.stack([values for values, _, _ in scored])
        states = np.array([states for _, states, _ in scored], np.int8)
        return PairScores(index, values, states, np.array([problem for _, _, problem in scored])).to_arrays()

    def keys(self, shard: Shard) -> str:
        first, last = self.truth.pairs[shard.start].key, self.truth.pairs[shard.stop - 1].key
        return first if first == last else f"{first} … {last}"

    def _sides(self, item: int) -> tuple[int, Side, Side] | tuple[int, str]:
        problems = []
        sides = []
        for read in (self.truth.truth, self.results.result):
            try:
                sides.append(read(item))
            except DataError as error:
                problems.append(str(error))
        return (item, "\n".join(problems)) if problems else (item, sides[0], sides[1])

    def _scored(self, item: int, *sides: Any) -> tuple[NDArray[np.float64], tuple[int, int], str]:
        nothing = np.full((2, 51), np.nan)
        if len(sides) == 1:
            return nothing, (0, 0), sides[0]
        score = score_pair(sides[0], sides[1], self.rules)
        return score.values, (score.flow_state, score.mask_state), self._undefined(item, score)

    def _undefined(self, item: int, score: PairScore) -> str:
        lines = []
        for side in (0, 1):
            if np.isnan(score.values[side, 0]):
                uri = self.truth.uri(item, f"mask{side + 1}.png")
                lines.append(f"{uri}: neither it nor the result has any foreground, so that SegIUR is 0/0")
            if np.isnan(score.values[side, 1:]).any():
                uri = self.truth.uri(item, f"flow{side + 1}.flo")
                lines.append(f"{uri}: no pixel with known flow; expected some to compare with")
        return "\n".join(lines)


def score_pairs(run: Run, stage: ScorePairs, shard_size: int | None) -> PairScores:
    """The scores of every pair, in order."""
    mapped = run.map(stage, len(stage.truth.pairs), shard_size or PAIRS_PER_SHARD)
    return PairScores.from_arrays(run.read(run.fold(mapped, PairScores), 0))
