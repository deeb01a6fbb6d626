"""Options of every search of queries among references: candidates and score normalisation."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.images.image_options import ImageOptions
from raybench.benchmarks.options import option

DEFAULT_NORM = "1.0[0,2]"
NO_NORM = "None"  # in tables: a row without one


@dataclass(frozen=True)
class SearchOptions(ImageOptions):
    """Those of sets of images, and of a search."""

    score_norm: str | None = option(
        None, "WEIGHT[FIRST,LAST] separated by ;, or none", "protocol", default_words=DEFAULT_NORM, separator=";"
    )
    k: int = option(10, "candidates per query", "protocol")
    global_candidates: bool = option(
        False, "main table of the best k x queries pairs over all, not of k per query", "protocol"
    )
