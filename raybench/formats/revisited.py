"""Files of Revisited Oxford and Paris (Radenović et al., CVPR 2018): `gnd_<set>.json`, and the list of distractors.

The truth names queries and references, and says of each query where it is in its image (`bbx`) and which references are
easy, hard or junk, by position in `imlist`. Published it is a pickle; only its conversion to JSON is read here. What is
right under which setup, the benchmark says. Everything that is wrong with a file is noted at once.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError, ProblemList, quoted

KINDS = ("easy", "hard", "junk")  # of labelled references; a label is a place in here
EASY, HARD, JUNK = range(len(KINDS))
KEYS = ("imlist", "qimlist", "gnd")
SHOWN = 10  # problems of one kind that are listed; the rest are counted
LAYOUT = '{"imlist": […], "qimlist": […], "gnd": [{"bbx": […], "easy": […], "hard": […], "junk": […]}, …]}'


@dataclass(frozen=True)
class RevisitedTruth:
    """One set: its queries with their boxes, its references in the order by which ties are broken, and labelled pairs.

    Of each labelled pair: `query` and `reference`, by which they are ordered, and `label`, a place in KINDS.
    """

    queries: tuple[str, ...]
    references: tuple[str, ...]
    boxes: NDArray[np.float64]  # (queries, 4)
    query: NDArray[np.int64]
    reference: NDArray[np.int64]
    label: NDArray[np.int8]


def read_revisited_truth(data: bytes, name: str, problems: ProblemList) -> RevisitedTruth | None:
    """The truth of one set; None if its names are wrong. Whatever is wrong is noted.

    A wrong entry has no labels then, so that images are looked for all the same, and all is said together.
    """
    with problems.noting():
        value = _parsed(data, name)
        queries, references = (_names(value[key], key, name) for key in ("qimlist", "imlist"))
        entries = value["gnd"]
        if len(entries) != len(queries):
            problems.add(f"{name}: gnd has {len(entries):,} entries, qimlist {len(queries):,} names; expected as many")
        before = len(problems.lines)
        _note_names(queries, references, name, problems)
        are_sound = len(problems.lines) == before
        found = _entries(entries, queries, len(references), name, problems)
        if are_sound:
            return RevisitedTruth(queries, references, *found)
    return None


def read_distractor_names(data: bytes, name: str, problems: ProblemList) -> tuple[str, ...]:
    """Names of distractor images with folder and extension, one per line; a name that comes twice is noted."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{name}: no UTF-8 text; expected one image name per line") from None
    names = tuple(line.strip() for line in lines if line.strip())
    if not names:
        raise DataError(f"{name}: no names; expected one image name per line")
    twice = [one for one, count in Counter(names).items() if count > 1]
    shown = [f"{name}: {quoted(one)} comes twice; names must differ" for one in twice[:SHOWN]]
    problems.add_first(shown, len(twice), name, "names that come twice")
    return names


def _parsed(data: bytes, name: str) -> dict[str, list[Any]]:
    """The object in the file, with its three lists."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name}: no JSON ({error}); expected {LAYOUT}") from None
    if not isinstance(value, dict):
        raise DataError(f"{name}: {type(value).__name__} at the top; expected {LAYOUT}")
    for key in KEYS:
        if not isinstance(value.get(key), list):
            found = f"is {type(value[key]).__name__}" if key in value else "is missing"
            raise DataError(f"{name}: {key} {found}, expected a list; the layout is {LAYOUT}")
        if not value[key]:
            raise DataError(f"{name}: {key} is empty; the layout is {LAYOUT}")
    return value


def _names(values: list[Any], key: str, name: str) -> tuple[str, ...]:
    for place, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise DataError(f"{name}: {key}[{place}] is {_shown(value)}; expected a name")
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise DataError(f"{name}: {key}[{place}] is {quoted(value)}, which is no Unicode text; expected a name")
    return tuple(values)


def _note_names(queries: Sequence[str], references: Sequence[str], name: str, problems: ProblemList) -> None:
    for key, names in (("qimlist", queries), ("imlist", references)):
        twice = [one for one, count in Counter(names).items() if count > 1]
        lines = [f"{name}: {quoted(one)} comes twice in {key}; names must differ" for one in twice[:SHOWN]]
        problems.add_first(lines, len(twice), name, f"names that come twice in {key}")
    known = set(references)
    both = [one for one in dict.fromkeys(queries) if one in known]
    lines = [f"{name}: {quoted(one)} stands in qimlist and in imlist; a query is no reference" for one in both[:SHOWN]]
    problems.add_first(lines, len(both), name, "names in both lists")


def _entries(
    entries: list[Any], queries: Sequence[str], references: int, name: str, problems: ProblemList
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int8]]:
    """A box for each query; query, reference and label of labelled pairs. A wrong entry is noted and passed over."""
    boxes = np.tile(np.array([0.0, 0.0, 1.0, 1.0]), (len(queries), 1))
    query: list[int] = []
    reference: list[int] = []
    label: list[int] = []
    for number, entry in enumerate(entries):
        where = f"{name}: gnd[{number}]" + (f" ({quoted(queries[number])})" if number < len(queries) else "")
        lines = list(_entry_problems(entry, references, where))
        problems.add_first(lines[:SHOWN], len(lines), where, "problems")
        if not lines and number < len(queries):
            boxes[number] = entry["bbx"]
            for kind, key in enumerate(KINDS):
                query += [number] * len(entry[key])
                reference += entry[key]
                label += [kind] * len(entry[key])
    order = np.lexsort((reference, query))
    rows, places, kinds = (np.array(column, np.int64)[order] for column in (query, reference, label))
    return boxes, rows, places, kinds.astype(np.int8)


def _entry_problems(entry: Any, references: int, where: str) -> Iterator[str]:
    """What is wrong with what is said of one query."""
    if not isinstance(entry, dict):
        yield f"{where}: {_shown(entry)}; expected an object with bbx, easy, hard and junk"
        return
    yield from _box_problems(entry.get("bbx"), where)
    seen: dict[int, str] = {}
    for key in KINDS:
        places = entry.get(key)
        if not isinstance(places, list):
            found = f"is {_shown(places)}" if key in entry else "is missing"
            yield f"{where}: {key} {found}; expected a list of positions in imlist"
            continue
        for place in places:
            if type(place) is not int or not 0 <= place < references:
                yield f"{where}: {key} has {_shown(place)}; expected positions in imlist, 0 to {references - 1:,}"
            elif place in seen:
                other = f"{seen[place]} and {key}" if seen[place] != key else f"{key} twice"
                yield f"{where}: position {place} stands in {other}; expected it in one list, once"
            else:
                seen[place] = key


def _box_problems(box: Any, where: str) -> Iterator[str]:
    if not isinstance(box, list) or len(box) != 4 or not all(map(_is_finite, box)):
        yield f"{where}: bbx is {_shown(box)}; expected four numbers, x1, y1, x2, y2"
        return
    x1, y1, x2, y2 = box
    if x2 <= x1 or y2 <= y1:
        yield f"{where}: bbx is {_shown(box)}; expected x1 < x2 and y1 < y2"


def _is_finite(value: Any) -> bool:
    if type(value) not in (int, float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond float64
        return False


def _shown(value: Any) -> str:
    """A value, cut where it is long or deep."""
    return reprlib.repr(value)
