"""The TSS scores: of one pair in both directions, of every pair, and their means per group.

What a result lacks is handled as the tools do it: without flows their scores are 0; without masks these are estimated
from the flows, and without either SegIUR is 0. Steps on the way (flows and masks at the truth's size) are kept, so
that pictures show just what was scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.tss import rules_matlab, rules_vc
from raybench.benchmarks.tss.rules_vc import Mask, PixelFlags, Size
from raybench.benchmarks.tss.trees import FlowPair, FlowsAndMasks, TruthTree
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError, OutOfReach
from raybench.formats.flo import FlowField
from raybench.formats.shardfile import Arrays

ABSENT, GIVEN, ESTIMATED, COMPLEMENT = range(4)  # where the scored flows or masks came from
STATES = ("absent", "given", "estimated", "complement")

Measure = Callable[[Mask, Mask], float]


class Tool(Protocol):
    """A tool of the kit, as a module: how it fits results to the truth's size, estimates masks and measures flow."""

    CHOOSES_SIDE_OF_ESTIMATES: bool

    def fitted_flows(self, flows: tuple[FlowField, FlowField], sizes: tuple[Size, Size], /) -> tuple[Any, Any]: ...

    def fitted_mask(self, mask: Mask, size: Size, /) -> Mask: ...

    def consistent_mask(self, flow: Any, back: Any, /) -> Mask: ...

    def flow_accuracies(self, flow: Any, truth: FlowField, other: Size, /) -> NDArray[np.float64]: ...


TOOLS: dict[str, Tool] = {"vc": rules_vc, "matlab": rules_matlab}


@dataclass(frozen=True)
class Rules:
    """Which tool's rules, and its two options: `autoFlip` and `usePrec`."""

    tool: str = "vc"
    auto_flip: bool = False
    use_prec: bool = False


@dataclass(frozen=True)
class PairScore:
    """SegIUR and T1..T50 of 1→2 and 2→1, (2, 51), and what they rest on, at the truth's size."""

    values: NDArray[np.float64]
    flow_state: int
    mask_state: int
    flows: tuple[NDArray[Any], NDArray[Any]] | None
    masks: tuple[Mask, Mask] | None


def score_pair(truth: FlowsAndMasks, result: FlowsAndMasks, rules: Rules) -> PairScore:
    """Score a result against the truth, which has both flows and masks."""
    assert truth.flows is not None and truth.masks is not None
    tool = TOOLS[rules.tool]
    measure = equal_share if rules.use_prec else intersection_over_union
    sizes = (truth.flows[0].shape[:2], truth.flows[1].shape[:2])
    true_masks = (tool.fitted_mask(truth.masks[0], sizes[0]), tool.fitted_mask(truth.masks[1], sizes[1]))
    flows = None if result.flows is None else tool.fitted_flows(result.flows, sizes)
    masks, state = _found_masks(result.masks, flows, sizes, tool)
    if masks is not None and rules.auto_flip and (state == GIVEN or tool.CHOOSES_SIDE_OF_ESTIMATES):
        chosen = better_side(true_masks, masks, measure)
        masks, state = chosen, state if chosen is masks else COMPLEMENT
    values = np.zeros((2, 1 + len(rules_vc.PERCENTS)))
    for side in (0, 1):
        if masks is not None:
            values[side, 0] = measure(true_masks[side], masks[side])
        if flows is not None:
            values[side, 1:] = tool.flow_accuracies(flows[side], truth.flows[side], sizes[1 - side])
    return PairScore(values, ABSENT if flows is None else GIVEN, state, flows, masks)


def _found_masks(
    given: tuple[Mask, Mask] | None, flows: tuple[Any, Any] | None, sizes: tuple[Size, Size], tool: Tool
) -> tuple[tuple[Mask, Mask] | None, int]:
    """The masks of a result and where they came from."""
    if given is not None:
        return (tool.fitted_mask(given[0], sizes[0]), tool.fitted_mask(given[1], sizes[1])), GIVEN
    if flows is not None:
        return (tool.consistent_mask(*flows), tool.consistent_mask(*flows[::-1])), ESTIMATED
    return None, ABSENT


def intersection_over_union(truth: Mask, mask: Mask) -> float:
    """SegIUR: pixels with a common bit over pixels with any bit; NaN where neither mask has one.

    >>> intersection_over_union(np.array([[255, 255, 0, 1]], np.uint8), np.array([[255, 0, 0, 2]], np.uint8))
    0.3333333333333333
    """
    union = np.count_nonzero(truth | mask)
    return int(np.count_nonzero(truth & mask)) / int(union) if union else float("nan")


def equal_share(truth: Mask, mask: Mask) -> float:
    """The share of pixels whose bytes are equal (`usePrec`)."""
    return 1.0 - int(np.count_nonzero(truth != mask)) / truth.size


def better_side(truths: tuple[Mask, Mask], masks: tuple[Mask, Mask], measure: Measure) -> tuple[Mask, Mask]:
    """Both masks or both complements, whichever have the higher sum (`autoFlip`); as they are if equal."""
    flipped = (~masks[0], ~masks[1])
    as_given, complement = (sum(map(measure, truths, pair)) for pair in (masks, flipped))
    return flipped if as_given < complement else masks


class PairResults(Protocol):
    """Where the results of pairs come from: a Results tree, or flows that were just computed."""

    @property
    def digest(self) -> str: ...

    def read(self, pair: FlowPair) -> FlowsAndMasks: ...


@dataclass(frozen=True)
class PairScores:
    """Scores by pair: SegIUR and T1..T50 both ways, states of flows and masks, and a problem, or nothing."""

    values: NDArray[np.float64]  # (pairs, 2, 51)
    states: NDArray[np.int8]  # (pairs, 2): flows, masks
    problems: NDArray[np.str_]  # (pairs,)


def score_pairs(run: Run, truth: TruthTree, results: PairResults, rules: Rules) -> PairScores:
    """The scores of every pair, in order."""
    scores = run.each(read_and_score, truth.pairs, truth, results, rules, version=1)
    joined = run.read(run.each(_joined_scores, ["the scores of all pairs"], scores.whole, version=1), 0)
    return PairScores(joined["values"], joined["states"], joined["problems"])


def read_and_score(pair: FlowPair, truth: TruthTree, results: PairResults, rules: Rules) -> Arrays:
    """The scores of a pair. One that can't be read gets NaN and the reason, so that all are said together."""
    read, problems = [], []
    for tree in (truth, results):
        try:
            read.append(tree.read(pair))
        except OutOfReach:
            raise
        except DataError as error:
            problems.append(str(error))
    values, states = np.full((2, 51), np.nan), (ABSENT, ABSENT)
    if not problems:
        score = score_pair(read[0], read[1], rules)
        values, states = score.values, (score.flow_state, score.mask_state)
        problems = _undefined(storage.join(truth.root, pair.name), values)
    return {
        "values": values[np.newaxis],
        "states": np.array([states], np.int8),
        "problems": np.array(["\n".join(problems)]),
    }


def _undefined(folder: str, values: NDArray[np.float64]) -> list[str]:
    lines = []
    for side in (0, 1):
        if np.isnan(values[side, 0]):
            uri = storage.join(folder, f"mask{side + 1}.png")
            lines.append(f"{uri}: neither it nor the result has any foreground, so that SegIUR is 0/0")
        if np.isnan(values[side, 1:]).any():
            uri = storage.join(folder, f"flow{side + 1}.flo")
            lines.append(f"{uri}: no pixel with known flow; expected some to compare with")
    return lines


def _joined_scores(_: str, scores: Mapped) -> Arrays:
    pairs = [scores.read(shard.index) for shard in scores.shards]
    return {name: np.concatenate([arrays[name] for arrays in pairs]) for name in pairs[0]}


@dataclass(frozen=True)
class ScoredGroup:
    """The scored pairs of one group, in name order, and their means over rows, of which a pair has two.

    Where flows are absent the tools average their zeros in; with `skip_absent` they are left out.
    """

    name: str
    pairs: tuple[FlowPair, ...]
    values: NDArray[np.float64]  # (pairs, 2, 51)
    states: NDArray[np.int8]  # (pairs, 2)
    skip_absent: bool

    @property
    def has_flow(self) -> PixelFlags:
        found: PixelFlags = self.states[:, 0] != ABSENT
        return found

    def rows(self) -> list[tuple[FlowPair, int, list[float | None]]]:
        """Pair, side and figures (SegIUR, T1..T50) of each direction; None for flow that is left out."""
        rows = []
        for pair, values, flow in zip(self.pairs, self.values.tolist(), self.has_flow, strict=True):
            for side, figures in enumerate(values):
                left_out = self.skip_absent and not flow
                rows.append((pair, side, [figures[0], *([None] * 50 if left_out else figures[1:])]))
        return rows

    def means(self, mirrored: bool = True) -> list[float | None]:
        """SegIUR and T1..T50 over all rows, or without mirrored pairs; None where there is nothing to average."""
        chosen = np.array([mirrored or not pair.flip for pair in self.pairs], np.bool_)
        counted = chosen & self.has_flow if self.skip_absent else chosen
        return [exact_mean(self.values[chosen if column == 0 else counted, :, column]) for column in range(51)]

    def t5(self) -> dict[str, float]:
        """Each pair's T5, mean of both directions."""
        means = self.values[:, :, 5].mean(axis=1).tolist()
        return {pair.name: t5 for pair, t5 in zip(self.pairs, means, strict=True)}


def scored_groups(
    pairs: Sequence[FlowPair], scores: PairScores, groups: Sequence[str], skip_absent: bool
) -> list[ScoredGroup]:
    """The pairs without a problem, by group; a group all of whose pairs are missing is empty."""
    made = []
    for name in groups:
        chosen = [i for i, pair in enumerate(pairs) if pair.group == name and not scores.problems[i]]
        own = tuple(pairs[i] for i in chosen)
        made.append(ScoredGroup(name, own, scores.values[chosen], scores.states[chosen], skip_absent))
    return made


def exact_mean(values: NDArray[np.float64]) -> float | None:
    """The exactly rounded mean, so that no order matters; None of nothing."""
    return math.fsum(values.reshape(-1)) / values.size if values.size else None
