"""Where a `revisited` job finds its sets: folders with their truth, pictures or vectors in the order of its lists.

Which pictures there are `revisited_pictures` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from raybench import storage
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.revisited_pictures import Folder, Way, distractor_pictures, listed_pictures
from raybench.benchmarks.images.revisited_sets import R1M, Labelled, RevisitedSet, RevisitedSets
from raybench.benchmarks.images.sets import ImageSet, PictureSet, StoredVectors
from raybench.digests import digest_of
from raybench.errors import ConfigError, ProblemList
from raybench.formats.names import Names, Strings, name_order, strings, without_jpg
from raybench.formats.revisited import read_distractor_names, read_revisited_truth
from raybench.metrics.micro_ap import TruePairs
from raybench.sources.cropped_images import CroppedImages
from raybench.sources.listings import is_tree, parsed_tree
from raybench.sources.named_vectors import NamedVectors, find_vectors

SHOWN = 5  # names that are missing
PARTS = ("truth", "queries", "references")  # of a set, by which a finished run remembers it
TRAINING_STEMS = ("training", "train")


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
        queries, references = listed_pictures(way, name, folder, files, truth, uri, problems)
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
        return distractor_pictures(way, role, root, files, listed, uri, problems)
    uris = find_vectors(root, ("distractors",), problems, wanted=False)
    found = image_sets.vectors_on_disk(role, uris, problems, "without_jpg", limits=way.limits)
    if found is None or listed is None or len(set(listed)) < len(listed):
        return found
    names = without_jpg(strings(listed))
    order, twice = name_order(names)
    if len(twice):
        lines = [
            f"{uri}: {names[row].as_py()!r} comes twice, with .jpg and without; names must differ"
            for row in twice[:SHOWN, 0].tolist()
        ]
        problems.add_first(lines, len(twice), uri, "names that come twice")
        return None
    return _in_order(found, names.take(order), uris[0], f"{uri} lists", problems)
