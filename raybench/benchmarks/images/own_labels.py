"""What is known of pairs of one's own images: the truth by name becomes labels by index.

Grades above 0 are relevant, junk is junk, and a pair graded 0 is as good as one that the truth does not name. A query
that is itself among the references is no match of its own, whatever the truth says: that pair is junk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.images.labelled_sets import NAMES_SHOWN, Labels
from raybench.benchmarks.images.sets import ImageSet, PictureSet, read_text
from raybench.digests import digest_of_bytes
from raybench.errors import ConfigError, ProblemList
from raybench.formats.limits import USUAL, Limits
from raybench.formats.names import Names, Strings, strings
from raybench.formats.relevance import Relevance, read_relevance
from raybench.metrics.micro_ap import TruePairs
from raybench.sources.vector_files import SSCD_SUFFIX

TRUTHS = ("ground_truth.csv", "ground_truth.parquet")

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]  # query, reference


@dataclass(frozen=True)
class OwnTruth:
    """The truth by name, and the digest of its file."""

    relevance: Relevance
    digest: str

    @classmethod
    def read(cls, uri: str, problems: ProblemList, limits: Limits = USUAL) -> OwnTruth:
        """The truth in a file; what is wrong with its lines is noted. Raises InputError for what is no such file."""
        content = read_text(uri, "ground truth: query,reference[,grade]")
        return cls(read_relevance(content, uri, problems, limits), digest_of_bytes(content))


def truth_uri(given: str | None, *beside: str | None) -> str:
    """Where the truth is: the file that is given, or in one of these folders; raises ConfigError."""
    folders = [folder for folder in beside if folder and not folder.endswith(SSCD_SUFFIX)]
    known = [storage.join(folder, name) for folder in folders for name in TRUTHS]
    found = given or next((uri for uri in known if storage.exists(uri)), None)
    if found is None:
        where = f"no {TRUTHS[0]} in {' or '.join(folders)}; " if folders else ""
        raise ConfigError(f"no --ground-truth: {where}name a CSV or Parquet file of query,reference[,grade]")
    return found


def labels_of(truth: Relevance, queries: ImageSet, references: ImageSet, own: Pairs, problems: ProblemList) -> Labels:
    """The labels of pairs by index, `own` pairs among them as junk; what is wrong with names is noted."""
    query, reference = truth.indices(queries.names, references.names, problems)
    stays = ~(truth.grades.gain == 0) & (TruePairs(*own).places(query, reference) < 0)
    query, reference = (np.concatenate(both) for both in ((query[stays], own[0]), (reference[stays], own[1])))
    gain = np.concatenate([np.nan_to_num(truth.grades.gain[stays], nan=0.0), np.zeros(len(own[0]))])
    hard = np.concatenate([truth.grades.hard[stays], np.zeros(len(own[0]), np.bool_)])
    if not problems.lines and not np.any(gain > 0):
        problems.add(f"{truth.name}: no query has a relevant reference other than itself")
    order = np.lexsort((reference, query))
    return Labels(TruePairs(query[order], reference[order]), gain[order], hard[order])


def own_pairs(queries: ImageSet, references: ImageSet) -> Pairs:
    """Queries that are references, too, and which: of one file, by whatever name; all where both sets are the same."""
    if queries.source.digest == references.source.digest:
        return np.arange(len(queries)), np.arange(len(queries))
    if not isinstance(queries, PictureSet) or not isinstance(references, PictureSet):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return _matched(_places(queries), Names(_places(references)))


def own_notes(queries: ImageSet, references: ImageSet, own: Pairs) -> Iterator[str]:
    """What was made of images that stand in both sets."""
    if len(own[0]):
        yield (
            f"{len(own[0]):,} queries are among the references themselves: a query's own image is junk to it, neither "
            "right nor wrong."
        )
    query, _ = _matched(queries.names.array, references.names)
    others = np.setdiff1d(query, own[0])
    if len(others):
        shown = ", ".join(queries.names[number] for number in others[:NAMES_SHOWN].tolist())
        more = " …" if len(others) > NAMES_SHOWN else ""
        yield (
            f"{len(others):,} names stand in queries and in references ({shown}{more}), in different files: they count "
            "as different images."
        )


def _places(images: PictureSet) -> Strings:
    """The place of each image, spelled in one way: of a list some may lead by `..`, or begin with file://."""
    return strings([storage.one_spelling(images.source.uri(item)) for item in range(len(images))])


def _matched(queries: Strings, references: Names) -> Pairs:
    """Queries that stand among references, and where."""
    found = references.indices(queries)
    query = np.flatnonzero(found >= 0)
    return query, found[query]
