"""How each benchmark is laid out on the page: which figure comes first, which keys make columns, what is sliced how.

A benchmark that is not named here is laid out from its own columns (see `layout_of`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from raybench.benchmarks import BENCHMARKS

NOISE_WORDS = {"e": "easy", "h": "hard", "t": "tough"}
MEAN, BEST = "mean", "best"


@dataclass(frozen=True)
class Slice:
    """A breakdown from one table: `rows` and `columns` are keys of it, or `run`, or `figure` for the figures named.

    `across` is the x axis of lines (a key with numbers in it); without it the slice is a heat map. Other keys are fixed
    by `where`, or chosen by the reader.
    """

    title: str
    table: str  # empty for the main table
    figures: tuple[str, ...]
    rows: tuple[str, ...] = ("run",)
    columns: tuple[str, ...] = ()
    across: str = ""
    where: dict[str, str] = field(default_factory=dict)
    choose: tuple[str, ...] = ()
    axis: str = ""  # words for the x axis
    numbers: dict[str, float] = field(default_factory=dict)  # places on the x axis, where cells are no numbers
    starts: str = ""  # only cells of `across` that begin so, which is taken off


@dataclass(frozen=True)
class Layout:
    """`across`: keys whose cells make the columns of the leaderboard; other keys are chosen by the reader.

    `stands_for` are cells of the row that stands for the whole run; of several such rows the mean or the best is taken.
    """

    title: str
    headline: str
    across: tuple[str, ...]
    choose: tuple[str, ...] = ()
    stands_for: dict[str, str] = field(default_factory=dict)
    overall: str = MEAN
    slices: tuple[Slice, ...] = ()


def _views(figure: str, with_tasks: bool) -> tuple[Slice, ...]:
    tasks = ("task",) if with_tasks else ()
    return (
        Slice(
            "Illumination and viewpoint", "views", (figure,), columns=("group",), where={"view": "change"}, choose=tasks
        ),
        Slice("By noise", "views", (figure,), columns=("group",), where={"view": "noise"}, choose=tasks),
        Slice(
            "By sequence",
            "views",
            (figure,),
            rows=("group",),
            columns=("run",),
            where={"view": "sequence"},
            choose=tasks,
        ),
    )


def _by_type(figure: str, *choose: str) -> tuple[Slice, ...]:
    mean = {"noise": "mean"}
    return (
        Slice("Illumination and viewpoint by noise", "by_type", (figure,), columns=("type", "noise"), choose=choose),
        Slice("By sequence", "by_sequence", (figure,), rows=("sequence",), columns=("run",), where=mean, choose=choose),
    )


COPYDAYS_LADDERS = (
    Slice("JPEG quality", "blocks", ("mAP",), across="block", choose=("codec",), axis="quality", starts="jpegqual/"),
    Slice("Crops", "blocks", ("mAP",), across="block", choose=("codec",), axis="percent cropped", starts="crops/"),
    Slice("Every block", "blocks", ("mAP",), rows=("block",), columns=("run",), choose=("codec",)),
)
RETRIEVAL_SLICES = (
    Slice(
        "By the number of results looked at",
        "retrieval_figures",
        ("precision_at_1", "precision_at_5", "precision_at_10"),
        across="figure",
        choose=("codec", "score_norm"),
        axis="results",
        numbers={"precision_at_1": 1, "precision_at_5": 5, "precision_at_10": 10},
    ),
)
TSS_SLICES = (
    Slice(
        "Share of pixels by allowed error",
        "",
        ("T1", "T3", "T5", "T10"),
        across="figure",
        choose=("group",),
        axis="allowed error, percent of the longer side",
        numbers={"T1": 1, "T3": 3, "T5": 5, "T10": 10},
    ),
    Slice("Groups, with and without mirrored pairs", "", ("T5", "T5_no_flip"), columns=("group", "figure")),
)
OVER_POOLS = Slice(
    "Over the size of the pool", "", ("map",), across="pool", choose=("split", "noise"), axis="distractors in the pool"
)

LAYOUTS = {
    "hbench-classification": Layout("Patch classification, HPatches 2016", "ap", ("task",), slices=_views("ap", True)),
    "hbench-matching": Layout("Image matching, HPatches 2016", "map", ("task",), slices=_views("map", False)),
    "hbench-retrieval": Layout(
        "Patch retrieval, HPatches 2016", "patch_map", ("task",), slices=_views("patch_map", False)
    ),
    "hpatches-verification": Layout(
        "Patch verification, HPatches 2017",
        "ap_imbalanced",
        ("negatives", "noise"),
        ("split",),
        {"noise": "mean"},
        slices=_by_type("ap_imbalanced", "split", "negatives"),
    ),
    "hpatches-matching": Layout(
        "Image matching, HPatches 2017",
        "map",
        ("noise",),
        ("split",),
        {"noise": "mean"},
        slices=_by_type("map", "split"),
    ),
    "hpatches-retrieval": Layout(
        "Patch retrieval, HPatches 2017",
        "map",
        ("noise",),
        ("split", "pool"),
        {"noise": "mean"},
        slices=(OVER_POOLS, *_by_type("map", "split", "pool")),
    ),
    "patch-pairs": Layout("Patch pairs", "fpr95", ("list",)),
    "disc2021": Layout("Copy detection, DISC2021", "uAP", ("codec", "score_norm"), overall=BEST),
    "copydays": Layout("Copy detection, Copydays", "strong_mAP", ("codec",), overall=BEST, slices=COPYDAYS_LADDERS),
    "image-retrieval": Layout("Image retrieval", "mAP", ("codec", "score_norm"), overall=BEST, slices=RETRIEVAL_SLICES),
    "revisited": Layout(
        "Landmark retrieval, Revisited protocol",
        "map",
        ("set", "setup"),
        slices=(
            Slice("mP@k", "", ("mp_at_1", "mp_at_5", "mp_at_10"), columns=("setup", "figure"), choose=("set",)),
            Slice("By codec", "by_codec", ("map",), rows=("codec",), columns=("run",), choose=("set", "setup")),
        ),
    ),
    "tss": Layout("Dense flow, TSS", "T5", ("group",), stands_for={"group": "mean"}, slices=TSS_SLICES),
}


def layout_of(benchmark: str) -> Layout:
    """The layout of a benchmark; of one without, made of its own keys and its first figure."""
    if benchmark in LAYOUTS:
        return LAYOUTS[benchmark]
    entry = BENCHMARKS.get(benchmark)
    if entry is None:
        return Layout(benchmark, "", ())
    opened = entry.open()
    return Layout(benchmark, opened.figures[0] if opened.figures else "", opened.keys)
