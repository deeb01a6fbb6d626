"""Pictures of flow pairs, from arrays to bytes: colours, panels, one sheet a pair, one a group. Knows no files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A JPEG for the report, under a title, with a line of words."""

    title: str
    caption: str
    jpeg: bytes
