"""Descriptors of patches on disk: one file `SEQ/IM.csv`, `.npy`, … per patch image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of, digest_of_bytes
from raybench.errors import DataError, ProblemList
from raybench.formats import vectors
from raybench.sources.patches import list_sequence_files, sequence_entries


@dataclass(frozen=True)
class VectorFile:
    """What a look at a file of descriptors gave: its content's digest, and its shape or what is wrong with it."""

    digest: str
    rows: int
    dimension: int
    problem: str


@dataclass(frozen=True)
class VectorFiles:
    """Descriptors on disk, one file a patch image, all of one kind; keys are `SEQ/IM` in name order."""

    root: str
    suffix: str
    keys: tuple[str, ...]
    digest: str
    files: tuple[VectorFile, ...]

    @classmethod
    def scan(cls, root: str) -> VectorFiles:
        """List and look through the folder; the digest is of contents, so a re-extracted descriptor is never stale."""
        names = [entry.name for entry in sequence_entries(root)]
        suffixes = [suffix for suffix in vectors.READERS if any(name.endswith(suffix) for name in names)]
        if len(suffixes) > 1:
            raise DataError(f"{root}: files of several kinds ({', '.join(suffixes)}); expected one kind")
        suffix = suffixes[0] if suffixes else ".csv"
        entries = list_sequence_files(root, suffix, "descriptor files SEQ/IM.csv, .npy, .parquet or .h5")
        files = storage.in_parallel(lambda entry: _look(storage.join(root, entry.name), suffix), entries)
        keys = tuple(entry.name.removesuffix(suffix) for entry in entries)
        content = [(key, file.digest) for key, file in zip(keys, files, strict=True)]
        return cls(root, suffix, keys, digest_of("vectors", content), tuple(files))

    def uri(self, item: int) -> str:
        return storage.join(self.root, self.keys[item] + self.suffix)

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
                found[item] = file.rows
        return found

    def read(self, start: int, stop: int) -> Iterator[tuple[str, NDArray[Any]]]:
        """Each file's name and descriptors, (n, dim)."""
        for item in range(start, stop):
            yield self.uri(item), vectors.read_vectors(storage.read(self.uri(item)), self.uri(item), self.suffix)


def _look(uri: str, suffix: str) -> VectorFile:
    data = storage.read(uri)
    try:
        rows, dimension = vectors.vectors_shape(data, uri, suffix)
    except DataError as error:
        return VectorFile(digest_of_bytes(data), 0, 0, str(error))
    return VectorFile(digest_of_bytes(data), rows, dimension, "")
