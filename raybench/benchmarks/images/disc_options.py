"""The options of disc2021."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.images.search_options import SearchOptions
from raybench.benchmarks.options import option
from raybench.formats.disc_predictions import MOST_PREDICTIONS


@dataclass(frozen=True)
class DiscOptions(SearchOptions):
    """Those of a search of images, and of DISC2021: its sets and finished predictions."""

    queries: str | None = option(
        None,
        "query images: folder, archives (.tar, .zip, name-{000..009}.tar) or .csv/.parquet list",
        "input",
        default_words="DATA/val_query",
        is_uri=True,
    )
    references: str | None = option(
        None, "reference images likewise", "input", default_words="DATA/val_ref", is_uri=True
    )
    training: str | None = option(None, "training images likewise", "input", default_words="DATA/training", is_uri=True)
    ground_truth: str | None = option(
        None,
        "query,reference lines",
        "input",
        default_words="val_groundtruth_matches.csv in DATA or FEATURES",
        is_uri=True,
    )
    results: str | None = option(None, "finished predictions.csv: query,reference,score lines", "input", is_uri=True)
    max_predictions: int = option(MOST_PREDICTIONS, "lines that a predictions file may have", "protocol")
