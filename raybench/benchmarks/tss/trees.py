"""Flow sets: the pairs of a TSS `Dataset` tree and of a `Results` tree, listed, looked at and readable one by one.

A look costs headers and sizes only; bodies are read where pairs are computed or scored. Problems are noted by pair, so
that all are said at once, or their pairs left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.tss.scoring import Side
from raybench.digests import digest_of
from raybench.errors import DataError, InputError
from raybench.formats import flo, png, tss

TEXTS = ("pair.txt", "flip_gt.txt")
TRUTH = ("flow1.flo", "flow2.flo", "mask1.png", "mask2.png", *TEXTS)
IMAGES = ("image1.png", "image2.png")
FLOWS = tuple(f"flow{side}{suffix}" for side in (1, 2) for suffix in flo.FLOW_FORMATS)
MASKS = ("mask1.png", "mask2.png")

T = TypeVar("T")

Entries = dict[str, dict[str, storage.Entry]]  # by GROUP/PAIR, then by file
Size = tuple[int, int]  # width, height


@dataclass(frozen=True)
class Pair:
    """One pair of the truth: names of its two source images, whether it is mirrored, sizes of its images."""

    group: str
    name: str
    sources: tuple[str, str]
    flip: int
    sizes: tuple[Size, Size]

    @property
    def key(self) -> str:
        return f"{self.group}/{self.name}"


@dataclass(frozen=True)
class PairFiles:
    """What a result has: its two flow files, or none; its two masks, or none. One of a kind counts as none."""

    flows: tuple[str, ...]
    masks: tuple[str, ...]


@dataclass(frozen=True)
class TruthSet:
    """The pairs of a `Dataset` tree in the order of groups and names. `image_digest` is of the images."""

    root: str
    pairs: tuple[Pair, ...]
    digest: str
    image_digest: str

    @classmethod
    def of(cls, found: Found, pairs: Sequence[Pair], images: bool, by_content: bool) -> TruthSet:
        """These pairs; the digest is of names, sizes and stamps, or of contents (`--verify-inputs`)."""
        keys = [pair.key for pair in pairs]
        image_digest = found.digest(keys, IMAGES, by_content) if images else ""
        return cls(found.root, tuple(pairs), found.digest(keys, TRUTH, by_content), image_digest)

    def uri(self, item: int, file: str) -> str:
        return storage.join(self.root, self.pairs[item].key, file)

    def truth(self, item: int) -> Side:
        """True flows and masks; raises DataError."""
        return _side(lambda file: self.uri(item, file), PairFiles(TRUTH[:2], MASKS))

    def images(self, item: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Both images, RGB; raises DataError."""
        first, second = (tss.read_image(_read(uri), uri) for uri in (self.uri(item, file) for file in IMAGES))
        return first, second


@dataclass(frozen=True)
class ResultSet:
    """The pairs of a `Results` tree, in the order of the truth's pairs."""

    root: str
    keys: tuple[str, ...]
    files: tuple[PairFiles, ...]
    digest: str

    @classmethod
    def of(cls, found: Found, files: dict[str, PairFiles], by_content: bool) -> ResultSet:
        """The results of these pairs, in this order."""
        digest = found.digest(list(files), (*FLOWS, *MASKS), by_content)
        return cls(found.root, tuple(files), tuple(files.values()), digest)

    def uri(self, item: int, file: str) -> str:
        return storage.join(self.root, self.keys[item], file)

    def result(self, item: int) -> Side:
        """The flows and masks that are there; raises DataError."""
        return _side(lambda file: self.uri(item, file), self.files[item])


@dataclass(frozen=True)
class Found:
    """A listed tree: files by pair, and what is wrong with a pair, by pair."""

    root: str
    entries: Entries
    problems: dict[str, list[str]]

    def size_bytes(self, keys: Sequence[str]) -> int:
        """Of all files of these pairs."""
        return sum(entry.size_bytes for key in keys for entry in self.entries[key].values())

    def digest(self, keys: Sequence[str], files: Iterable[str], by_content: bool) -> str:
        """Of names, sizes and stamps of these files of these pairs, or of contents; of texts always of contents."""
        wanted = set(files)
        chosen = [self.entries[key][name] for key in keys for name in sorted(wanted & set(self.entries[key]))]
        texts = [entry for entry in chosen if entry.name.endswith(TEXTS)]
        others = [entry for entry in chosen if not entry.name.endswith(TEXTS)]
        by_file = (storage.identity(self.root, texts, True), storage.identity(self.root, others, by_content))
        return digest_of("flow set", *by_file)


def list_truth(root: str) -> Found:
    """The pairs of a `Dataset` tree; a file that a pair lacks is a problem of it."""
    found = _listed(root, (*TRUTH, *IMAGES), "a Dataset tree, GROUP/PAIR/flow1.flo, …")
    for key, entries in found.entries.items():
        lacking = [name for name in TRUTH if name not in entries]
        if lacking:
            found.problems[key] = [f"{storage.join(root, key)}: no {', '.join(lacking)}; the truth needs them"]
    return found


def look_at_truth(found: Found, keys: Sequence[str], images: bool) -> dict[str, Pair]:
    """Headers and texts of these pairs; with `images` also those of images, which must have the flows' sizes.

    Problems are noted in `found`, and the pairs returned are those without any.
    """
    whole = [key for key in keys if key not in found.problems]
    return _sorted_out(found, whole, storage.in_parallel(lambda key: _looked_pair(found, key, images), whole))


def list_results(root: str) -> Found:
    """The pairs of a `Results` tree: those that hold a flow or a mask."""
    return _listed(root, (*FLOWS, *MASKS), "a Results tree, GROUP/PAIR/flow1.flo, …")


def note_empty_results(found: Found, keys: Sequence[str]) -> None:
    """A pair whose folder is there without a flow or mask has a result, too, as it has for the tools: an empty one."""
    missing = [key for key in keys if key not in found.entries]
    there = storage.in_parallel(lambda key: storage.exists(storage.join(found.root, key)), missing)
    found.entries.update({key: {} for key, exists in zip(missing, there, strict=True) if exists})


def look_at_results(found: Found, keys: Sequence[str]) -> dict[str, PairFiles]:
    """Headers of these pairs' files; problems are noted in `found`, and the pairs returned are those without any."""

    def look(key: str) -> PairFiles | list[str]:
        files = PairFiles(_both_flows(found.entries[key]), _both(found.entries[key], MASKS))
        sizes = [_size(found, key, name) for name in (*files.flows, *files.masks)]
        return [size for size in sizes if isinstance(size, str)] or files

    return _sorted_out(found, keys, storage.in_parallel(look, keys))


def broken_bodies(truth: TruthSet, results: ResultSet | None) -> list[str]:
    """What can only be seen inside the files: NaN, damaged masks. Reads all of them."""

    def look(item: int) -> list[str]:
        lines = []
        for read in (truth.truth, *((results.result,) if results else ())):
            try:
                read(item)
            except DataError as error:
                lines.append(str(error))
        return lines

    return [line for lines in storage.in_parallel(look, range(len(truth.pairs))) for line in lines]


def _sorted_out(found: Found, keys: Sequence[str], looks: Iterable[T | list[str]]) -> dict[str, T]:
    good: dict[str, T] = {}
    for key, looked in zip(keys, looks, strict=True):
        if isinstance(looked, list):
            found.problems[key] = looked
        else:
            good[key] = looked
    return good


def _listed(root: str, files: Sequence[str], what: str) -> Found:
    """Pairs that hold one of these files; other files and folders (`corr.txt`, `vis/`, …) are none of ours."""
    entries: Entries = {}
    depths = set()
    for entry in storage.list_files(root):
        parts = entry.name.split("/")
        if parts[-1] in files and not any(part.startswith(".") for part in parts):
            depths.add(len(parts))
            if len(parts) == 3:
                entries.setdefault(f"{parts[0]}/{parts[1]}", {})[parts[2]] = entry
    if not entries:
        if not storage.exists(root):
            reason = "does not exist"
        elif 2 in depths:
            reason = "is one group; name its parent"
        else:
            reason = "is a level too high; name the folder of the groups" if 4 in depths else "holds no pair"
        raise DataError(f"{root}: {reason}; expected {what}")
    return Found(root, dict(sorted(entries.items())), {})


def _looked_pair(found: Found, key: str, images: bool) -> Pair | list[str]:
    lines: list[str] = []
    texts = [_text(found.root, key, *text) for text in ((TEXTS[0], tss.read_pair), (TEXTS[1], tss.read_flip))]
    sizes = {name: _size(found, key, name) for name in TRUTH[:4]}
    if images:
        lacking = [name for name in IMAGES if name not in found.entries[key]]
        lines += [f"{storage.join(found.root, key)}: no {name}, which is needed here" for name in lacking]
        sizes |= {name: _size(found, key, name) for name in IMAGES if name not in lacking}
    lines += [value.args[0] for value in texts if isinstance(value, InputError)]
    lines += [size for size in sizes.values() if isinstance(size, str)]
    for name, size in sizes.items():
        flow = f"flow{name[-5]}.flo"
        if not isinstance(size, str) and not isinstance(sizes[flow], str) and size != sizes[flow]:
            uri = storage.join(found.root, key, name)
            lines.append(f"{uri}: {size[0]}x{size[1]}, but {flow} is {sizes[flow][0]}x{sizes[flow][1]}")
    if lines:
        return lines
    group, name = key.split("/")
    return Pair(group, name, texts[0], texts[1], (sizes["flow1.flo"], sizes["flow2.flo"]))  # type: ignore[arg-type]


def _text(root: str, key: str, file: str, parse: Callable[[bytes, str], object]) -> object:
    uri = storage.join(root, key, file)
    try:
        return parse(_read(uri), uri)
    except DataError as error:
        return error


def _size(found: Found, key: str, file: str) -> Size | str:
    """Width and height of a flow, mask or image from its header, or what is wrong with it."""
    uri, entry = storage.join(found.root, key, file), found.entries[key][file]
    stem, _, suffix = file.rpartition(".")
    try:
        if not stem.startswith("flow"):
            start = storage.read_start(uri, png.HEADER_BYTES)
            header = png.read_header(start, uri)
            return tss.mask_size(start, uri) if stem.startswith("mask") else (header.width, header.height)
        count = flo.FLOW_FORMATS[f".{suffix}"].header_bytes
        start = storage.read(uri) if count is None else storage.read_start(uri, count)
        return flo.flow_size(start, entry.size_bytes, uri, f".{suffix}")
    except DataError as error:
        return str(error)


def _both_flows(entries: dict[str, storage.Entry]) -> tuple[str, ...]:
    """The two flow files, in the first of the kinds that is there; a `flow1.png` beside a `flow1.flo` is a picture."""
    sides = [
        [f"flow{side}{suffix}" for suffix in flo.FLOW_FORMATS if f"flow{side}{suffix}" in entries] for side in (1, 2)
    ]
    return (sides[0][0], sides[1][0]) if all(sides) else ()


def _both(entries: dict[str, storage.Entry], names: tuple[str, ...]) -> tuple[str, ...]:
    return names if all(name in entries for name in names) else ()


def _side(uri_of: Callable[[str], str], files: PairFiles) -> Side:
    flows = [flo.read_flow(_read(uri_of(name)), uri_of(name), f".{name.rpartition('.')[2]}") for name in files.flows]
    masks = [tss.read_mask(_read(uri_of(name)), uri_of(name)) for name in files.masks]
    return Side((flows[0], flows[1]) if flows else None, (masks[0], masks[1]) if masks else None)


def _read(uri: str) -> bytes:
    try:
        return storage.read(uri)
    except FileNotFoundError:
        raise DataError(f"{uri}: is gone since the run started") from None
