"""What a DISC2021 job rests on: images or vectors of queries, references and training, and the true pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from raybench import storage
from raybench.benchmarks.copies import sets as image_sets
from raybench.benchmarks.copies.sets import ImageSet
from raybench.benchmarks.job import Job
from raybench.digests import digest_of_bytes
from raybench.errors import ConfigError, ProblemList
from raybench.formats import disc
from raybench.formats.names import Names
from raybench.metrics.micro_ap import TruePairs
from raybench.sources.named_vectors import find_vectors
from raybench.sources.sscd_features import SSCD_SUFFIX

TRUTH = "val_groundtruth_matches.csv"
# The published layout first, then the competition's own.
FOLDERS = {
    "queries": ("val_query", "queries"),
    "references": ("val_ref", "references"),
    "training": ("training", "train"),
}
TRUTHS = (TRUTH, "public_ground_truth.csv")
STEMS = {"queries": ("queries",), "references": ("references", "refs"), "training": ("training", "train")}


@dataclass(frozen=True)
class DiscSets:
    """Images of three roles; pairs are places in queries and references."""

    queries: ImageSet
    references: ImageSet
    training: ImageSet | None
    truth: TruePairs

    @property
    def all(self) -> tuple[ImageSet, ...]:
        found = (self.queries, self.references, self.training)
        return tuple(images for images in found if images is not None)

    def limited(self, limit: int, training: int) -> DiscSets:
        """The first queries, their true references and the first others, and of training at least so many."""
        mine = self.truth.query < limit
        query, reference = self.truth.query[mine], self.truth.reference[mine]
        first = np.arange(min(limit, len(self.references)))
        kept = np.union1d(reference, first)
        others = self.training
        return replace(
            self,
            queries=self.queries.limited(np.arange(min(limit, len(self.queries)))),
            references=self.references.limited(kept),
            training=others and others.limited(np.arange(min(max(limit, training), len(others)))),
            truth=TruePairs.of(query, np.searchsorted(kept, reference)),
        )


def read_truth(job: Job[Any]) -> tuple[disc.GroundTruth, str]:
    """The ground truth and its digest, from `--ground-truth` or beside data or features."""
    uri = job.options.ground_truth or _truth_beside(job)
    data = image_sets.read_text(uri, "ground truth: query,reference lines")
    return disc.read_ground_truth(data, uri), digest_of_bytes(data)


def _truth_beside(job: Job[Any]) -> str:
    places = [place for place in (job.options.data, job.options.features) if place and not place.endswith(".pt")]
    if job.options.results:
        places.append(predictions_file(job.options.results).rpartition("/")[0])
    for place in places:
        for name in TRUTHS:
            if storage.exists(storage.join(place, name)):
                return storage.join(place, name)
    where = " or ".join(places) or "the data"
    raise ConfigError(f"{job.benchmark}: no {TRUTH} in {where}; name the file by --ground-truth")


def predictions_file(results: str) -> str:
    """The file that `--results` means: itself, or `predictions.csv` in a folder, such as a run's own `results/`."""
    inside = storage.join(results, "predictions.csv")
    return inside if not results.endswith(".csv") and storage.exists(inside) else results


def find_sets(job: Job[Any], problems: ProblemList) -> dict[str, ImageSet | None]:
    """The images of each role; a missing training set is none, anything else that is wrong is noted."""
    if job.options.features:
        root, found = job.options.features, {}
        for role, stems in STEMS.items():
            if root.endswith(SSCD_SUFFIX):  # one file of the SSCD tools has all three
                found[role] = image_sets.vectors_on_disk(role, [root], problems, part=role)
            else:
                uris = find_vectors(root, stems, problems, wanted=role != "training")
                found[role] = image_sets.vectors_on_disk(role, uris, problems)
        image_sets.note_other_dimensions(found.values(), problems)
        return found
    return {role: _pictures(job, role, problems) for role in FOLDERS}


def _pictures(job: Job[Any], role: str, problems: ProblemList) -> ImageSet | None:
    given: str | None = getattr(job.options, role)
    if given is not None:
        return image_sets.pictures(role, given, job, problems)
    if job.options.data is None:
        if role != "training":
            problems.add(f"{job.benchmark}: no --data and no --{role}; give the DISC root, or a folder for each")
        return None
    folders = [storage.join(job.options.data, name) for name in FOLDERS[role]]
    there = next((folder for folder in folders if storage.exists(folder)), None)
    if there is None and role == "training":
        return None
    return image_sets.pictures(role, there or folders[0], job, problems)


def true_pairs(truth: disc.GroundTruth, queries: Names, references: Names, problems: ProblemList) -> TruePairs:
    """The pairs by places; names of the truth that no image has are noted."""
    pairs = TruePairs.of(*truth.indices(queries, references, problems))
    unknown = np.flatnonzero(queries.indices(truth.unmatched) < 0)
    if len(unknown):
        name = truth.unmatched[int(unknown[0])].as_py()
        problems.add(
            f"{truth.name}: query {name!r}, listed without a match, is not among the queries ({len(unknown):,} such)"
        )
    return pairs
