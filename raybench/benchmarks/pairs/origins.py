"""Where the patches of listed pairs are: single images, PhotoTour's sheets, strips, or vectors of any of these.

Which it is follows from what the folder holds and how lists name patches. A name stands for a patch as it is written,
else without its image suffix, else also without folders. Every pair is found before anything is computed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.job import Job
from raybench.benchmarks.pairs.inputs import PairOptions
from raybench.benchmarks.patches import DescribedPatches
from raybench.errors import DataError, ProblemList, quoted, suggestion
from raybench.formats.names import Strings, paths, stems, strings, without_suffix
from raybench.formats.pair_labels import as_numbers
from raybench.formats.pair_lists import PairList
from raybench.formats.text_rows import SHOWN
from raybench.formats.vector_kinds import NAMED_SUFFIXES
from raybench.search.pairs import Pairs
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles
from raybench.sources.named_vectors import NamedVectors
from raybench.sources.patch_images import PatchImages
from raybench.sources.patch_sheets import SHEET, PatchSheets, with_info
from raybench.sources.patches import Source
from raybench.sources.strips import Strips, sequence_entries
from raybench.sources.vector_blocks import FILE_SUFFIXES, VectorBlocks, has_names
from raybench.sources.vector_files import VectorFiles

LOOKED_AT = 1_000  # lines that name an unknown patch, for their reasons
MOST_DIGITS = 19  # of a number of 64 bits
SIGNATURE = r"^[^./,]+\.[^.,]+\.[0-9]{1,9}$"

Located = tuple[NDArray[np.int32], NDArray[np.int32]]  # item of the source (-1: none such) and the patch in it


@dataclass(frozen=True)
class NamedPatches:
    """The patches that lists name, each once; both sides of all pairs are numbers into `names`."""

    names: Strings
    sides: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]

    @classmethod
    def of(cls, lists: Mapping[str, PairList]) -> NamedPatches:
        coded = pa.chunked_array([side for one in lists.values() for side in (one.a, one.b)], pa.string())
        coded = coded.combine_chunks().dictionary_encode()
        code, sides, start = np.asarray(coded.indices, np.int64), {}, 0
        for stem, one in lists.items():
            sides[stem] = (code[start : start + len(one)], code[start + len(one) : start + 2 * len(one)])
            start += 2 * len(one)
        return cls(coded.dictionary, sides)

    def numbers(self) -> NDArray[np.int64]:
        """Names that are numbers of patches; -1 for others."""
        values, bad = as_numbers(self.names, pa.int64())
        values = np.array(values, np.int64)
        values[bad] = -1
        return values

    @property
    def are_numbers(self) -> bool:
        return bool(np.all(self.numbers() >= 0))

    @property
    def are_signatures(self) -> bool:
        """Whether all are of the form SEQ.IM.PATCH."""
        return bool(pc.all(pc.match_substring_regex(self.names, SIGNATURE)).as_py())


@dataclass(frozen=True)
class PairOrigin:
    """Patches with the place of each that lists name; `digests` are the inputs that they rest on.

    `grouped`: whether keys of the source name sequences, which are what is independent.
    """

    patches: DescribedPatches
    place: Located
    named: NamedPatches
    digests: dict[str, str]
    grouped: bool
    images: ImageFiles | None = None  # all that were found, of which lists may name a part
    notes: tuple[str, ...] = ()

    def pairs(self, stem: str) -> Pairs:
        item, patch = self.place
        a, b = self.named.sides[stem]
        return Pairs(item[a], patch[a], item[b], patch[b])


def open_patches(job: Job[PairOptions], lists: Mapping[str, PairList], problems: ProblemList) -> PairOrigin | None:
    """The patches of all lists; what is missing or wrong is noted."""
    named = NamedPatches.of(lists)
    opened: PairOrigin | None = None
    with problems.noting():
        opened = (_vectors if job.options.features else _pixels)(job, named, lists, problems)
    if opened is not None:
        _note_unknown(opened, lists, problems)
    return opened


def _vectors(
    job: Job[PairOptions], named: NamedPatches, lists: Mapping[str, PairList], problems: ProblemList
) -> PairOrigin | None:
    uri = job.options.features or ""
    is_file = uri.lower().endswith(FILE_SUFFIXES) and not storage.is_folder(uri)
    if not storage.exists(uri):
        raise DataError(f"{uri}: does not exist; expected a file of vectors, or a folder of them")
    if not is_file and named.are_signatures and sequence_entries(uri):
        strips = VectorFiles.scan(uri, job.limits)
        return _of_strips(DescribedPatches.of_vectors(job, strips), strips, named, problems)
    if is_file and not has_names(uri):
        blocks = VectorBlocks.plain(uri, job.limits)
        if not named.are_numbers:
            raise DataError(
                f"{uri}: has no names of its {blocks.count:,} rows, but the pairs name patches such as "
                f"{quoted(_odd_name(named))}; add an array image_names"
            )
        patches = DescribedPatches.of_vectors(job, blocks)
        return PairOrigin(patches, blocks.located(named.numbers()), named, patches.digests, grouped=False)
    files = [uri] if is_file else _files_of(uri)
    found = NamedVectors.scan(files, "path", problems, limits=job.limits)
    if found is None:
        return None
    blocks = VectorBlocks.named(uri, found)
    row = np.empty(len(found), np.int64)
    row[found.rows.index] = np.arange(len(found))
    index = _matched(uri, found.names.array, named.names, problems)
    patches = DescribedPatches.of_vectors(job, blocks)
    rows = np.where(index < 0, -1, row[np.maximum(index, 0)])
    return PairOrigin(patches, blocks.located(rows), named, patches.digests, grouped=False)


def _files_of(folder: str) -> list[str]:
    """All files of named vectors in a folder."""
    names = [entry.name for entry in storage.list_files(folder)]
    found = [storage.join(folder, name) for name in names if name.endswith(NAMED_SUFFIXES) and "/" not in name]
    if not found:
        raise DataError(
            f"{folder}: no file of vectors ({', '.join(NAMED_SUFFIXES)}); expected such files with names of patches, "
            "one file with a row per patch number, or SEQ/IM.csv for pairs that are named SEQ.IM.PATCH"
        )
    return found


def _pixels(
    job: Job[PairOptions], named: NamedPatches, lists: Mapping[str, PairList], problems: ProblemList
) -> PairOrigin | None:
    data = job.options.data or ""
    images = ImageFiles.scan(data, by_content=job.verify_inputs, recursive=True, limits=job.limits, store=job.store)
    if named.are_numbers and any(SHEET.fullmatch(key) for key in images.keys):
        images = with_info(images)
        sheets = PatchSheets.of(images)
        patches = DescribedPatches.of_pixels(job, lambda: sheets)
        notes = (NO_INFO,) if sheets.patches is None and images.is_there else ()
        digests = _digests(patches, images)
        place = sheets.located(named.numbers())
        sheets.counts(np.unique(place[0][place[0] >= 0]).tolist(), problems)
        return PairOrigin(patches, place, named, digests, grouped=False, images=images, notes=notes)
    if named.are_signatures and _has_strips(images, named):
        if not isinstance(images.files, FolderFiles):
            raise DataError(f"{data}: holds strips SEQ/IM.png, which only a folder may hold; unpack it and name that")
        strips = Strips.scan(data, by_content=job.verify_inputs, limits=job.limits)
        patches = DescribedPatches.of_pixels(job, lambda: strips)
        return _of_strips(patches, strips, named, problems)
    keys = strings(images.keys)
    index = _matched(data, keys, named.names, problems)
    chosen, number = np.unique(index[index >= 0], return_inverse=True)
    if not len(chosen):
        raise DataError(f"{data}: none of the patches that the pairs name; {_there(keys, named.names)}")
    single = PatchImages.of(images.taken(chosen), problems)
    if len(set(single.sides_px)) > 1 and 0 not in single.sides_px and not job.options.input_size:
        raise DataError(_sides_differ(single))
    ordered = pc.index_in(keys.take(pa.array(chosen)), value_set=strings(single.images.keys))
    item, patch = single.located(np.asarray(ordered, np.int64)[number])
    places = np.full((2, len(index)), -1, np.int32)
    places[:, index >= 0] = item, patch
    patches = DescribedPatches.of_pixels(job, lambda: single)
    return PairOrigin(patches, (places[0], places[1]), named, _digests(patches, images), grouped=False, images=images)


NO_INFO = (
    "NO INFO: no info.txt was found in a folder beside the sheets (in archives it is not looked for), so every cell of "
    "the last one counts as a patch."
)


def _digests(patches: DescribedPatches, images: ImageFiles) -> dict[str, str]:
    """The inputs of a job that describes pictures: these by themselves, whichever of them are used."""
    return {**{key: value for key, value in patches.digests.items() if key != "patches"}, "images": images.digest}


def _has_strips(images: ImageFiles, named: NamedPatches) -> bool:
    """Whether the first name that is SEQ.IM.PATCH is that of a patch in SEQ/IM.png, and not of a picture."""
    first = named.names[0].as_py()
    strip = "/".join(first.split(".")[:2])
    found = set(images.keys)
    return (strip in found or f"{strip}.png" in found) and f"{first}.png" not in found


def _of_strips(patches: DescribedPatches, source: Source, named: NamedPatches, problems: ProblemList) -> PairOrigin:
    """Patches named SEQ.IM.PATCH."""
    image = pc.replace_substring_regex(named.names, r"^([^.]+)\.([^.]+)\.[0-9]+$", r"\1/\2")
    patch, _ = as_numbers(pc.replace_substring_regex(named.names, r"^.*\.", ""), pa.int64())
    item = np.asarray(pc.fill_null(pc.index_in(image, value_set=strings(source.keys)), -1), np.int32)
    counts = source.counts(np.unique(item[item >= 0]).tolist(), problems)
    most = np.zeros(len(source.keys) + 1, np.int64)
    most[list(counts)] = list(counts.values())
    broken = np.isin(item, [one for one in np.unique(item).tolist() if one >= 0 and one not in counts])
    there = (item >= 0) & ((patch < most[item]) | broken)
    place = np.where(there, item, np.int32(-1)), np.asarray(patch, np.int32)
    return PairOrigin(patches, place, named, patches.digests, grouped=True)


def _matched(root: str, known: Strings, wanted: Strings, problems: ProblemList) -> NDArray[np.int64]:
    """The place of each wanted name among the known ones, -1 where there is none; what fits several is noted."""
    index = np.full(len(wanted), -1, np.int64)
    spellings: tuple[Callable[[Strings], Strings], ...] = (lambda names: names, without_suffix, stems)
    for spelled in spellings:
        missing = np.flatnonzero(index < 0)
        if not len(missing):
            break
        there = spelled(known)
        asked = spelled(wanted.take(pa.array(missing)))
        found = np.asarray(pc.fill_null(pc.index_in(asked, value_set=there), -1), np.int64)
        coded = there.dictionary_encode()
        code = np.asarray(coded.indices, np.int64)
        several = np.bincount(code, minlength=1) > 1
        unclear = np.flatnonzero((found >= 0) & several[code[np.maximum(found, 0)]]) if len(code) else missing[:0]
        lines = []
        for row in unclear[:SHOWN].tolist():
            same = np.flatnonzero(code == code[found[row]])[:2].tolist()
            one, other = (known[place].as_py() for place in same)
            lines.append(f"{root}: {quoted(asked[row].as_py())} may be {one} or {other}; name it in full")
        problems.add_first(lines, len(unclear), root, "names that fit several patches")
        index[missing] = found
    _note_merged(root, index, known, wanted, problems)
    return index


def _note_merged(root: str, index: NDArray[np.int64], known: Strings, wanted: Strings, problems: ProblemList) -> None:
    """Note names in different folders that came to one patch: the folder of one of them is not there."""
    folder = pc.replace_substring_regex(paths(wanted), r"(?s)/?[^/]*$", "")
    rows = np.flatnonzero((index >= 0) & np.asarray(pc.not_equal(folder, "")))
    coded = folder.dictionary_encode()
    code, folders = np.asarray(coded.indices, np.int64), coded.dictionary.to_pylist()
    rows = rows[np.lexsort((code[rows], index[rows]))]
    one, other = rows[:-1], rows[1:]
    at = np.flatnonzero((index[one] == index[other]) & (code[one] != code[other]))
    merged = []
    for row in at.tolist():
        there = posixpath.dirname(known[int(index[one[row]])].as_py())
        if _are_elsewhere(folders[code[one[row]]], folders[code[other[row]]], there):
            merged.append(row)
    lines = [
        f"{root}: {quoted(wanted[int(one[row])].as_py())} and {quoted(wanted[int(other[row])].as_py())} are both "
        f"{known[int(index[one[row]])].as_py()} but for their folders; is one of these missing?"
        for row in merged[:SHOWN]
    ]
    problems.add_first(lines, len(merged), root, "names that differ by a folder which is not there")


def _are_elsewhere(one: str, other: str, there: str) -> bool:
    """Whether two folders can't both be the one that is there, nor the same one, written from different places.

    >>> _are_elsewhere("left", "right", "left"), _are_elsewhere("/me/left", "/you/left", "left")
    (True, False)
    >>> _are_elsewhere("/me/left", "/you/left", ""), _are_elsewhere("left", "/me/left", "")
    (True, False)
    """
    both_there = there and _ends(one, there) and _ends(other, there)
    return not (both_there or _ends(one, other) or _ends(other, one))


def _ends(folder: str, end: str) -> bool:
    return f"/{folder}".endswith(f"/{end}")


def _note_unknown(origin: PairOrigin, lists: Mapping[str, PairList], problems: ProblemList) -> None:
    """Note lines that name a patch which is not there."""
    unknown = origin.place[0] < 0
    source = origin.patches.source
    for stem, one in lists.items():
        a, b = origin.named.sides[stem]
        rows = np.flatnonzero(unknown[a] | unknown[b])
        lines: dict[str, str] = {}
        for row in rows[:LOOKED_AT].tolist():
            name = origin.named.names[int(a[row] if unknown[a[row]] else b[row])].as_py()
            why = _why(source, name)
            cause = why if name.isdigit() else name  # of patches by number one reason goes for many
            lines.setdefault(cause, f"{one.name}: {one.place(row)}: patch {quoted(name)} is not there; {why}")
        shown = list(lines.values())[:SHOWN]
        if len(shown) == 1 < len(rows):
            problems.add(f"{shown[0]} ({len(rows):,} such lines)")
        else:
            problems.add_first(shown, len(rows), one.name, "lines that name an unknown patch")


def _why(source: Source, name: str) -> str:
    if isinstance(source, PatchSheets) and name.isdigit() and len(name) < MOST_DIGITS:
        return source.why_missing(int(name))
    if isinstance(source, VectorBlocks) and name.isdigit():
        return f"{source.root} has {source.count:,} rows"
    if isinstance(source, Strips | VectorFiles):
        key = "/".join(name.split(".")[:2])
        if key in source.keys:
            return f"{source.root}: {key}{source.suffix} has no such patch"
        return f"{source.root} has no {key}{source.suffix}{suggestion(key, source.keys)}"
    known = source.images.keys if isinstance(source, PatchImages) else ()
    return f"{source.root} has none of that name{suggestion(name, known)}"


def _there(keys: Strings, wanted: Strings) -> str:
    return f"they are such as {quoted(wanted[0].as_py())}, the images such as {quoted(keys[0].as_py())}"


def _odd_name(named: NamedPatches) -> str:
    return str(named.names[int(np.flatnonzero(named.numbers() < 0)[0])].as_py())


def _sides_differ(single: PatchImages) -> str:
    """Two patches of different sides, in words."""
    sides = np.array(single.sides_px)
    other = int(np.flatnonzero(sides != sides[0])[0])
    one, two = (f"{single.patch_name(item, 0)} has {sides[item]} px" for item in (0, other))
    return (
        f"{single.root}: patches of several sides ({one}, {two}); bring them to one side, or give --input-size with a "
        "model file"
    )
