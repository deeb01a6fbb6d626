"""The sets of `revisited`: images of queries and references, labelled pairs, distractors, training images.

Queries stand in the order of `qimlist`, references in that of `imlist`, by which equal scores are ordered: an image's
index is its position there. Distractors stand in name order, which never matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.images.sets import ImageSet, StoredVectors
from raybench.extract.images import Described
from raybench.formats.revisited import JUNK
from raybench.metrics.micro_ap import TruePairs

R1M = "revisitop1m"  # folder of the distractors


@dataclass(frozen=True)
class Labelled:
    """Pairs of a query and a reference by index, by query, then reference, and what the truth calls each."""

    queries: tuple[str, ...]
    pairs: TruePairs
    label: NDArray[np.int8]

    def at(self, chosen: NDArray[np.bool_]) -> Labelled:
        """Some of the pairs."""
        pairs = TruePairs(self.pairs.query[chosen], self.pairs.reference[chosen])
        return Labelled(self.queries, pairs, self.label[chosen])


@dataclass(frozen=True)
class RevisitedSet:
    """One set: images of queries and references, and what is known of pairs."""

    name: str
    queries: ImageSet
    references: ImageSet
    labelled: Labelled
    truth: bytes  # as its file has it

    @property
    def truth_name(self) -> str:
        """The place of the truth below the root."""
        return f"{self.name}/gnd_{self.name}.json"

    @property
    def summary(self) -> str:
        labelled = self.labelled
        positives = int(np.count_nonzero(labelled.label != JUNK))
        return (
            f"{self.name}: {len(self.queries):,} queries, {len(self.references):,} references, {positives:,} positives"
        )

    def limited(self, limit: int) -> RevisitedSet:
        """The first queries, their labelled references and the first others."""
        labelled = self.labelled.at(self.labelled.pairs.query < limit)
        query, reference = labelled.pairs.query, labelled.pairs.reference
        kept = np.union1d(reference, np.arange(min(limit, len(self.references))))
        pairs = TruePairs(query, np.searchsorted(kept, reference))
        return replace(
            self,
            queries=self.queries.limited(np.arange(min(limit, len(self.queries)))),
            references=self.references.limited(kept),
            labelled=Labelled(labelled.queries[:limit], pairs, labelled.label),
        )

    def readable(self, described: Mapping[str, Described]) -> Labelled:
        """The labelled pairs of which both images could be read."""
        pairs = self.labelled.pairs
        lost = np.isin(pairs.query, described[self.queries.role].skipped)
        lost |= np.isin(pairs.reference, described[self.references.role].skipped)
        return self.labelled.at(~lost)


@dataclass(frozen=True)
class RevisitedSets:
    """All sets of a job, distractors if there are any, and what codecs are trained on."""

    sets: tuple[RevisitedSet, ...]
    distractors: ImageSet | None
    training: ImageSet | None

    @property
    def all(self) -> tuple[ImageSet, ...]:
        beside = tuple(one for one in (self.distractors, self.training) if one is not None)
        return (*(images for one in self.sets for images in (one.queries, one.references)), *beside)

    @property
    def summary(self) -> str:
        lines = [one.summary for one in self.sets]
        lines += [f"{len(self.distractors):,} distractors"] if self.distractors is not None else []
        return "; ".join(lines)

    def limited(self, limit: int) -> RevisitedSets:
        distractors, training = (
            one and one.limited(np.arange(min(limit, len(one)))) for one in (self.distractors, self.training)
        )
        return RevisitedSets(tuple(one.limited(limit) for one in self.sets), distractors, training)

    def distractors_of(self, one: RevisitedSet) -> ImageSet | None:
        """The distractors, if they can stand among references of this set: vectors on disk must be as long."""
        others = self.distractors
        return None if others is None or others.dimension != one.references.dimension else others

    def unlisted_notes(self) -> Iterable[str]:
        """How many vectors of each file are of images that no list names; before a limit, which leaves out others."""
        for one in self.all:
            if isinstance(one, StoredVectors) and one.chosen is not None:
                count = len(one.source) - len(one.chosen)
                yield f"UNLISTED: {count:,} vectors of {one.role} are of images that are not in its list; left out."

    def distractor_notes(self) -> Iterable[str]:
        """A warning for each set whose vectors are not as long as those of the distractors."""
        for one in self.sets if self.distractors is not None else ():
            if self.distractors_of(one) is None:
                yield (
                    f"WARNING: {one.name} has vectors of dimension {one.references.dimension}, {R1M} of "
                    f"{self.distractors.dimension if self.distractors else 0}: no rows {one.name}+r1m."
                )
