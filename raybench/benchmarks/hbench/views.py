"""Views of HPatches 2016 figures: means over all items by noise level, by change (`i_`, `v_`) and by sequence."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from raybench.table import Cell, Table

LEVELS = {"e": "easy", "h": "hard", "t": "tough"}
CHANGES = {"i": "illumination", "v": "viewpoint"}


def labels_of(image: str) -> dict[str, str]:
    """In which group an image `SEQ/IM` is, by view; a name outside the published scheme is in none.

    >>> labels_of("i_dome/h3")
    {'noise': 'hard', 'change': 'illumination', 'sequence': 'i_dome'}
    """
    sequence, name = image.split("/")
    level, change = LEVELS.get(name[:1]), CHANGES.get(sequence[:1]) if sequence[1:2] == "_" else None
    labels = {"noise": level if name[1:].isdecimal() else None, "change": change, "sequence": sequence}
    return {view: group for view, group in labels.items() if group is not None}


def query_labels(pool: Sequence[str], images: NDArray[np.int64]) -> list[dict[str, str]]:
    """In which groups queries are, by the places of their images in the pool; its noise is that of its other images."""
    noise = {group for image in pool for view, group in labels_of(image).items() if view == "noise"}
    shared = {"noise": noise.pop()} if len(noise) == 1 else {}
    own = [{**labels_of(image), **shared} for image in pool]
    return [own[place] for place in images.tolist()]


def view_table(
    count: str, columns: Sequence[str], labels: Sequence[dict[str, str]], figures: NDArray[np.float64]
) -> Table:
    """The mean of each column over the items of each group; `figures` are (items, columns), `count` names the items."""
    members: dict[tuple[str, str], list[int]] = {}
    for item, own in enumerate(labels):
        for key in own.items():
            members.setdefault(key, []).append(item)
    views = [view for view in ("noise", "change", "sequence") if any(view == key[0] for key in members)]
    rows: list[tuple[Cell, ...]] = [
        (view, group, len(items), *figures[items].mean(axis=0).tolist())
        for view in views
        for (own, group), items in sorted(members.items())
        if own == view
    ]
    return Table("views", ("view", "group", count, *columns), tuple(rows), frozenset(columns))
