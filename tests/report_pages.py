"""Runs for the report page, made by hand: small, with every part of a page, and as nasty as names can be."""

import io

import numpy as np
from PIL import Image

from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.metrics.samples import FigureOf
from raybench.runs.manifest import Manifest
from raybench.runs.report.curves import thinned
from raybench.runs.report.page import Shown
from raybench.runs.unit_values import UnitValues
from raybench.table import Table

ATTACK = "</script><img src=x onerror=alert(1)>"
AP = {"meanstd": (0.3, 0.2), "sift": (0.9, 0.8), "orb": (0.7, 0.85)}
NOTES = ("ap: TREC average precision over all pairs.", "LIMITED: only the first 5 pairs were used.")


def jpeg(colour):
    written = io.BytesIO()
    Image.new("RGB", (32, 24), colour).save(written, "JPEG")
    return written.getvalue()


def manifest(benchmark, name, **more):
    return Manifest(
        benchmark,
        {"descriptor": name, "seed": 0},
        {"out": f"/runs/{benchmark}/{name}"},
        {"truth": "0123abcd"},
        status="done",
        stages=[{"name": "describe", "digest": "0f3e", "shards": 3, "seconds": 1.5, "lost": 1}],
        **more,
    )


def curve(name, good):
    hits = np.random.default_rng(1).random(400) < np.linspace(good, 1 - good, 400)
    found = hits.cumsum()
    ranks = np.arange(1, 401)
    columns = {
        "recall": found / found[-1],
        "precision": found / ranks,
        "false_positive_rate": (~hits).cumsum() / (~hits).sum(),
    }
    return thinned(name, columns)


def patch_run(name, notes=NOTES):
    """A run of hbench-classification over two tasks, with curves, views, intervals and ties."""
    first, second = AP.get(name, (0.5, 0.6))
    rows = (("t_easy", 10, 5, first, 0.9), ("t_hard", 10, 5, second, None))
    main = Table(
        "hbench_classification", ("task", "pairs", "positives", "ap", "auc"), rows, frozenset({"ap", "auc"}), notes
    )
    views = Table(
        "views",
        ("task", "view", "group", "ap"),
        tuple(
            (task, "change", change, first) for task in ("t_easy", "t_hard") for change in ("illumination", "viewpoint")
        ),
        frozenset({"ap"}),
    )
    intervals = Table(
        "intervals", ("row", "figure", "value", "low", "high"), (("t_easy", "ap", first, first - 0.1, first + 0.05),)
    )
    ties = Table(
        "ties",
        ("row", "figure", "value", "worst", "best", "tied"),
        (("t_hard", "ap", second, second - 0.05, second + 0.1, 7),),
    )
    published = Table(
        "published",
        ("method", "set", "metric", "value", "comparable", "source"),
        (("A", "full", "mAP", 0.1, "no, because it is old", "x"), ("B", "full", "mAP", 0.2, "yes: the same", "y")),
        frozenset({"value"}),
    )
    curves = [curve(task, first) for task in ("t_easy", "t_hard")]
    return Shown(manifest("hbench-classification", name), (main, views, intervals, ties, published), (), curves)


def copy_run(name, worth):
    """A run of disc2021 with thresholds, pictures, and what queries are worth."""
    main = Table(
        "disc_metrics",
        ("codec", "score_norm", "uAP", "recall-at-p90"),
        (("Flat", "None", sum(worth) / 4, 0.25),),
        frozenset({"uAP", "recall-at-p90"}),
    )
    columns = (
        "codec",
        "score_norm",
        "candidates",
        "precision",
        "recall",
        "recall_low",
        "recall_high",
        "threshold",
        "threshold_low",
        "threshold_high",
    )
    thresholds = Table(
        "disc_thresholds",
        columns,
        (("Flat", "None", "knn", 0.9, 0.5, 0.4, 0.6, -0.25, -0.3, -0.2),),
        frozenset({"recall"}),
    )
    red, blue, own = jpeg("red"), jpeg("blue"), jpeg("green" if name == "sscd" else "black")
    pictures = [
        ReportPicture(
            f"{kind}: Q{place}",
            "words of the case",
            kind=kind,
            unit=f"Q{place}",
            panels=(
                PicturePanel("query", f"Q{place}", red),
                PicturePanel("wrong", "R1", own, False),
                PicturePanel("true", "R2", blue, True),
            ),
        )
        for place, kind in enumerate(("missed", "false alarm", "missed"))
    ]
    units = UnitValues(FigureOf("Flat | None", "uAP"), "queries", ("Q0", "Q1", "Q2", ATTACK), np.array(worth))
    return Shown(
        manifest("disc2021", name, summary="4 queries, 9 references"), (main, thresholds), pictures, (), (units,)
    )


def pairs_run(name, fpr95, best=None):
    """A run of patch-pairs, where less is better; `best` is what ties may make of it."""
    columns = ("list", "pairs", "positives", "fpr95", "ap")
    main = Table("patch_pairs", columns, (("street", 10, 5, fpr95, 0.5),), frozenset({"fpr95", "ap"}))
    columns = ("row", "figure", "value", "worst", "best", "tied")
    ties = Table("ties", columns, () if best is None else (("street", "fpr95", fpr95, fpr95, best, 7),))
    return Shown(manifest("patch-pairs", name), (main, ties))


def several_runs():
    """Two benchmarks and five descriptors, one of which is an attack."""
    patches = [patch_run(name) for name in AP]
    return [*patches, copy_run("sscd", (1.0, 0.0, 0.5, 0.2)), copy_run(ATTACK, (0.0, 0.0, 0.8, 0.3))]
