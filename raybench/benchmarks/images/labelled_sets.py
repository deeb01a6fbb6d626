"""What a search of images rests on: images or vectors of queries, references and training, and what is known of pairs.

A label says of a pair of a query and a reference that it is relevant, by how much, or junk: neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.images.sets import ImageSet
from raybench.extract.images import Described
from raybench.formats.names import common_names
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.ranking import Flags

NAMES_SHOWN = 3  # names in a note


@dataclass(frozen=True)
class Labels:
    """Pairs that the truth names, by query, then reference. `gain` is 0 for junk, above 0 for all others."""

    pairs: TruePairs
    gain: NDArray[np.float64]
    hard: Flags  # relevant, and hard to find

    @classmethod
    def plain(cls, pairs: TruePairs) -> Labels:
        """All of them relevant, and no more is known."""
        return cls(pairs, np.ones(len(pairs)), np.zeros(len(pairs), np.bool_))

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def relevant(self) -> TruePairs:
        return self._pairs_at(self.gain > 0)

    @property
    def junk(self) -> TruePairs:
        return self._pairs_at(self.gain == 0)

    @property
    def counted(self) -> Labels:
        """Those of queries that have a relevant reference; of the others no ranking has a figure."""
        return self.at(np.isin(self.pairs.query, self.relevant.query))

    def at(self, chosen: Flags) -> Labels:
        """Some of them."""
        return Labels(self._pairs_at(chosen), self.gain[chosen], self.hard[chosen])

    def _pairs_at(self, chosen: Flags) -> TruePairs:
        return TruePairs(self.pairs.query[chosen], self.pairs.reference[chosen])


@dataclass(frozen=True)
class LabelledSets:
    """Images of three roles, and labels of pairs by index in queries and references."""

    queries: ImageSet
    references: ImageSet
    training: ImageSet | None
    labels: Labels

    @property
    def all(self) -> tuple[ImageSet, ...]:
        found = (self.queries, self.references, self.training)
        return tuple(images for images in found if images is not None)

    @property
    def summary(self) -> str:
        """What there is, in one line."""
        counts = ", ".join(f"{len(images):,} {images.role}" for images in self.all)
        junk = len(self.labels.junk)
        return f"{counts}, {len(self.labels.relevant):,} true pairs" + (f", {junk:,} of junk" if junk else "")

    def limited(self, limit: int, training: int) -> LabelledSets:
        """The first queries, their labelled references and the first others, and of training at least so many."""
        labels = self.labels.at(self.labels.pairs.query < limit)
        query, reference = labels.pairs.query, labels.pairs.reference
        kept = np.union1d(reference, np.arange(min(limit, len(self.references))))
        others = self.training
        return replace(
            self,
            queries=self.queries.limited(np.arange(min(limit, len(self.queries)))),
            references=self.references.limited(kept),
            training=others and others.limited(np.arange(min(max(limit, training), len(others)))),
            labels=replace(labels, pairs=TruePairs(query, np.searchsorted(kept, reference))),
        )

    def readable_labels(self, described: Mapping[str, Described]) -> Labels:
        """The labels of pairs of which both images could be read."""
        pairs = self.labels.pairs
        lost = np.isin(pairs.query, described["queries"].skipped)
        lost |= np.isin(pairs.reference, described["references"].skipped)
        return self.labels.at(~lost)

    def leakage_notes(self) -> Iterable[str]:
        """Names of training images that are also among queries or references."""
        for images in (self.queries, self.references):
            shared = common_names(self.training.names, images.names) if self.training is not None else []
            if shared:
                shown = ", ".join(shared[:NAMES_SHOWN]) + (" …" if len(shared) > NAMES_SHOWN else "")
                yield f"LEAKAGE: {len(shared):,} names stand in training and in {images.role} ({shown})."
