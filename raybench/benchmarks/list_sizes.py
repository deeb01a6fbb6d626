"""How long the lists of made task files are; apart, since help shows these numbers and makes no files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ListSizes:
    """How long the lists are: pairs of each kind, queries and sequences of a retrieval task, distractors."""

    positives: int = 10_000
    negatives: int = 50_000
    queries: int = 1_000
    pool_sequences: int = 5
    distractors: int = 20_000
