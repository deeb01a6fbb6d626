"""What patch-pairs reads: its options, and the files that `--pairs` and `--results` name.

Each is one file, several with commas, or a folder of them. What is wrong is noted, file by file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.job import Job
from raybench.benchmarks.options import option
from raybench.benchmarks.patches import PatchOptions, check_patch_inputs
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import ConfigError, DataError, ProblemList
from raybench.parallel import in_parallel

LIST_SUFFIXES = (".csv", ".txt")
RESULT_SUFFIXES = (".csv", ".npz")
OWN_RESULTS = "results"  # a folder of a run, which may be named itself
PHOTOTOUR_OTHERS = ("info.txt", "interest.txt")  # beside PhotoTour's lists, and none


@dataclass(frozen=True)
class PairOptions(PatchOptions):
    """Options of patch-pairs."""

    data: str | None = option(
        None,
        "folder or archive of patches: single images, PhotoTour's sheets patches0000.bmp, or SEQ/IM.png strips",
        "input",
        is_uri=True,
    )
    features: str | None = option(
        None,
        "vectors of the patches: one file with names, or with a row per patch number; or a folder SEQ/IM.csv",
        "input",
        is_uri=True,
    )
    pairs: str | None = option(
        None,
        "lists of a,b,label lines or PhotoTour's m50_….txt: a file, several with commas, or a folder of them",
        "input",
        is_uri=True,
        separator=",",
    )
    results: str | None = option(
        None,
        "finished distance,label or score,label lines, or .npz: a file, several with commas, or a folder of them",
        "input",
        is_uri=True,
        separator=",",
    )


class Labelled(Protocol):
    """The pairs of one file."""

    @property
    def positive(self) -> NDArray[np.bool_]: ...


Parsed = TypeVar("Parsed", bound=Labelled)


def check_inputs(job: Job[PairOptions]) -> None:
    """Exactly one place to enter, with the lists of pairs if that needs them."""
    check_patch_inputs(job, ("descriptor", "features", "results"))
    if job.options.results and job.options.pairs:
        raise ConfigError(f"{job.benchmark}: --results have labels of their own; leave out --pairs")
    if not job.options.results and not job.options.pairs:
        raise ConfigError(f"{job.benchmark}: --pairs is missing, the list of pairs (a,b,label lines, or m50_….txt)")


def read_each_list(
    option_name: str,
    given: str,
    suffixes: Sequence[str],
    parse: Callable[[bytes, str], Parsed],
    needs_both: bool,
    problems: ProblemList,
) -> tuple[dict[str, Parsed], str]:
    """The lists by their names, and a digest of all; what is wrong with one is noted.

    `needs_both`: a list without a match, or without another, is wrong, since it has no figures.
    """
    uris = [uri for part in given.split(",") for uri in _files(option_name, part, suffixes, problems)]
    named: dict[str, str] = {}
    for uri in uris:
        stem = posixpath.splitext(posixpath.basename(uri))[0]
        if stem in named and named[stem] != uri:
            problems.add(f"--{option_name}: {named[stem]} and {uri} have the same name, by which rows go; rename one")
        named.setdefault(stem, uri)

    def one(uri: str) -> tuple[bytes | None, str]:
        try:
            data = storage.read(uri)
        except (FileNotFoundError, IsADirectoryError):
            return None, ""
        return data, digest_of_bytes(data)

    found: dict[str, Parsed] = {}
    digests = []
    for (stem, uri), (data, digest) in zip(named.items(), in_parallel(one, named.values()), strict=True):
        with problems.noting():
            if data is None:
                raise DataError(f"{uri}: does not exist; expected a file of --{option_name}")
            noted = len(problems.lines)
            parsed = parse(data, uri)
            if needs_both and len(problems.lines) == noted:
                _check_both(uri, parsed.positive)
            found[stem] = parsed
            digests.append((stem, digest))
    return found, digest_of(digests)


def _files(option_name: str, given: str, suffixes: Sequence[str], problems: ProblemList) -> list[str]:
    if given.lower().endswith(tuple(suffixes)) and not storage.is_folder(given):
        return [given]
    path = storage.local_path(given)
    if path is not None and path.is_file():
        return [given]
    if option_name == "results" and storage.list_files(storage.join(given, OWN_RESULTS)):
        given = storage.join(given, OWN_RESULTS)
    names = [entry.name for entry in storage.list_files(given) if "/" not in entry.name and entry.name[0] != "."]
    fitting = [name for name in names if name.lower().endswith(tuple(suffixes)) and name not in PHOTOTOUR_OTHERS]
    if not fitting:
        reason = "has no such file in it" if storage.exists(given) else "does not exist"
        problems.add(f"{given}: {reason}; --{option_name} expects files {', '.join(suffixes)}, or a folder of them")
    return [storage.join(given, name) for name in fitting]


def _check_both(uri: str, positive: NDArray[np.bool_]) -> None:
    if positive.all() or not positive.any():
        missing = "other than matches, by which a false alarm could be counted" if positive.all() else "that match"
        raise DataError(f"{uri}: {len(positive):,} pairs, none {missing}; a list needs both")
