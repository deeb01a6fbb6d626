"""The pictures of a TSS run: files below `pictures/` with `--visualize`.

`pictures/GROUP/PAIR/` has what the kit draws (`flow1.png`, `warped1.png`, `foreground1.png`, …), `error1.png` and
`overview.jpg`; `pictures/GROUP.jpg` is the group's contact sheet. What is drawn is what was scored: flows and masks at
the truth's size, by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench.benchmarks.tss import panels, sheets
from raybench.benchmarks.tss.rules_vc import PixelFlags, endpoint_errors, known, thresholds_px
from raybench.benchmarks.tss.scoring import (
    ABSENT,
    COMPLEMENT,
    ESTIMATED,
    PairResults,
    PairScore,
    Rules,
    ScoredGroup,
    score_pair,
)
from raybench.benchmarks.tss.trees import (
    FlowPair,
    FlowsAndMasks,
    ImagesOfPair,
    TreeImages,
    TruthTree,
)
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.formats.shardfile import Arrays
from raybench.formats.tss import write_png

OVERVIEW, THUMB = "overview.jpg", "thumb.jpg"
FLOW_PANELS, MASK_PANELS = ("flow", "warped", "error"), ("foreground",)


@dataclass(frozen=True)
class PictureFile:
    """A picture to write: `name` is GROUP/PAIR/FILE, drawn with the pair at `place`."""

    name: str
    place: int


@dataclass(frozen=True)
class ContactSheet:
    """A group's sheet to write: places, folders and T5 of its pairs, worst first."""

    name: str
    cells: tuple[tuple[int, str, float], ...]


def write_pictures(
    run: Run, truth: TruthTree, images: TreeImages, results: PairResults, rules: Rules, groups: Sequence[ScoredGroup]
) -> None:
    """Draw every scored pair and a contact sheet per group."""
    pairs = [pair for group in groups for pair in group.pairs]
    places = {pair.name: place for place, pair in enumerate(pairs)}
    drawn = run.each(draw_pair, pairs, images, truth, results, rules, version=2)
    states = [states for group in groups for states in group.states.tolist()]
    files = [
        PictureFile(f"{pair.name}/{name}", place)
        for place, pair in enumerate(pairs)
        for name in picture_names(*states[place])
    ]
    run.write("pictures/{name}", picture_file, files, drawn.whole)
    ranked = {group.name: worst_first(group.t5()) for group in groups if group.pairs}
    contacts = [
        ContactSheet(group, tuple((places[name], name.split("/")[1], t5) for name, t5 in own))
        for group, own in ranked.items()
    ]
    run.write("pictures/{name}.jpg", contact_sheet_file, contacts, drawn.whole)


def draw_pair(pair: FlowPair, images: TreeImages, truth: TruthTree, results: PairResults, rules: Rules) -> Arrays:
    """The pictures of a pair, as the bytes of files."""
    files = drawn_files(pair, images.read(pair), truth.read(pair), results.read(pair), rules)
    return {name: np.frombuffer(data, np.uint8) for name, data in files.items()}


def picture_file(file: PictureFile, drawn: Mapped) -> bytes:
    """One picture of a pair."""
    return drawn.read(file.place)[file.name.rpartition("/")[2]].tobytes()


def contact_sheet_file(sheet: ContactSheet, drawn: Mapped) -> bytes:
    """The thumbs of a group."""
    cells = [(folder, t5, drawn.read(place)[THUMB].tobytes()) for place, folder, t5 in sheet.cells]
    title = f"{sheet.name}: {len(cells)} pairs by T5 in percent (mean of both directions), worst first"
    return sheets.contact_sheet(title, cells)


def picture_names(flow_state: int, mask_state: int) -> list[str]:
    """The files that a pair gets: none of flow or mask where these are absent."""
    kinds = (*(FLOW_PANELS if flow_state != ABSENT else ()), *(MASK_PANELS if mask_state != ABSENT else ()))
    return [OVERVIEW, *(f"{kind}{side}.png" for side in (1, 2) for kind in kinds)]


def drawn_files(
    pair: FlowPair,
    images: ImagesOfPair,
    truth: FlowsAndMasks,
    result: FlowsAndMasks,
    rules: Rules,
) -> dict[str, bytes]:
    """The pictures of a pair by file name."""
    assert truth.flows is not None
    score = score_pair(truth, result, rules)
    made = [direction_panels(side, images, truth, score) for side in (0, 1)]
    directions = [
        sheets.Direction(
            way, _shown(panel, known(truth.flows[side])), float(score.values[side, 5]), float(score.values[side, 0])
        )
        for side, (way, panel) in enumerate(zip(("1 to 2", "2 to 1"), made, strict=True))
    ]
    caption = sheets.Caption(pair.name, state_words(pair, score), "equal pixels" if rules.use_prec else "SegIUR")
    files = {OVERVIEW: sheets.overview(directions, caption), THUMB: sheets.thumb(directions[0])}
    for side, panel in enumerate(made, 1):
        for kind in (*FLOW_PANELS, *MASK_PANELS):
            if panel[kind] is not None:
                files[f"{kind}{side}.png"] = write_png(panel[kind])
    return files


def direction_panels(side: int, images: ImagesOfPair, truth: FlowsAndMasks, score: PairScore) -> dict[str, Any]:
    """One direction's panels, in the order of the overview's columns."""
    assert truth.flows is not None and truth.masks is not None
    image, other, true_flow, true_mask = images[side], images[1 - side], truth.flows[side], truth.masks[side]
    largest = panels.largest_motion(*truth.flows)
    made: dict[str, Any] = dict.fromkeys(("image", "warped", "true flow", "flow", "error", "foreground"))
    made["image"] = panels.outlined(image, true_mask)
    made["true flow"] = panels.flow_colours(true_flow, largest)
    if score.flows is not None:
        flow = score.flows[side].astype(np.float32)
        made["warped"] = panels.outlined(panels.warped_image(other, flow), true_mask)
        made["flow"] = panels.flow_colours(flow, largest)
        limit = float(thresholds_px(other.shape[:2])[4])
        errors = endpoint_errors(flow, true_flow)
        made["error"] = panels.error_map(image, errors, known(true_flow), known(flow), limit)
    if score.masks is not None:
        made["foreground"] = panels.foreground(image, score.masks[side], true_mask)
    return made


def _shown(panel: dict[str, Any], asked: PixelFlags) -> tuple[Any, ...]:
    """The panels of the overview: flow is compared where the truth is known, so the rest of it is faded."""
    flow = panel["flow"]
    return tuple({**panel, "flow": None if flow is None else panels.faded(flow, asked)}.values())


def state_words(pair: FlowPair, score: PairScore) -> tuple[str, ...]:
    """What explains a pair's figures: capitals where it lowers them."""
    words = ["MIRRORED PAIR"] if pair.flip else []
    words += ["NO FLOW"] if score.flow_state == ABSENT else []
    masks = {ABSENT: "NO MASKS", ESTIMATED: "masks estimated from flow", COMPLEMENT: "masks complemented"}
    words += [masks[score.mask_state]] if score.mask_state in masks else []
    return tuple(words)


def worst_first(t5: dict[str, float]) -> list[tuple[str, float]]:
    """Names and T5 of pairs, worst first."""
    return sorted(t5.items(), key=lambda pair: (pair[1], pair[0]))
