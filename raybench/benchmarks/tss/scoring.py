"""The TSS score of one pair in both directions, by the rules of the kit's C++ or MATLAB tool.

What a result lacks is handled as the tools do it: without flows their scores are 0; without masks these are estimated
from the flows, and without either SegIUR is 0. Steps on the way (flows and masks at the truth's size) are kept, so
that pictures show just what was scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss import rules_matlab, segmentation
from raybench.benchmarks.tss import rules_vc as vc
from raybench.benchmarks.tss.rules_vc import Flow
from raybench.benchmarks.tss.segmentation import Mask

ABSENT, GIVEN, ESTIMATED, COMPLEMENT = range(4)  # where the scored flows or masks came from
STATES = ("absent", "given", "estimated", "complement")


@dataclass(frozen=True)
class Side:
    """A pair's flows and masks, of image 1 and of image 2; of a result either may be absent."""

    flows: tuple[Flow, Flow] | None
    masks: tuple[Mask, Mask] | None


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


def score_pair(truth: Side, result: Side, rules: Rules) -> PairScore:
    """Score a result against the truth, which has both flows and masks."""
    assert truth.flows is not None and truth.masks is not None
    is_matlab = rules.tool == "matlab"
    sizes = (truth.flows[0].shape[:2], truth.flows[1].shape[:2])
    true_masks = tuple(rules_matlab.cut_mask(mask, mask.shape) for mask in truth.masks) if is_matlab else truth.masks
    flows = None if result.flows is None else _fitted_flows(result.flows, sizes, is_matlab)
    masks, state = _scored_masks((true_masks[0], true_masks[1]), result.masks, flows, rules)
    values = np.zeros((2, 1 + len(vc.PERCENTS)))
    for side in (0, 1):
        if masks is not None:
            values[side, 0] = _measure(rules)(true_masks[side], masks[side])
        if flows is not None:
            values[side, 1:] = _accuracies(flows[side], truth.flows[side], sizes[1 - side], is_matlab)
    return PairScore(values, ABSENT if flows is None else GIVEN, state, flows, masks)


def _fitted_flows(flows: tuple[Flow, Flow], sizes: tuple[vc.Size, vc.Size], is_matlab: bool) -> tuple[Any, Any]:
    if is_matlab:
        return rules_matlab.resized_pair(flows[0].astype(np.float64), flows[1].astype(np.float64), *sizes)
    return vc.resized_pair(*flows, *sizes)


def _scored_masks(
    truths: tuple[Mask, Mask], given: tuple[Mask, Mask] | None, flows: tuple[Any, Any] | None, rules: Rules
) -> tuple[tuple[Mask, Mask] | None, int]:
    """The masks that are scored and where they came from. The C++ tool chooses sides only of masks that were given."""
    is_matlab = rules.tool == "matlab"
    if given is not None:
        fitted = rules_matlab.cut_mask if is_matlab else segmentation.fitted
        masks, state = (fitted(given[0], truths[0].shape), fitted(given[1], truths[1].shape)), GIVEN
    elif flows is not None:
        consistent = rules_matlab.consistent if is_matlab else vc.consistent
        masks, state = (consistent(*flows), consistent(*flows[::-1])), ESTIMATED
    else:
        return None, ABSENT
    if rules.auto_flip and (given is not None or is_matlab):
        chosen = segmentation.better_side(truths, masks, _measure(rules))
        return chosen, state if chosen is masks else COMPLEMENT
    return masks, state


def _measure(rules: Rules) -> segmentation.Measure:
    return segmentation.precision if rules.use_prec else segmentation.intersection_over_union


def _accuracies(flow: NDArray[Any], truth: Flow, other: vc.Size, is_matlab: bool) -> NDArray[np.float64]:
    if is_matlab:
        errors = rules_matlab.true_pixel_errors(flow, truth.astype(np.float64))
        return vc.accuracies(errors, rules_matlab.thresholds_px(other))
    return vc.accuracies(vc.true_pixel_errors(flow, truth), vc.thresholds_px(other))
