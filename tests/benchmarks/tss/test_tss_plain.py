"""The scores of made-up pairs agree with a plain version that leaves all resampling to OpenCV, step by step."""

import cv2
import numpy as np
import pytest

from raybench.benchmarks.tss.scoring import Rules, score_pair
from raybench.benchmarks.tss.trees import FlowsAndMasks


def plain_known(flow):
    return (np.abs(flow[..., 0]) <= 1e9) & (np.abs(flow[..., 1]) <= 1e9)


def plain_resize(flow, other, new, new_other):
    """Sizes are (width, height)."""
    valid = cv2.resize(plain_known(flow).astype(np.float32), new, interpolation=cv2.INTER_LINEAR)
    made = cv2.resize(flow, new, interpolation=cv2.INTER_LINEAR)
    grid = np.stack(np.meshgrid(np.arange(new[0]), np.arange(new[1])), -1).astype(np.float32)
    made = made + grid * np.float32([flow.shape[1] / new[0], flow.shape[0] / new[1]])
    made = made * np.float32([new_other[0] / other[0], new_other[1] / other[1]]) - grid
    made[valid != 1] = 1e10
    return made


def plain_error(flow, truth):
    error = np.sqrt(((flow - truth) ** 2).sum(axis=2))
    error[plain_known(flow) ^ plain_known(truth)] = 1000
    return error


def plain_mask(flow, back):
    y, x = np.mgrid[: flow.shape[0], : flow.shape[1]].astype(np.float32)
    places = (flow[..., 0] + x, flow[..., 1] + y)
    warped = cv2.remap(back, *places, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=(1e10, 1e10))
    return (plain_error(flow, -warped) < 20).astype(np.uint8) * 255


def plain_score(truth, result):
    sizes = [flow.shape[1::-1] for flow in truth.flows]
    flows, masks = result.flows, result.masks
    if flows is not None and [flow.shape[1::-1] for flow in flows] != sizes:
        old = [flow.shape[1::-1] for flow in flows]
        flows = [plain_resize(flows[i], old[1 - i], sizes[i], sizes[1 - i]) for i in (0, 1)]
    if masks is not None:
        masks = [
            m if m.shape[::-1] == s else (cv2.resize(m, s) > 128) * np.uint8(255)
            for m, s in zip(masks, sizes, strict=True)
        ]
    elif flows is not None:
        masks = [plain_mask(flows[0], flows[1]), plain_mask(flows[1], flows[0])]
    rows = np.zeros((2, 51))
    for i in (0, 1):
        if masks is not None:
            rows[i, 0] = np.count_nonzero(truth.masks[i] & masks[i]) / np.count_nonzero(truth.masks[i] | masks[i])
        if flows is not None:
            error, asked = plain_error(flows[i], truth.flows[i]), plain_known(truth.flows[i])
            limits = [np.float32(t * (0.01 * max(sizes[1 - i]))) for t in range(1, 51)]
            rows[i, 1:] = [1 - np.count_nonzero((error > limit) & asked) / np.count_nonzero(asked) for limit in limits]
    return rows


def smooth(rng, size, reach):
    coarse = rng.normal(0, reach, (4, 4, 2)).astype(np.float32)
    return cv2.resize(coarse, size, interpolation=cv2.INTER_CUBIC)


def made_pair(seed):
    rng = np.random.default_rng(seed)
    sizes = [tuple(int(side) for side in rng.integers(20, 90, 2)) for _ in (1, 2)]
    scale = [(1, 1), (1, 2), (2, 1), (4, 3), (3, 5)][seed % 5]
    truth, result = [], []
    for size in sizes:
        flow, mask = smooth(rng, size, 8), (smooth(rng, size, 1)[..., 0] > -0.3) * np.uint8(255)
        mask[0, 0] = 255
        flow[mask == 0] = 1e10
        truth.append((flow, mask))
        own = tuple(max(2, side * scale[0] // scale[1]) for side in size)
        found = smooth(rng, own, 8)
        found[: own[1] // 5, : own[0] // 4] = 1e10
        found[own[1] // 2, own[0] // 2, 1] = -2e9
        grey = np.clip(smooth(rng, own, 120)[..., 0] + 128, 0, 255).astype(np.uint8)
        result.append((found, grey))
    sides = [tuple(zip(*rows, strict=True)) for rows in (truth, result)]
    kept = [(True, True), (True, False), (False, True)][seed % 3]
    return FlowsAndMasks(*sides[0]), FlowsAndMasks(sides[1][0] if kept[0] else None, sides[1][1] if kept[1] else None)


@pytest.mark.parametrize("seed", range(45))
def test_scores_agree_with_the_plain_version(seed):
    truth, result = made_pair(seed)
    pixels = min(flow.size for flow in truth.flows) // 2
    found, expected = score_pair(truth, result, Rules()).values, plain_score(truth, result)
    # A build of OpenCV that fuses products and sums may move one pixel over a border.
    np.testing.assert_allclose(found, expected, rtol=0, atol=2 / pixels)
    assert np.count_nonzero(found != expected) <= 2
