"""Which pictures of runs a page shows: the worst of every run and kind first, as many as fit."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from raybench.benchmarks.job import ReportPicture
from raybench.runs.report.shown import NamedRun, Section

MOST_BYTES = 850_000  # of JPEGs on one page, equal ones counted once; in the page they take a third more

Chosen = tuple[NamedRun, ReportPicture]


def chosen_pictures(sections: Sequence[Section]) -> tuple[dict[int, list[Chosen]], dict[int, int]]:
    """The pictures of each section by its number, in turns over runs and kinds, and how many are left out.

    The next is always of the section that has least so far. A section's first picture is there in any case, so that a
    page of one large picture shows it.
    """
    waiting = {section.number: _in_turns(section) for section in sections}
    kept: dict[int, list[Chosen]] = {number: [] for number in waiting}
    left_out: dict[int, int] = {}
    used = dict.fromkeys(waiting, 0)
    known: set[bytes] = set()
    while any(waiting.values()):
        number = min((number for number, own in waiting.items() if own), key=lambda number: used[number])
        run, picture = waiting[number].pop(0)
        new = {hashlib.sha256(jpeg).digest(): len(jpeg) for jpeg in _jpegs(picture)}
        size = sum(length for digest, length in new.items() if digest not in known)
        if sum(used.values()) + size > MOST_BYTES and kept[number]:
            left_out[number] = len(waiting.pop(number)) + 1
            continue
        used[number] += size
        known |= new.keys()
        kept[number].append((run, picture))
    return kept, left_out


def _in_turns(section: Section) -> list[Chosen]:
    """A section's pictures: the first of every run and kind, then the second ones, and so on."""
    found = []
    for run in section.runs:
        places: Counter[str] = Counter()
        for picture in run.shown.pictures:
            found.append((places[picture.kind], (run, picture)))
            places[picture.kind] += 1
    return [chosen for _, chosen in sorted(found, key=lambda pair: pair[0])]


def _jpegs(picture: ReportPicture) -> list[bytes]:
    return [jpeg for jpeg in (picture.jpeg, *(panel.jpeg for panel in picture.panels)) if jpeg]
