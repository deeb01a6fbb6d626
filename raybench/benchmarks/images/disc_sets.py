"""Where a DISC2021 job finds what it rests on: images or vectors of queries, references and training; true pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from raybench import storage
from raybench.benchmarks.images.disc_options import DiscOptions
from raybench.benchmarks.images.sets import (
    ImageSet,
    StoredVectors,
    note_other_dimensions,
    pictures,
    read_text,
    vectors_on_disk,
)
from raybench.benchmarks.job import Job
from raybench.digests import digest_of_bytes
from raybench.errors import ConfigError, ProblemList
from raybench.formats.disc import GroundTruth, read_ground_truth
from raybench.formats.limits import Limits
from raybench.formats.names import Names
from raybench.metrics.micro_ap import TruePairs
from raybench.sources.named_vectors import find_vectors
from raybench.sources.vector_files import SSCD_SUFFIX

# The published layout first, then the competition's own.
TRUTHS = ("val_groundtruth_matches.csv", "public_ground_truth.csv")
DISC_FOLDERS = {
    "queries": ("val_query", "queries"),
    "references": ("val_ref", "references"),
    "training": ("training", "train"),
}
SHOWN_BY = "; `raybench datasets disc2021` shows its tree"
DISC_STEMS = {"queries": ("queries",), "references": ("references", "refs"), "training": ("training", "train")}


@dataclass(frozen=True)
class TruthFile:
    """The ground truth by name, and the digest of its file."""

    pairs: GroundTruth
    digest: str


def find_truth(given: str | None, beside: Sequence[str | None]) -> TruthFile:
    """The ground truth in the file that is given, or in one of these folders."""
    uri = truth_file(given, beside)
    data = read_text(uri, "ground truth: query,reference lines")
    return TruthFile(read_ground_truth(data, uri), digest_of_bytes(data))


def truth_file(given: str | None, beside: Sequence[str | None]) -> str:
    """Where the ground truth is: the file that is given, or in one of these folders."""
    return given or _truth_in([folder for folder in beside if folder and not folder.endswith(SSCD_SUFFIX)])


def _truth_in(folders: Sequence[str]) -> str:
    for uri in (storage.join(folder, name) for folder in folders for name in TRUTHS):
        if storage.exists(uri):
            return uri
    where = " or ".join(folders) or "the data"
    raise ConfigError(f"disc2021: no {TRUTHS[0]} in {where}; name the file by --ground-truth")


def true_pairs(truth: GroundTruth, queries: Names, references: Names, problems: ProblemList) -> TruePairs:
    """The true pairs by index; names of the truth that no image has are noted."""
    pairs = TruePairs.of(*truth.indices(queries, references, problems))
    unknown = np.flatnonzero(queries.indices(truth.unmatched) < 0)
    if len(unknown):
        name = truth.unmatched[int(unknown[0])].as_py()
        problems.add(
            f"{truth.name}: query {name!r}, listed without a match, is not among the queries ({len(unknown):,} such)"
        )
    return pairs


def find_sets(
    job: Job[DiscOptions], folders: Mapping[str, str | None], problems: ProblemList
) -> Mapping[str, ImageSet | None]:
    """The images of each role; a missing training set is none, anything else that is wrong is noted."""
    if job.options.features:
        return find_stored(job.options.features, job.limits, problems)
    found = {role: folders[role] or role_folder(job.options.data, role, problems) for role in DISC_FOLDERS}
    return {
        role: pictures(role, uri, job.verify_inputs, problems, limits=job.limits, store=job.store) if uri else None
        for role, uri in found.items()
    }


def find_stored(
    root: str, limits: Limits, problems: ProblemList, named_by: str = "stem"
) -> dict[str, StoredVectors | None]:
    """The vectors of each role in the files of a folder; a missing training set is none, what is wrong is noted."""
    found = {}
    for role, stems in DISC_STEMS.items():
        if root.endswith(SSCD_SUFFIX):  # one file of the SSCD tools has all three
            found[role] = vectors_on_disk(role, [root], problems, named_by, part=role, limits=limits)
        else:
            uris = find_vectors(root, stems, problems, role != "training")
            found[role] = vectors_on_disk(role, uris, problems, named_by, limits=limits)
    note_other_dimensions(found.values(), problems)
    return found


def role_folder(data: str | None, role: str, problems: ProblemList) -> str | None:
    """The folder of a role below the DISC root; none for training where there is none."""
    if data is None:
        if role != "training":
            problems.add(f"disc2021: no --data and no --{role}; give the DISC root, or a folder for each")
        return None
    known = [storage.join(data, name) for name in DISC_FOLDERS[role]]
    found = next((uri for uri in known if storage.exists(uri)), None)
    if found is None and role != "training":
        lacking = f"has no folder {' or '.join(DISC_FOLDERS[role])}"
        problems.add(f"{data}: {_why_no_root(data) or lacking}; expected the DISC root{_root_meant(data)}{SHOWN_BY}")
    return found


def _why_no_root(data: str) -> str:
    """Why there is no folder at all; empty if there is one."""
    path = storage.local_path(data)
    if path is not None and path.is_file():
        return "is a file"
    return "" if storage.exists(data) else "does not exist"


def _root_meant(data: str) -> str:
    """The DISC root on disk beside or below a folder that is none, if there is one."""
    path = storage.local_path(data)
    if path is None or not path.is_dir():
        return ""
    near = [path.parent, *sorted(folder for folder in path.iterdir() if folder.is_dir())]
    meant = [root for root in near if any((root / name).is_dir() for name in DISC_FOLDERS["queries"])]
    return f"; perhaps {meant[0]} is meant" if meant else ""
