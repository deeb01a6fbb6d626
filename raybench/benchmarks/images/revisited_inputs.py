"""Where a `revisited` job finds its sets: folders with their truth, pictures or vectors in the order of its lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.revisited_sets import R1M, Labelled, RevisitedSet, RevisitedSets
from raybench.benchmarks.images.sets import ImageSet, PictureSet, StoredVectors
from raybench.digests import digest_of
from raybench.errors import ConfigError, ProblemList, quoted
from raybench.formats.limits import Limits
from raybench.formats.names import Names, Strings, name_order, strings, without_jpg
from raybench.formats.revisited import RevisitedTruth, read_distractor_names, read_revisited_truth
from raybench.metrics.micro_ap import TruePairs
from raybench.sources.cropped_images import CroppedImages
from raybench.sources.file_names import check_names
from raybench.sources.image_files import ImageFiles, is_image
from raybench.sources.listings import is_tree, parsed_tree
from raybench.sources.named_vectors import NamedVectors, find_vectors

JPG = ".jpg"
SHOWN = 5  # names that are missing
PARTS = ("truth", "queries", "references")  # of a set, by which a finished run remembers it
TRAINING_STEMS = ("training", "train")

Folder = Mapping[str, storage.Entry]  # files by their names below it


@dataclass(frozen=True)
class Way:
    """How a job comes to its sets: below which root, from vectors or pictures, digested how, within which limits."""

    root: str
    from_vectors: bool
    by_content: bool
    limits: Limits
    store: str = ""  # where listings of archives are kept


def find_sets(way: Way, asked: tuple[str, ...], training: str | None, problems: ProblemList) -> RevisitedSets:
    """The sets that are asked for, or all that are there; what is wrong with any is noted."""
    if is_tree(way.root):
        return _remembered_sets(way, asked, training, problems)
    folders = _folders(way.root, asked)
    names = asked or tuple(sorted(name for name, files in folders.items() if name != R1M and _has_truth(name, files)))
    if not names:
        raise ConfigError(_no_set(way.root, folders))
    found = [_find_set(way, name, folders.get(name, {}), problems) for name in names]
    distractors = _find_distractors(way, folders.get(R1M, {}), problems)
    others: ImageSet | None = None
    if way.from_vectors:
        uris = find_vectors(way.root, TRAINING_STEMS, problems, wanted=False)
        others = image_sets.vectors_on_disk("training", uris, problems, limits=way.limits)
    elif training:
        others = _training(way, training, problems)
    return RevisitedSets(tuple(one for one in found if one is not None), distractors, others)


def _remembered_sets(way: Way, asked: tuple[str, ...], training: str | None, problems: ProblemList) -> RevisitedSets:
    """The sets of a finished run by what it remembers of them."""
    files = parsed_tree(image_sets.read_text(way.root, "the parts of a finished run's data"), way.root)
    named = dict.fromkeys(part.rpartition("/")[0] for part in files)
    there = tuple(name for name in named if all(f"{name}/{part}" in files for part in PARTS))
    found = []
    for name in asked or there:
        if name not in there:
            problems.add(f"{name}: is no set of the finished run, which has {', '.join(there)}")
            continue
        data = image_sets.read_text(files[f"{name}/truth"], "the truth of a set")
        truth = read_revisited_truth(data, files[f"{name}/truth"], problems)
        if truth is not None:
            queries, references = (
                PictureSet(role, Names(strings(listed)), CroppedImages.remembered(files[role], way.limits, boxes))
                for role, listed, boxes in (
                    (f"{name}/queries", truth.queries, truth.boxes),
                    (f"{name}/references", truth.references, None),
                )
            )
            labelled = Labelled(truth.queries, TruePairs(truth.query, truth.reference), truth.label)
            found.append(RevisitedSet(name, queries, references, labelled, data))
    role, distractors = f"{R1M}/distractors", None
    if role in files:
        source = CroppedImages.remembered(files[role], way.limits)
        distractors = PictureSet(role, Names(without_jpg(strings(source.keys))), source)
    others = _training(way, training, problems) if training else None
    return RevisitedSets(tuple(found), distractors, others)


def _training(way: Way, uri: str, problems: ProblemList) -> PictureSet | None:
    return image_sets.pictures("training", uri, way.by_content, problems, limits=way.limits, store=way.store)


def _folders(root: str, asked: tuple[str, ...]) -> dict[str, dict[str, storage.Entry]]:
    """The files of each folder right below the root (of those that are asked for, and of the distractors)."""
    if asked:
        return {
            name: {entry.name: entry for entry in storage.list_files(storage.join(root, name))}
            for name in (*asked, R1M)
        }
    found: dict[str, dict[str, storage.Entry]] = {}
    for entry in storage.list_files(root):
        folder, slash, name = entry.name.partition("/")
        if slash:
            found.setdefault(folder, {})[name] = entry._replace(name=name)
    return found


def _has_truth(name: str, files: Folder) -> bool:
    return f"gnd_{name}.json" in files or f"gnd_{name}.pkl" in files


def _no_set(root: str, folders: Mapping[str, Folder]) -> str:
    expected = "expected folders SET with gnd_SET.json, such as roxford5k/gnd_roxford5k.json"
    if not storage.exists(root):
        return f"{root}: does not exist; {expected}"
    there = ", ".join(sorted(folders)[:SHOWN]) or "no folder"
    return f"{root}: no set; {expected}; there is {there}"


def _find_set(way: Way, name: str, files: Folder, problems: ProblemList) -> RevisitedSet | None:
    folder, file = storage.join(way.root, name), f"gnd_{name}.json"
    uri = storage.join(folder, file)
    if file not in files:
        problems.add(_no_truth(name, folder, files))
        return None
    data = b""
    truth = None
    with problems.noting():
        data = image_sets.read_text(uri, "the truth of a set")
        truth = read_revisited_truth(data, uri, problems)
    if truth is None:
        return None
    queries: ImageSet | None
    references: ImageSet | None
    if way.from_vectors:
        queries, references = (
            _listed_vectors(way, f"{name}/{role}", folder, role, listed, uri, problems)
            for role, listed in (("queries", truth.queries), ("references", truth.references))
        )
    else:
        _check_crops(truth, uri, way.limits, problems)
        queries, references = (
            _listed_pictures(way, f"{name}/{role}", folder, files, listed, uri, boxes, problems)
            for role, listed, boxes in (
                ("queries", truth.queries, truth.boxes),
                ("references", truth.references, None),
            )
        )
    if queries is None or references is None:
        return None
    if isinstance(queries, StoredVectors) and isinstance(references, StoredVectors):
        image_sets.note_other_dimensions((queries, references), problems)
    labelled = Labelled(truth.queries, TruePairs(truth.query, truth.reference), truth.label)
    return RevisitedSet(name, queries, references, labelled, data)


def _no_truth(name: str, folder: str, files: Folder) -> str:
    file = f"gnd_{name}.json"
    if f"gnd_{name}.pkl" in files:
        plain = "type('Plain', (pickle.Unpickler,), {'find_class': None})"
        read, written = f"open('gnd_{name}.pkl', 'rb')", f"open('{file}', 'w')"
        command = f"import json, pickle; json.dump({plain}({read}).load(), {written})"
        return (
            f"{folder}: has gnd_{name}.pkl and no {file}; pickles are not read, so convert it once, in that folder: "
            f'python -c "{command}"'
        )
    there = f"; there is {', '.join(sorted(files)[:SHOWN])}" if files else "; the folder is empty or missing"
    return f"{folder}: no {file}{there}"


def _check_crops(truth: RevisitedTruth, uri: str, limits: Limits, problems: ProblemList) -> None:
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


def _listed_pictures(
    way: Way,
    role: str,
    folder: str,
    files: Folder,
    listed: tuple[str, ...],
    truth: str,
    boxes: NDArray[np.float64] | None,
    problems: ProblemList,
) -> PictureSet | None:
    """The pictures of these names in `jpg/`, in this order."""
    there = [f"jpg/{name}{JPG}" in files for name in listed]
    missing = [name for name, is_there in zip(listed, there, strict=True) if not is_there]
    root = storage.join(folder, "jpg")
    lines = [f"{root}: no {name}{JPG}, which {truth} lists among its {role.rpartition('/')[2]}" for name in missing]
    problems.add_first(lines[:SHOWN], len(missing), root, f"missing {role.rpartition('/')[2]}")
    if missing:
        return None
    entries = [files[f"jpg/{name}{JPG}"]._replace(name=f"{name}{JPG}") for name in listed]
    images = ImageFiles.of(root, entries, way.by_content, way.limits)
    place = {key: number for number, key in enumerate(images.keys)}
    order = np.array([place[entry.name] for entry in entries], np.int64)
    source = CroppedImages.of_files(images.taken(order), boxes)
    return PictureSet(role, Names(strings(listed)), source)


def _listed_vectors(
    way: Way,
    role: str,
    folder: str,
    stem: str,
    listed: tuple[str, ...],
    truth: str,
    problems: ProblemList,
) -> StoredVectors | None:
    """The vectors of these names, in this order; others in the files are passed over."""
    uris = find_vectors(folder, (stem,), problems)
    found = image_sets.vectors_on_disk(role, uris, problems, "without_jpg", limits=way.limits)
    return found and _in_order(found, strings(listed), uris[0], f"{truth} lists among its {stem}", problems)


def _in_order(
    found: StoredVectors, listed: Strings, uri: str, lists: str, problems: ProblemList
) -> StoredVectors | None:
    """The same vectors, indexed by the place of their names in a list."""
    place = found.names.indices(listed)
    missing = np.flatnonzero(place < 0)
    like = f"names there are like {found.names[0]!r}"
    lines = [f"{uri}: no vector of {listed[int(row)].as_py()!r}, which {lists}; {like}" for row in missing[:SHOWN]]
    problems.add_first(lines, len(missing), uri, "vectors missing")
    if len(missing):
        return None
    index = np.full(len(found), -1, np.int32)  # by place in name order; those that are not listed stand behind
    index[place] = np.arange(len(place))
    index[index < 0] = np.arange(len(place), len(found))
    rows = found.source.rows
    arranged = replace(rows, index=index[rows.index], digest=digest_of("listed", rows.digest, index))
    chosen = np.arange(len(place)) if len(place) < len(found) else None
    names = Names(listed)
    return replace(found, names=names, source=NamedVectors(found.names, arranged), chosen=chosen)


def _find_distractors(way: Way, files: Folder, problems: ProblemList) -> ImageSet | None:
    """The distractors of the list `revisitop1m.txt`, or all that are there without one; None where there are none."""
    root, file = storage.join(way.root, R1M), f"{R1M}.txt"
    uri, role, listed = storage.join(root, file), f"{R1M}/distractors", None
    if file in files:
        with problems.noting():
            data = image_sets.read_text(uri, "names of distractors")
            listed = read_distractor_names(data, uri, problems)
    if not way.from_vectors:
        return _distractor_pictures(way, role, storage.join(root, "jpg"), files, listed, uri, problems)
    uris = find_vectors(root, ("distractors",), problems, wanted=False)
    found = image_sets.vectors_on_disk(role, uris, problems, "without_jpg", limits=way.limits)
    if found is None or listed is None or len(set(listed)) < len(listed):
        return found
    names = without_jpg(strings(listed))
    order, _ = name_order(names)
    return _in_order(found, names.take(order), uris[0], f"{uri} lists", problems)


def _distractor_pictures(
    way: Way,
    role: str,
    root: str,
    files: Folder,
    listed: tuple[str, ...] | None,
    uri: str,
    problems: ProblemList,
) -> PictureSet | None:
    there = {name.removeprefix("jpg/"): entry for name, entry in files.items() if name.startswith("jpg/")}
    keys = [name for name in there if is_image(name, recursive=True)] if listed is None else list(dict.fromkeys(listed))
    before = len(problems.lines)
    with problems.noting():
        check_names(root, keys)
    missing = [key for key in keys if key not in there]
    lines = [f"{root}: no {key}, which {uri} lists" for key in missing[:SHOWN]]
    problems.add_first(lines, len(missing), root, "missing distractors")
    if not keys or len(problems.lines) > before:
        return None
    entries = [there[key]._replace(name=key) for key in keys]
    images = ImageFiles.of(root, entries, way.by_content, way.limits)
    names = without_jpg(strings(images.keys))
    order, twice = name_order(names)
    lines = [f"{root}: {names[int(row)].as_py()!r} is there with two suffixes; keep one" for row in twice[:SHOWN, 0]]
    problems.add_first(lines, len(twice), root, "names with two suffixes")
    return PictureSet(role, Names(names.take(order)), CroppedImages.of_files(images.taken(order)))
