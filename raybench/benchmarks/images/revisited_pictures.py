"""Pictures of a `revisited` job: below `jpg` in a set's folder, or in archives in its place, in the order of a list."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from raybench import storage
from raybench.benchmarks.images.sets import PictureSet
from raybench.errors import ProblemList, quoted
from raybench.formats.limits import Limits
from raybench.formats.names import Names, name_order, strings, without_jpg
from raybench.formats.revisited import RevisitedTruth
from raybench.sources.archive_files import ArchiveFiles
from raybench.sources.archive_names import PACKED, SUFFIXES
from raybench.sources.cropped_images import CroppedImages
from raybench.sources.file_names import check_names
from raybench.sources.image_files import ImageFiles, is_image

JPG = ".jpg"
FOLDER = "jpg"
SHOWN = 5  # names that are missing

Folder = Mapping[str, storage.Entry]  # files by their names below it


@dataclass(frozen=True)
class Way:
    """How a job comes to its sets: below which root, from vectors or pictures, digested how, within which limits."""

    root: str
    from_vectors: bool
    by_content: bool
    limits: Limits
    store: str = ""  # where listings of archives are kept


@dataclass(frozen=True)
class Pictures:
    """The pictures of a set by their names below `jpg`: files there, or else members of archives."""

    way: Way
    root: str
    loose: Folder
    packed: ImageFiles | None

    @classmethod
    def find(cls, way: Way, folder: str, files: Folder, wanted: Sequence[str] = ()) -> Pictures:
        """Those of a folder with these files; raises InputError for archives that can't be listed.

        Members of archives are named as those that are wanted, where one folder is around all of either.
        """
        root, above = storage.join(folder, FOLDER), f"{FOLDER}/"
        below = {name.removeprefix(above): entry for name, entry in files.items() if name.startswith(above)}
        loose = {name: entry for name, entry in below.items() if is_image(name, recursive=True)}
        packed = None if loose else packed_name(files)
        if packed is None:
            return cls(way, root, loose, None)
        uri = storage.join(folder, packed)
        images = ImageFiles.scan(uri, way.by_content, recursive=True, limits=way.limits, store=way.store)
        return cls(way, root, {}, _named_as(images, wanted))

    @property
    def names(self) -> Collection[str]:
        return self.loose.keys() if self.packed is None else set(self.packed.keys)

    def taken(self, names: Sequence[str]) -> ImageFiles:
        """Those with these names, which are all there, in this order."""
        images = self.packed
        if images is None:
            entries = [self.loose[name]._replace(name=name) for name in names]
            images = ImageFiles.of(self.root, entries, self.way.by_content, self.way.limits)
        place = {key: number for number, key in enumerate(images.keys)}
        return images.taken(np.array([place[name] for name in names], np.int64))


def _named_as(images: ImageFiles, wanted: Sequence[str]) -> ImageFiles:
    """Members of archives with the folder that all wanted names begin with: where it is around all, it is left out."""
    folder = wanted[0].partition("/")[0] + "/" if wanted else ""
    there = set(images.keys)
    if not all(name.startswith(folder) for name in wanted) or not there.isdisjoint(wanted):
        return images
    if there.isdisjoint(name.removeprefix(folder) for name in wanted):
        return images
    assert isinstance(images.files, ArchiveFiles), "only archives stand for a folder"
    return replace(images, files=replace(images.files, names=tuple(folder + key for key in images.keys)))


def packed_name(files: Iterable[str]) -> str | None:
    """What names the archives that stand for `jpg`: `jpg.tar` or `jpg.zip`, or such files in it; None without any.

    >>> packed_name(["gnd_a.json", "jpg.zip"]), packed_name(["jpg/1.tar", "jpg/2.tar", "jpg/._1.tar", "jpg/1.txt"])
    ('jpg.zip', 'jpg/{1,2}.tar')
    """
    for suffix in (*SUFFIXES, *PACKED):
        packed = sorted(name.removesuffix(suffix) for name in files if name.endswith(suffix) and "/." not in name)
        if FOLDER in packed:
            return FOLDER + suffix
        inside = [name.removeprefix(f"{FOLDER}/") for name in packed if name.rpartition("/")[0] == FOLDER]
        if inside:
            return f"{FOLDER}/{inside[0] if len(inside) == 1 else '{' + ','.join(inside) + '}'}{suffix}"
    return None


def listed_pictures(
    way: Way, name: str, folder: str, files: Folder, truth: RevisitedTruth, uri: str, problems: ProblemList
) -> tuple[PictureSet | None, PictureSet | None]:
    """The pictures of queries, cropped, and of references, in the order of the truth in a file."""
    check_crops(truth, uri, way.limits, problems)
    found: dict[str, PictureSet] = {}
    with problems.noting():
        pictures = Pictures.find(way, folder, files)
        there = pictures.names
        for role, listed, boxes in (("queries", truth.queries, truth.boxes), ("references", truth.references, None)):
            keys = [f"{one}{JPG}" for one in listed]
            missing = [key for key in keys if key not in there]
            lines = [f"{pictures.root}: no {key}, which {uri} lists among its {role}" for key in missing[:SHOWN]]
            problems.add_first(lines, len(missing), pictures.root, f"missing {role}")
            if not missing:
                source = CroppedImages.of_files(pictures.taken(keys), boxes)
                found[role] = PictureSet(f"{name}/{role}", Names(strings(listed)), source)
    return found.get("queries"), found.get("references")


def check_crops(truth: RevisitedTruth, uri: str, limits: Limits, problems: ProblemList) -> None:
    """Note boxes that hold no pixel once they are rounded, or too many."""
    whole = np.rint(truth.boxes)  # halves to even
    width, height = whole[:, 2] - whole[:, 0], whole[:, 3] - whole[:, 1]
    for query in np.flatnonzero((width < 1) | (height < 1)).tolist():
        box = truth.boxes[query].tolist()
        problems.add(
            f"{uri}: gnd[{query}] ({quoted(truth.queries[query])}): bbx {box} holds no pixel when its numbers are "
            "rounded; expected a box with pixels"
        )
    for query in np.flatnonzero(width * height > limits.pixels).tolist():
        where = f"{uri}: gnd[{query}] ({quoted(truth.queries[query])}): bbx"
        problems.add(limits.pixel_problem(int(width[query]), int(height[query]), where))


def distractor_pictures(
    way: Way,
    role: str,
    folder: str,
    files: Folder,
    listed: tuple[str, ...] | None,
    uri: str,
    problems: ProblemList,
) -> PictureSet | None:
    """The pictures of a list of names with suffix, or all that are there without one; None where there are none."""
    before = len(problems.lines)
    with problems.noting():
        pictures = Pictures.find(way, folder, files, listed or ())
        keys = list(pictures.names if listed is None else dict.fromkeys(listed))
        check_names(pictures.root, keys)
        there = pictures.names
        missing = [key for key in keys if key not in there]
        lines = [f"{pictures.root}: no {key}, which {uri} lists" for key in missing[:SHOWN]]
        problems.add_first(lines, len(missing), pictures.root, "missing distractors")
    if len(problems.lines) > before or not keys:
        return None
    names = without_jpg(strings(keys))
    order, twice = name_order(names)
    lines = [
        f"{pictures.root}: {names[int(row)].as_py()!r} is there with two suffixes; keep one" for row in twice[:SHOWN, 0]
    ]
    problems.add_first(lines, len(twice), pictures.root, "names with two suffixes")
    images = pictures.taken([keys[number] for number in order.tolist()])
    return PictureSet(role, Names(names.take(order)), CroppedImages.of_files(images))
