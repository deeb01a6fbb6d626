"""Pairs -> pictures of them, in shards of pairs: what the kit draws (flow, warped, foreground), errors, an overview.

What is drawn is what was scored: flows and masks at the truth's size, by the same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss import overview as sheets
from raybench.benchmarks.tss import panels
from raybench.benchmarks.tss.pair_scores import Results
from raybench.benchmarks.tss.rules_vc import endpoint_errors, known, thresholds_px
from raybench.benchmarks.tss.scoring import ABSENT, COMPLEMENT, ESTIMATED, PairScore, Rules, Side, score_pair
from raybench.benchmarks.tss.trees import Pair, TruthSet
from raybench.benchmarks.tss.wheel import flow_colours, largest_motion
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.formats.shardfile import Arrays
from raybench.formats.tss import write_png

PAIRS_PER_SHARD = 2
SHEETS = ("overview.jpg", "thumb.jpg")
FLOW_KINDS, MASK_KINDS = ("flow", "warped", "error"), ("foreground",)

Images = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def picture_names(flow_state: int, mask_state: int) -> list[str]:
    """The files that a pair gets: none of flow or mask where these are absent."""
    kinds = (*(FLOW_KINDS if flow_state != ABSENT else ()), *(MASK_KINDS if mask_state != ABSENT else ()))
    return [SHEETS[0], *(f"{kind}{side}.png" for side in (1, 2) for kind in kinds)]


def drawn(pair: Pair, images: Images, truth: Side, result: Side, rules: Rules, single: bool = True) -> dict[str, bytes]:
    """The pictures of a pair by file name; without `single` only its overview and thumb."""
    assert truth.flows is not None
    score = score_pair(truth, result, rules)
    made = [_panels(side, images, truth, score) for side in (0, 1)]
    directions = [
        sheets.Direction(
            way, _shown(panel, known(truth.flows[side])), float(score.values[side, 5]), float(score.values[side, 0])
        )
        for side, (way, panel) in enumerate(zip(("1 to 2", "2 to 1"), made, strict=True))
    ]
    caption = sheets.Caption(pair.key, _words(pair, score), "equal pixels" if rules.use_prec else "SegIUR")
    files = {SHEETS[0]: sheets.overview(directions, caption), SHEETS[1]: sheets.thumb(directions[0])}
    for side, panel in enumerate(made, 1) if single else ():
        for kind in (*FLOW_KINDS, *MASK_KINDS):
            if panel[kind] is not None:
                files[f"{kind}{side}.png"] = write_png(panel[kind])
    return files


def _panels(side: int, images: Images, truth: Side, score: PairScore) -> dict[str, Any]:
    """One direction's panels, in the order of the overview's columns."""
    assert truth.flows is not None and truth.masks is not None
    image, other, true_flow, true_mask = images[side], images[1 - side], truth.flows[side], truth.masks[side]
    largest = largest_motion(*truth.flows)
    made: dict[str, Any] = dict.fromkeys(("image", "warped", "true flow", "flow", "error", "foreground"))
    made["image"] = panels.outlined(image, true_mask)
    made["true flow"] = flow_colours(true_flow, largest)
    if score.flows is not None:
        flow = score.flows[side].astype(np.float32)
        made["warped"] = panels.outlined(panels.warped_image(other, flow, image.shape[:2]), true_mask)
        made["flow"] = flow_colours(flow, largest)
        limit = float(thresholds_px(other.shape[:2])[4])
        errors = endpoint_errors(flow, true_flow)
        made["error"] = panels.error_map(image, errors, known(true_flow), known(flow), limit)
    if score.masks is not None:
        made["foreground"] = panels.foreground(image, score.masks[side], true_mask)
    return made


def _shown(panel: dict[str, Any], asked: NDArray[np.bool_]) -> tuple[Any, ...]:
    """The panels of the overview: flow is compared where the truth is known, so the rest of it is faded."""
    flow = panel["flow"]
    return tuple({**panel, "flow": None if flow is None else panels.faded(flow, asked)}.values())


def _words(pair: Pair, score: PairScore) -> tuple[str, ...]:
    words = ["MIRRORED PAIR"] if pair.flip else []
    words += ["NO FLOW"] if score.flow_state == ABSENT else []
    masks = {ABSENT: "NO MASKS", ESTIMATED: "masks estimated from flow", COMPLEMENT: "masks complemented"}
    words += [masks[score.mask_state]] if score.mask_state in masks else []
    return tuple(words)


@dataclass(frozen=True)
class DrawPairs:
    """The stage that draws pairs; a shard holds the bytes of all their files."""

    truth: TruthSet
    results: Results
    rules: Rules
    items: tuple[int, ...]

    name = "draw-pairs"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        keys = [self.truth.pairs[item].key for item in self.items]
        parts = (self.truth.digest, self.truth.image_digest, self.results.digest)
        rules = (self.rules.tool, self.rules.auto_flip, self.rules.use_prec)
        return digest_of(self.name, self.version, keys, *parts, rules)

    def load(self, shard: Shard) -> list[tuple[Pair, Images, Side, Side]]:
        return [
            (self.truth.pairs[item], self.truth.images(item), self.truth.truth(item), self.results.result(item))
            for item in self.items[shard.start : shard.stop]
        ]

    def compute(self, payload: list[tuple[Pair, Images, Side, Side]]) -> Arrays:
        files = [
            (f"{pair.key}/{name}", data)
            for pair, images, truth, result in payload
            for name, data in drawn(pair, images, truth, result, self.rules).items()
        ]
        return {
            "names": np.array([name for name, _ in files]),
            "ends": np.cumsum([len(data) for _, data in files], dtype=np.int64),
            "bytes": np.frombuffer(b"".join(data for _, data in files), np.uint8),
        }

    def keys(self, shard: Shard) -> str:
        return ", ".join(self.truth.pairs[item].key for item in self.items[shard.start : shard.stop])


@dataclass(frozen=True)
class Pictures:
    """Drawn pairs; `read` gives the bytes of a file of the n-th of them."""

    mapped: Mapped
    keys: tuple[str, ...]

    def read(self, place: int, name: str) -> bytes:
        arrays = self.mapped.read(place // PAIRS_PER_SHARD)
        index = arrays["names"].tolist().index(f"{self.keys[place]}/{name}")
        start = int(arrays["ends"][index - 1]) if index else 0
        return arrays["bytes"][start : int(arrays["ends"][index])].tobytes()


def draw_pairs(run: Run, stage: DrawPairs) -> Pictures:
    """Draw all pairs of the stage."""
    mapped = run.map(stage, len(stage.items), PAIRS_PER_SHARD)
    return Pictures(mapped, tuple(stage.truth.pairs[item].key for item in stage.items))


def export_pictures(run: Run, pictures: Pictures, files: Sequence[tuple[int, str]]) -> list[str]:
    """Write `pictures/GROUP/PAIR/NAME` for each (n-th pair, name); their names."""
    names = [f"pictures/{pictures.keys[place]}/{name}" for place, name in files]
    write = partial(_picture_file, pictures, tuple(files))
    run.export(Export("picture-files", pictures.mapped.digest, write, tuple(names)), names)
    return names


def _picture_file(pictures: Pictures, files: tuple[tuple[int, str], ...], number: int) -> bytes:
    return pictures.read(*files[number])


def export_contact_sheets(run: Run, pictures: Pictures, groups: dict[str, list[tuple[int, float]]]) -> list[str]:
    """Write `pictures/GROUP.jpg`: the n-th pairs of each group with their T5, in the order given; their names."""
    names = [f"pictures/{group}.jpg" for group in groups]
    write = partial(_contact_sheet, pictures, tuple(groups.items()))
    run.export(Export("contact-sheets", pictures.mapped.digest, write, tuple(names)), names)
    return names


def _contact_sheet(pictures: Pictures, groups: tuple[tuple[str, list[tuple[int, float]]], ...], number: int) -> bytes:
    group, shown = groups[number]
    cells = [(pictures.keys[n].split("/")[1], t5, pictures.read(n, SHEETS[1])) for n, t5 in shown]
    title = f"{group}: {len(cells)} pairs by T5 in percent (mean of both directions), worst first"
    return sheets.contact_sheet(title, cells)
