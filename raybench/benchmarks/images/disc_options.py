"""The options of disc2021."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.images.sets import ImageOptions
from raybench.benchmarks.options import option
from raybench.formats.disc_predictions import MOST_PREDICTIONS

DEFAULT_NORM = "1.0[0,2]"
NO_NORM = "None"  # in tables: a row without one


@dataclass(frozen=True)
class DiscOptions(ImageOptions):
    """Those of copy detection, and of DISC2021: its sets, candidates, and finished predictions."""

    queries: str | None = option(
        None, "folder of the query images", "input", default_words="DATA/val_query", is_uri=True
    )
    references: str | None = option(
        None, "folder of the reference images", "input", default_words="DATA/val_ref", is_uri=True
    )
    training: str | None = option(
        None, "folder of the training images", "input", default_words="DATA/training", is_uri=True
    )
    ground_truth: str | None = option(
        None,
        "query,reference lines",
        "input",
        default_words="val_groundtruth_matches.csv in DATA or FEATURES",
        is_uri=True,
    )
    results: str | None = option(None, "finished predictions.csv: query,reference,score lines", "input", is_uri=True)
    score_norm: str | None = option(
        None, "WEIGHT[FIRST,LAST] separated by ;, or none", "protocol", default_words=DEFAULT_NORM, separator=";"
    )
    k: int = option(10, "candidates per query", "protocol")
    global_candidates: bool = option(
        False, "main table of the best k x queries pairs over all, not of k per query", "protocol"
    )
    max_predictions: int = option(MOST_PREDICTIONS, "lines that a predictions file may have", "protocol")
