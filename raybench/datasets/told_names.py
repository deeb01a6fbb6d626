"""Names of images that files of a set tell: the truth of Revisited Oxford and Paris, and the list of distractors."""

from __future__ import annotations

from collections.abc import Callable

from raybench.errors import ProblemList
from raybench.formats.revisited import read_distractor_names, read_revisited_truth


def revisited_names(data: bytes, name: str) -> list[str]:
    """The file names of queries and references, which have no suffix in the truth; raises Problems."""
    problems = ProblemList()
    truth = read_revisited_truth(data, name, problems)
    problems.check()
    assert truth is not None, "what is wrong with it was noted"
    return [f"{image}.jpg" for image in (*truth.queries, *truth.references)]


def listed_names(data: bytes, name: str) -> list[str]:
    """One name per line; raises Problems."""
    problems = ProblemList()
    names = read_distractor_names(data, name, problems)
    problems.check()
    return list(names)


READERS: dict[str, Callable[[bytes, str], list[str]]] = {"revisited": revisited_names, "lines": listed_names}
