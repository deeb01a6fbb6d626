"""Picture: what a benchmark shows in the report beside its tables. It knows no files."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Picture:
    """A JPEG for the report, under a title, with a line of words."""

    title: str
    caption: str
    jpeg: bytes
