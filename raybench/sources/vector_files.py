"""Vectors on disk: one file of any kind, and the descriptors of patches, one file `SEQ/IM.csv`, `.npy`, … per image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, ProblemList
from raybench.formats.limits import USUAL, Limits
from raybench.formats.vector_columns import VectorReader
from raybench.formats.vector_kinds import NAMED_SUFFIXES, PLAIN_SUFFIXES, open_named, plain_shape, read_plain
from raybench.parallel import in_parallel
from raybench.sources.strips import list_sequence_files, sequence_entries

SSCD_SUFFIX = ".pt"  # of the SSCD tools' feature files
SET_SUFFIXES = (*NAMED_SUFFIXES, SSCD_SUFFIX)


@dataclass(frozen=True)
class VectorFile:
    """One file of vectors with what a look at it gave: rows, dimension, its content's digest, what is wrong with it.

    `part` chooses among the images of an SSCD file (queries, references, training).
    """

    uri: str
    part: str = ""
    count: int = 0
    dimension: int = 0
    digest: str = ""
    problem: str = ""
    limits: Limits = USUAL

    def open(self) -> VectorReader:
        """A reader of the file with names, or of its node-local copy."""
        path = storage.fetch(self.uri)
        suffix = PurePosixPath(self.uri).suffix.lower()
        if suffix == SSCD_SUFFIX:
            from raybench.sources.sscd_features import SscdFeatures  # with Arrow's functions, which patches do without

            return SscdFeatures(path, self.uri, self.part)
        if suffix not in NAMED_SUFFIXES:
            raise DataError(f"{self.uri}: expected a file of vectors ({', '.join(SET_SUFFIXES)})")
        return open_named(path.open("rb"), self.uri, suffix, self.limits)


@dataclass(frozen=True)
class VectorFiles:
    """Descriptors on disk, one file per patch image, all of one kind; keys are `SEQ/IM` in name order."""

    root: str
    suffix: str
    keys: tuple[str, ...]
    digest: str
    files: tuple[VectorFile, ...]
    limits: Limits = USUAL

    @classmethod
    def scan(cls, root: str, limits: Limits = USUAL) -> VectorFiles:
        """List and look through the folder; the digest is of contents, so a re-extracted descriptor is never stale."""
        names = [entry.name for entry in sequence_entries(root)]
        suffixes = [suffix for suffix in PLAIN_SUFFIXES if any(name.endswith(suffix) for name in names)]
        if len(suffixes) > 1:
            raise DataError(f"{root}: files of several kinds ({', '.join(suffixes)}); expected one kind")
        suffix = suffixes[0] if suffixes else ".csv"
        expected = "descriptor files SEQ/IM.csv, .npy, .parquet or .h5"
        if not suffixes and any(name.endswith(".png") for name in names):
            expected += "; for strips SEQ/IM.png give --data and --descriptor"
        entries = list_sequence_files(root, suffix, expected)
        files = in_parallel(lambda entry: _look(storage.join(root, entry.name), suffix, limits), entries)
        keys = tuple(entry.name.removesuffix(suffix) for entry in entries)
        content = [(key, file.digest) for key, file in zip(keys, files, strict=True)]
        return cls(root, suffix, keys, digest_of("vectors", content), tuple(files), limits)

    def uri(self, item: int) -> str:
        return self.files[item].uri

    def counts(self, items: Iterable[int], problems: ProblemList) -> dict[int, int]:
        """Descriptors in each of these files; a file that is wrong, or of another dimension than most, is noted."""
        found: dict[int, int] = {}
        chosen = list(items)
        usual = Counter(self.files[item].dimension for item in chosen if not self.files[item].problem).most_common(1)
        for item in chosen:
            file = self.files[item]
            if file.problem:
                problems.add(file.problem)
            elif file.dimension != usual[0][0]:
                problems.add(
                    f"{self.uri(item)}: dimension {file.dimension}, most have {usual[0][0]}; all must be the same"
                )
            else:
                found[item] = file.count
        return found

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """Each file's name and descriptors, (n, dim)."""
        for item in range(start, stop):
            uri = self.uri(item)
            yield uri, read_plain(storage.read(uri), uri, self.suffix, self.limits)


def _look(uri: str, suffix: str, limits: Limits) -> VectorFile:
    data = b""
    try:
        data = storage.read(uri)
        rows, dimension = plain_shape(data, uri, suffix, limits)
    except DataError as error:
        return VectorFile(uri, digest=digest_of_bytes(data), problem=str(error))
    return VectorFile(uri, count=rows, dimension=dimension, digest=digest_of_bytes(data))
