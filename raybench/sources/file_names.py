"""Names of files that become names in tables and of output files: those that can't be either are refused at once."""

from __future__ import annotations

from collections.abc import Iterable

from raybench.errors import ProblemList

SHOWN = 5


def check_names(root: str, names: Iterable[str]) -> None:
    """Raise for names below a folder that lead out of it, as object stores and task files may have them, and for those
    whose bytes are no UTF-8: Python reads such bytes as lone surrogates."""
    odd = [(name, reason) for name in names if (reason := _reason(name))]
    problems = ProblemList()
    lines = [f"{root}: the file name {name!r} {reason}; rename it" for name, reason in odd[:SHOWN]]
    problems.add_first(lines, len(odd), root, "such names")
    problems.check()


def _reason(name: str) -> str | None:
    if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
        return "is no UTF-8"
    if name[:1] == "/" or "//" in name or ".." in name or "./" in name:
        return "leads elsewhere" if {"", ".", ".."} & set(name.split("/")) else None
    return "holds a zero byte" if "\0" in name else None
