"""The worst and the best pairs of each TSS group as cases for the page, and any pair that is asked for by name.

A case shows one direction, the one that explains its figure. What is drawn is what was scored (see `pictures`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench import storage
from raybench.benchmarks.cases import CASES, cases_text, parsed_cases, stored_cases, thumbnail
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.benchmarks.tss.panels import Pixels
from raybench.benchmarks.tss.pictures import direction_panels, state_words
from raybench.benchmarks.tss.scoring import PairResults, Rules, ScoredGroup, score_pair
from raybench.benchmarks.tss.trees import (
    FlowPair,
    FlowsAndMasks,
    ImagesOfPair,
    ResultsTree,
    TreeImages,
    TruthTree,
    list_results,
    list_truth,
    look_at_results,
    look_at_truth,
    note_empty_results,
)
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.formats.shardfile import Arrays
from raybench.table import Table

WORST, BEST = 2, 1  # pairs of a group: 0.2 s each at 640 x 480 px
MOST_ASKED = 60  # pairs that are drawn because they were asked for
WAYS = ("1 to 2", "2 to 1")
PANELS = {  # by the name of a panel: what the page says of it; {} are the numbers of both images
    "image": "image {0}",
    "other": "image {1}",
    "warped": "{1} warped to {0}",
    "true flow": "true flow",
    "flow": "flow found",
    "error": "error (blue: within T5)",
}


@dataclass(frozen=True)
class ShownPair:
    """A pair to draw: why, and its number among those of its kind (0: it was asked for)."""

    pair: FlowPair
    kind: str
    number: int

    @property
    def name(self) -> str:
        return self.pair.name

    @property
    def title(self) -> str:
        return f"{self.pair.group}: {self.kind} {self.number}" if self.number else self.pair.name


def draw_cases(
    run: Run,
    truth: TruthTree,
    images: TreeImages | None,
    results: PairResults,
    rules: Rules,
    groups: Sequence[ScoredGroup],
) -> tuple[ReportPicture, ...]:
    """The worst and best pairs by T5, in the run's folder and for the report. Images need not be there."""
    chosen = [shown for group in groups for shown in worst_and_best(group)]
    if not chosen:
        return ()
    pictured = images or TreeImages(truth.root, truth.digest, truth.limits)
    drawn = run.each(drawn_case, chosen, pictured, truth, results, rules, version=1)
    run.write(CASES, cases_file, ("the cases",), drawn.whole)
    return tuple(stored_cases(run.out, {}, ()))


def worst_and_best(group: ScoredGroup) -> Iterator[ShownPair]:
    """The worst pairs of a group, worst first, then its best; each pair once."""
    by_name = {pair.name: pair for pair in group.pairs}
    ranked = sorted(group.t5().items(), key=lambda item: (item[1], item[0]))
    worst = ranked[: max(1, min(WORST, len(ranked) - BEST))]
    best = ranked[max(len(worst), len(ranked) - BEST) :][::-1]
    for kind, own in (("worst", worst), ("best", best)):
        for number, (name, _) in enumerate(own, 1):
            yield ShownPair(by_name[name], kind, number)


def drawn_case(shown: ShownPair, images: TreeImages, truth: TruthTree, results: PairResults, rules: Rules) -> Arrays:
    """The case of one pair, as the bytes of a file with it alone."""
    case = pair_case(shown, _images(images, shown.pair), truth.read(shown.pair), results.read(shown.pair), rules)
    return {"case": np.frombuffer(cases_text([case]), np.uint8)}


def cases_file(_: str, drawn: Mapped) -> bytes:
    """All cases of a run, for the page."""
    texts = [drawn.read(shard.index)["case"].tobytes() for shard in drawn.shards]
    return cases_text([case for text in texts for case in parsed_cases(text, CASES)])


def pair_case(
    shown: ShownPair, images: ImagesOfPair | None, truth: FlowsAndMasks, result: FlowsAndMasks, rules: Rules
) -> ReportPicture:
    """The direction of the lower T5, of a best pair that of the higher; without its images the flows alone."""
    assert truth.flows is not None
    score = score_pair(truth, result, rules)
    t5 = score.values[:, 5]
    side = int(t5.argmax() if shown.kind == "best" else t5.argmin())
    sizes = [flow.shape[:2] for flow in truth.flows]
    fits = images is not None and [image.shape[:2] for image in images] == sizes
    there = images if images is not None and fits else (_blank(sizes[0]), _blank(sizes[1]))
    made: dict[str, Pixels | None] = {**direction_panels(side, there, truth, score), "other": there[1 - side]}
    sides = (side + 1, 2 - side)
    files = {"image": shown.pair.sources[side], "other": shown.pair.sources[1 - side]}
    panels = tuple(
        _panel(words.format(*sides), files.get(kind, ""), made[kind], kind, fits) for kind, words in PANELS.items()
    )
    figures = f"{shown.name}: T5 {t5[0]:.1%} from 1 to 2, {t5[1]:.1%} from 2 to 1; shown: {WAYS[side]}"
    caption = "; ".join([figures, *state_words(shown.pair, score)])
    alt = f"{shown.name}: {', '.join(panel.label for panel in panels)}"
    return ReportPicture(shown.title, caption, b"", shown.kind, shown.name, shown.pair.group, alt, panels)


def _panel(label: str, name: str, pixels: Pixels | None, kind: str, has_images: bool) -> PicturePanel:
    """A panel; it is empty where flow is absent, or the images that it shows can't be read."""
    if pixels is None:
        return PicturePanel(f"{label}; absent", name, b"")
    if not has_images and kind not in ("true flow", "flow"):
        return PicturePanel(f"{label}; can't be read", name, b"")
    return PicturePanel(label, name, thumbnail(pixels))


def _blank(size: tuple[int, ...]) -> Pixels:
    return np.zeros((*size, 3), np.uint8)


def _images(images: TreeImages, pair: FlowPair) -> ImagesOfPair | None:
    try:
        return images.read(pair)
    except DataError:
        return None


def case_pictures(out: str, arguments: dict[str, Any], _: Sequence[Table], units: Sequence[str]) -> list[ReportPicture]:
    """These pairs (GROUP/PAIR) of a finished run, drawn now from its data and results; without those that are gone."""
    tool = "matlab" if arguments.get("compat") == "matlab" else "vc"
    rules = Rules(tool, bool(arguments.get("auto_flip")), bool(arguments.get("use_prec")))
    root, found = arguments["data"], arguments.get("results") or storage.join(out, "results")
    try:
        truth, images, results = _opened(root, found, units[:MOST_ASKED])
    except DataError:
        return []
    return [
        pair_case(ShownPair(pair, "", 0), _images(images, pair), truth.read(pair), results.read(pair), rules)
        for pair in truth.pairs
    ]


def _opened(data: str, results: str, names: Sequence[str]) -> tuple[TruthTree, TreeImages, ResultsTree]:
    """Those of the pairs whose truth and results are still there and sound."""
    true, found = list_truth(data), list_results(results)
    note_empty_results(found, names)
    asked = [name for name in names if name in true.files and name in found.files]
    looked, files = look_at_truth(true, asked, images=False), look_at_results(found, asked)
    good = [name for name in asked if name in looked and name in files]
    pairs, kept = [looked[name] for name in good], {name: files[name] for name in good}
    images = TreeImages(true.root, "", true.limits)
    return TruthTree.of(true, pairs, False), images, ResultsTree.of(found, kept, False)
