"""Names of images by the million: Arrow strings, which cost little more than their letters.

`Names` are in name order (by the bytes of their UTF-8) unless the data has a list, each once; an image's index is its
position there, and all that is compared or counted later goes by indices. How a name is made of a file's is up to the
caller: see `NORMALISERS`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench.digests import digest_of, digest_of_bytes
from raybench.formats.images import SUFFIXES

Strings = Any  # pa.StringArray: pyarrow has no types


def strings(values: Iterable[Any]) -> Strings:
    """Arrow strings from a list or an array of strings or UTF-8 bytes; raises pa.ArrowInvalid for other bytes."""
    array: Any = values
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not isinstance(array, pa.Array):
        array = pa.array(array if isinstance(array, np.ndarray) else list(array))
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array if array.type == pa.string() else array.cast(pa.string())


def stems(names: Strings) -> Strings:
    """Names without folders and image suffix, as DISC names its images.

    >>> stems(strings(["train/T000001.jpg", "Q00002", "a.b/R000003.PNG", "two\\nlines/R4.jp2"])).to_pylist()
    ['T000001', 'Q00002', 'R000003', 'R4']
    """
    return without_suffix(pc.replace_substring_regex(names, r"(?s)^.*/", ""))


def without_suffix(names: Strings) -> Strings:
    """Names without an image's suffix.

    >>> without_suffix(strings(["train/T000001.jpg", "b.c"])).to_pylist()
    ['train/T000001', 'b.c']
    """
    return pc.replace_substring_regex(names, rf"(?i)({'|'.join(map(re.escape, SUFFIXES))})$", "")


def paths(names: Strings) -> Strings:
    """Names as they are, without a leading `./`.

    >>> paths(strings(["./original/200000.jpg"])).to_pylist()
    ['original/200000.jpg']
    """
    return pc.replace_substring_regex(names, r"^(\./)+", "")


def shortest(names: Strings) -> Strings:
    """Stems, if no two are the same; else names without image suffix, but with their folders.

    >>> [shortest(strings(names)).to_pylist() for names in (["a/1.jpg", "b/2.jpg"], ["a/1.jpg", "b/1.jpg"])]
    [['1', '2'], ['a/1', 'b/1']]
    """
    bare = stems(names)
    return bare if pc.count_distinct(bare).as_py() == len(bare) else without_suffix(paths(names))


def without_jpg(names: Strings) -> Strings:
    """Names as they are, without a leading `./` and a trailing `.jpg`, which lists of Revisited Oxford and Paris omit.

    >>> without_jpg(strings(["oxford_000317", "./00/0000012.jpg"])).to_pylist()
    ['oxford_000317', '00/0000012']
    """
    return pc.replace_substring_regex(paths(names), r"(?i)\.jpg$", "")


NORMALISERS: dict[str, Callable[[Strings], Strings]] = {
    "stem": stems,
    "path": paths,
    "without_jpg": without_jpg,
    "shortest": shortest,
}


@dataclass(frozen=True)
class Names:
    """Names, each once: in name order, or in that of a list that comes with the data (`revisited`)."""

    array: Strings

    @classmethod
    def of(cls, values: Iterable[Any]) -> Names:
        """From names in any order; one that comes twice is an error."""
        array = strings(values)
        order, twice = name_order(array)
        if len(twice):
            raise ValueError(f"{array[int(twice[0, 0])].as_py()!r} comes twice")
        return cls(array.take(pa.array(order)))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: int) -> str:
        return str(self.array[int(index)].as_py())

    @property
    def digest(self) -> str:
        lengths = pc.binary_length(self.array).to_numpy(zero_copy_only=False)
        letters = self.array.buffers()[2]
        start, stop = (self.array.offset, self.array.offset + len(self.array))
        offsets = np.frombuffer(self.array.buffers()[1], np.int32)[[start, stop]] if len(self) else (0, 0)
        content = memoryview(letters)[offsets[0] : offsets[1]] if letters is not None else memoryview(b"")
        return digest_of("names", lengths, digest_of_bytes(content))

    def take(self, indices: NDArray[np.int64]) -> Strings:
        """The names at these indices, in this order."""
        return self.array.take(pa.array(indices))

    def indices(self, wanted: Strings) -> NDArray[np.int64]:
        """The index of each wanted name, -1 where there is none such.

        >>> Names.of(["b", "a"]).indices(strings(["b", "c"])).tolist()
        [1, -1]
        """
        found = pc.index_in(wanted, value_set=self.array)
        return np.asarray(pc.fill_null(found, -1), np.int64)


def name_order(names: Strings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows in name order, and (n, 2) neighbours in it that have the same name, by their rows.

    >>> [part.tolist() for part in name_order(strings(["b", "a", "b"]))]
    [[1, 0, 2], [[0, 2]]]
    """
    order = np.asarray(pc.sort_indices(names), np.int64)
    ordered = names.take(pa.array(order))
    same = np.asarray(pc.equal(ordered[1:], ordered[:-1])) if len(ordered) > 1 else np.zeros(0, np.bool_)
    at = np.flatnonzero(same)
    return order, np.stack([order[at], order[at + 1]], axis=1)


def common_names(training: Names, others: Names) -> list[str]:
    """Names that stand in both sets: of training images among queries or references, this is leakage."""
    there = training.indices(others.array) >= 0
    return [str(name) for name in others.array.filter(pa.array(there)).to_pylist()]
