"""The options of image-retrieval."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.images.search_options import SearchOptions
from raybench.benchmarks.options import option
from raybench.search.codecs import FLAT_CODEC

A_SET = "folder of images, .tar or .zip, vector file (.h5, .npz, .parquet), or .parquet or .csv list with a column uri"


@dataclass(frozen=True)
class RetrievalOptions(SearchOptions):
    """Those of a search of images, and of one's own sets of them."""

    data: str | None = option(
        None,
        "folder with queries, references, training (of any kind that these options take) and ground_truth.csv; what "
        "is named by its own option need not be there",
        "input",
        is_uri=True,
    )
    queries: str | None = option(None, f"the queries: {A_SET}", "input", default_words="DATA/queries", is_uri=True)
    references: str | None = option(
        None, "the references likewise; the same as --queries: a set is searched within itself", "input", is_uri=True
    )
    training: str | None = option(
        None, "images or vectors likewise that codecs and score norms are trained on", "input", is_uri=True
    )
    ground_truth: str | None = option(
        None,
        "CSV or Parquet: query,reference[,grade]; a grade is positive, hard, junk, or a number from 0 (for nDCG)",
        "input",
        default_words="DATA/ground_truth.csv",
        is_uri=True,
    )
    codecs: str | None = option(
        FLAT_CODEC, "FAISS index_factory strings ending in Flat, separated by ;", "protocol", separator=";"
    )
