"""Which folder may be meant, where one holds nothing of a set: one or two levels below, or above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from raybench import storage
from raybench.datasets.parts import PublishedSet
from raybench.datasets.tallies import tally_of

MOST_LEVELS = 2


def folder_meant(published: PublishedSet, root: str, names: Sequence[str]) -> str | None:
    """In words, which folder to name instead of one with these files, of which none is of the set; None if unknown."""
    for level in range(1, MOST_LEVELS + 1):
        words = "a level" if level == 1 else f"{level} levels"
        above, *below = root.rsplit("/", level)
        if above and len(below) == level and _fits(published, [f"{'/'.join(below)}/{name}" for name in names]):
            return f"is {words} too low; name {above}"
        parts = [name.split("/", level) for name in names if name.count("/") >= level]
        heads = Counter("/".join(head) for *head, rest in parts if _fits(published, [rest]))
        if heads:
            return f"is {words} too high; name {storage.join(root, heads.most_common(1)[0][0])}"
    return None


def _fits(published: PublishedSet, names: Sequence[str]) -> bool:
    """Whether any of these is a file of the set."""
    for part in published.parts:
        for folder in part.folders:
            tally, prefix = tally_of(part.names, lambda _: None), f"{folder}/" if folder else ""
            if any(tally.see(name.removeprefix(prefix), 1) for name in names if name.startswith(prefix)):
                return True
    return False
