"""The trees of TSS: the pairs of a `Dataset` and of a `Results` tree, listed, looked at and readable one by one.

A look costs headers and sizes only; bodies are read where pairs are computed or scored. Problems are noted by pair, so
that all are said at once, or their pairs left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.digests import digest_of
from raybench.errors import DataError, InputError, OutOfReach
from raybench.formats import flo, png, tss
from raybench.formats.limits import USUAL, Limits
from raybench.parallel import in_parallel
from raybench.sources.file_names import check_names

TRUE_FLOWS = ("flow1.flo", "flow2.flo")
FOUND_FLOWS = tuple(f"flow{side}{suffix}" for side in (1, 2) for suffix in flo.FLOW_FORMATS)
MASKS = ("mask1.png", "mask2.png")
IMAGES = ("image1.png", "image2.png")
TEXTS = ("pair.txt", "flip_gt.txt")
TRUTH_FILES = (*TRUE_FLOWS, *MASKS, *TEXTS)
RESULT_FILES = (*FOUND_FLOWS, *MASKS)

Looked = TypeVar("Looked")

ImagesOfPair = tuple[NDArray[np.uint8], NDArray[np.uint8]]  # both RGB, (height, width, 3)


@dataclass(frozen=True)
class FlowPair:
    """One pair of the truth: its folder in a group, names of its two source images, 1 if it is mirrored."""

    group: str
    folder: str
    sources: tuple[str, str]
    flip: int

    @property
    def name(self) -> str:
        return f"{self.group}/{self.folder}"


@dataclass(frozen=True)
class FlowsAndMasks:
    """A pair's flows and masks, of image 1 and of image 2; of a result either may be absent."""

    flows: tuple[flo.FlowField, flo.FlowField] | None
    masks: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None


@dataclass(frozen=True)
class PairFiles:
    """What a result has: its two flow files, or none; its two masks, or none. One of a kind counts as none."""

    flows: tuple[str, ...]
    masks: tuple[str, ...]

    def read(self, folder: str, limits: Limits) -> FlowsAndMasks:
        """Their content; raises DataError."""
        flow_uris, mask_uris = ([storage.join(folder, name) for name in names] for names in (self.flows, self.masks))
        flows = [flo.read_flow(_read(uri), uri, f".{uri.rpartition('.')[2]}", limits) for uri in flow_uris]
        masks = [tss.read_mask(_read(uri), uri, limits) for uri in mask_uris]
        return FlowsAndMasks((flows[0], flows[1]) if flows else None, (masks[0], masks[1]) if masks else None)


@dataclass(frozen=True)
class TruthTree:
    """The pairs of a `Dataset` tree in the order of groups and names."""

    root: str
    pairs: tuple[FlowPair, ...]
    digest: str
    limits: Limits = USUAL

    @classmethod
    def of(cls, listed: ListedTree, pairs: Sequence[FlowPair], by_content: bool) -> TruthTree:
        """These pairs; the digest is of names, sizes and stamps, or of contents (`--verify-inputs`)."""
        digest = listed.digest([pair.name for pair in pairs], TRUTH_FILES, by_content)
        return cls(listed.root, tuple(pairs), digest, listed.limits)

    def read(self, pair: FlowPair) -> FlowsAndMasks:
        """True flows and masks; raises DataError."""
        return PairFiles(TRUE_FLOWS, MASKS).read(storage.join(self.root, pair.name), self.limits)


@dataclass(frozen=True)
class TreeImages:
    """The images of the pairs of a `Dataset` tree, which only flow methods and pictures need."""

    root: str
    digest: str
    limits: Limits = USUAL

    @classmethod
    def of(cls, listed: ListedTree, pairs: Sequence[FlowPair], by_content: bool) -> TreeImages:
        """The images of these pairs."""
        return cls(listed.root, listed.digest([pair.name for pair in pairs], IMAGES, by_content), listed.limits)

    def read(self, pair: FlowPair) -> ImagesOfPair:
        """Both images; raises DataError."""
        uris = [storage.join(self.root, pair.name, file) for file in IMAGES]
        first, second = (tss.read_image(_read(uri), uri, self.limits) for uri in uris)
        return first, second


@dataclass(frozen=True)
class ResultsTree:
    """The results of pairs in a `Results` tree, by the pair's name."""

    root: str
    files: dict[str, PairFiles]
    digest: str
    limits: Limits = USUAL

    @classmethod
    def of(cls, listed: ListedTree, files: dict[str, PairFiles], by_content: bool) -> ResultsTree:
        """The results of these pairs."""
        return cls(listed.root, files, listed.digest(list(files), RESULT_FILES, by_content), listed.limits)

    def read(self, pair: FlowPair) -> FlowsAndMasks:
        """The flows and masks that are there; raises DataError."""
        return self.files[pair.name].read(storage.join(self.root, pair.name), self.limits)


@dataclass(frozen=True)
class ListedTree:
    """A listed tree: files by pair and name, what is wrong with a pair, and the sizes in px that headers told."""

    root: str
    files: dict[str, dict[str, storage.Entry]]
    problems: dict[str, list[str]]
    limits: Limits = USUAL
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)  # width, height by PAIR/FILE

    def size_bytes(self, pairs: Sequence[str]) -> int:
        """Of all files of these pairs."""
        return sum(entry.size_bytes for pair in pairs for entry in self.files[pair].values())

    def digest(self, pairs: Sequence[str], wanted: Iterable[str], by_content: bool) -> str:
        """Of names, sizes and stamps of these files of these pairs, or of contents; of texts always of contents."""
        names = set(wanted)
        chosen = [self.files[pair][name] for pair in pairs for name in sorted(names & set(self.files[pair]))]
        texts = [entry for entry in chosen if entry.name.endswith(TEXTS)]
        others = [entry for entry in chosen if not entry.name.endswith(TEXTS)]
        by_file = (storage.identity(self.root, texts, True), storage.identity(self.root, others, by_content))
        return digest_of("flow set", *by_file)


def list_truth(root: str, limits: Limits = USUAL) -> ListedTree:
    """The pairs of a `Dataset` tree; a file that a pair lacks is a problem of it."""
    listed = _listed(root, limits, (*TRUTH_FILES, *IMAGES), "a Dataset tree, GROUP/PAIR/flow1.flo, …")
    for pair, files in listed.files.items():
        lacking = [name for name in TRUTH_FILES if name not in files]
        if lacking:
            listed.problems[pair] = [f"{storage.join(root, pair)}: no {', '.join(lacking)}; the truth needs them"]
    return listed


def list_results(root: str, limits: Limits = USUAL) -> ListedTree:
    """The pairs of a `Results` tree: those that hold a flow or a mask."""
    return _listed(root, limits, RESULT_FILES, "a Results tree, GROUP/PAIR/flow1.flo, …")


def _listed(root: str, limits: Limits, wanted: Sequence[str], what: str) -> ListedTree:
    """Pairs that hold one of these files; other files and folders (`corr.txt`, `vis/`, …) are passed over."""
    files: dict[str, dict[str, storage.Entry]] = {}
    depths = set()
    for entry in storage.list_files(root):
        parts = entry.name.split("/")
        if parts[-1] in wanted and not any(part.startswith(".") for part in parts):
            depths.add(len(parts))
            if len(parts) == 3:
                files.setdefault(f"{parts[0]}/{parts[1]}", {})[parts[2]] = entry
    if not files:
        if not storage.exists(root):
            reason = "does not exist"
        elif 2 in depths:
            reason = "is one group; name its parent"
        else:
            reason = "is a level too high; name the folder of the groups" if 4 in depths else "holds no pair"
        raise DataError(f"{root}: {reason}; expected {what}")
    check_names(root, files)
    return ListedTree(root, dict(sorted(files.items())), {}, limits)


def note_empty_results(listed: ListedTree, pairs: Sequence[str]) -> None:
    """A pair whose folder is there without a flow or mask has a result, too, as it has for the tools: an empty one."""
    missing = [pair for pair in pairs if pair not in listed.files]
    there = in_parallel(lambda pair: storage.exists(storage.join(listed.root, pair)), missing)
    listed.files.update({pair: {} for pair, exists in zip(missing, there, strict=True) if exists})


def look_at_truth(listed: ListedTree, pairs: Sequence[str], images: bool) -> dict[str, FlowPair]:
    """Headers and texts of these pairs; with `images` also those of images, which must have the flows' sizes.

    Problems are noted in `listed`, and the pairs returned are those without any.
    """
    whole = [pair for pair in pairs if pair not in listed.problems]
    return _without_problems(listed, whole, lambda pair: _looked_pair(listed, pair, images))


def look_at_results(listed: ListedTree, pairs: Sequence[str]) -> dict[str, PairFiles]:
    """Headers of these pairs' files; problems are noted in `listed`, and the pairs returned are those without any."""

    def look(pair: str) -> PairFiles | list[str]:
        there = listed.files[pair]
        files = PairFiles(_both_flows(there), MASKS if all(name in there for name in MASKS) else ())
        sizes = [_size(listed, pair, name) for name in (*files.flows, *files.masks)]
        return [size for size in sizes if isinstance(size, str)] or files

    return _without_problems(listed, pairs, look)


def broken_bodies(truth: TruthTree, results: ResultsTree | None) -> list[str]:
    """What can only be seen inside the files: NaN, damaged masks. Reads all of them."""

    def look(pair: FlowPair) -> list[str]:
        lines = []
        for tree in (truth, *((results,) if results else ())):
            try:
                tree.read(pair)
            except DataError as error:
                lines.append(str(error))
        return lines

    return [line for lines in in_parallel(look, truth.pairs) for line in lines]


def _without_problems(
    listed: ListedTree, pairs: Sequence[str], look: Callable[[str], Looked | list[str]]
) -> dict[str, Looked]:
    """What a look at each pair gives; where it gives problems, they are noted."""
    good: dict[str, Looked] = {}
    for pair, looked in zip(pairs, in_parallel(look, pairs), strict=True):
        if isinstance(looked, list):
            listed.problems[pair] = looked
        else:
            good[pair] = looked
    return good


def _looked_pair(listed: ListedTree, pair: str, images: bool) -> FlowPair | list[str]:
    lines: list[str] = []
    folder = storage.join(listed.root, pair)
    texts = [_text(storage.join(folder, TEXTS[0]), tss.read_pair), _text(storage.join(folder, TEXTS[1]), tss.read_flip)]
    sizes = {name: _size(listed, pair, name) for name in (*TRUE_FLOWS, *MASKS)}
    if images:
        lacking = [name for name in IMAGES if name not in listed.files[pair]]
        lines += [f"{folder}: no {name}, which is needed here" for name in lacking]
        sizes |= {name: _size(listed, pair, name) for name in IMAGES if name not in lacking}
    lines += [value.args[0] for value in texts if isinstance(value, InputError)]
    lines += [size for size in sizes.values() if isinstance(size, str)]
    for name, size in sizes.items():
        flow = f"flow{name[-5]}.flo"
        if not isinstance(size, str) and not isinstance(sizes[flow], str) and size != sizes[flow]:
            uri = storage.join(folder, name)
            lines.append(f"{uri}: {size[0]}x{size[1]}, but {flow} is {sizes[flow][0]}x{sizes[flow][1]}")
    if lines:
        return lines
    return FlowPair(*pair.split("/"), *texts)  # type: ignore[arg-type]


def _text(uri: str, parse: Callable[[bytes, str], object]) -> object:
    try:
        return parse(_read(uri), uri)
    except DataError as error:
        return error


def _size(listed: ListedTree, pair: str, file: str) -> tuple[int, int] | str:
    """Width and height of a flow, mask or image from its header, which are kept; or what is wrong with it."""
    try:
        size = listed.sizes[f"{pair}/{file}"] = _told_size(listed, pair, file)
    except DataError as error:
        return str(error)
    return size


def _told_size(listed: ListedTree, pair: str, file: str) -> tuple[int, int]:
    uri = storage.join(listed.root, pair, file)
    stem, _, suffix = file.rpartition(".")
    if not stem.startswith("flow"):
        start = storage.read_start(uri, png.HEADER_BYTES)
        if stem.startswith("mask"):
            return tss.mask_size(start, uri, listed.limits)
        header = png.read_header(start, uri)
        listed.limits.check_pixels(header.width, header.height, uri)
        return header.width, header.height
    count = flo.FLOW_FORMATS[f".{suffix}"].header_bytes
    start = storage.read(uri) if count is None else storage.read_start(uri, count)
    return flo.flow_size(start, listed.files[pair][file].size_bytes, uri, f".{suffix}", listed.limits)


def _both_flows(there: Iterable[str]) -> tuple[str, ...]:
    """The two flow files, in the first of the kinds that is there; a `flow1.png` beside a `flow1.flo` is a picture."""
    sides = [[name for name in FOUND_FLOWS if name in there and name[4] == side] for side in "12"]
    return (sides[0][0], sides[1][0]) if all(sides) else ()


def _read(uri: str) -> bytes:
    try:
        return storage.read(uri)
    except FileNotFoundError:
        raise OutOfReach(f"{uri}: is gone since the run started") from None
