"""What can go wrong, by who can mend it.

    RaybenchError
      InputError            the user's arguments or data: exit code 2, one line each
        ConfigError         an argument
        DataError           a file: what was expected, what was found, where, what to do
        StorageError        a URI that can't be reached: credentials, bucket, permission
          StorageUnavailable  a store that does not answer for now: nobody's fault, it may do so later
        ManifestMismatch    the output folder belongs to another run
        Problems            several of the above, found together
      ShardFailed           a shard failed for good: exit code 3
        Stalled             nothing was published for as long as --patience allows
        ClusterLost         the head of the Ray cluster does not answer any more
      CorruptShard          a broken stage file; Run maps it again, nobody else handles it

Every error pickles by its arguments alone, since it may cross a process border.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class RaybenchError(Exception):
    """Whatever raybench itself raises."""


class InputError(RaybenchError):
    """The user's arguments or data are at fault."""

    def lines(self) -> list[str]:
        """Each problem as one line."""
        return [str(self)]


class ConfigError(InputError):
    """An argument is missing, unknown or contradicts another."""


class DataError(InputError):
    """A file does not hold what its format says."""


class StorageError(InputError):
    """A URI can't be reached: wrong credentials, missing bucket, no permission."""


class StorageUnavailable(StorageError):
    """A store did not answer, or not with what it holds, for as long as one request is tried."""


class ManifestMismatch(InputError):
    """The output folder holds a run with other arguments."""


class Problems(InputError):
    """Several problems that were found together, before any compute."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = list(lines)
        super().__init__(self._lines)

    def lines(self) -> list[str]:
        return self._lines

    def __str__(self) -> str:
        return "\n".join(self._lines)


class ShardFailed(RaybenchError):
    """A shard failed three times; names stage, shard, keys and the last cause."""


class Stalled(ShardFailed):
    """Nothing was published for as long as --patience allows; names what the run waited for."""


class ClusterLost(ShardFailed):
    """The head of the Ray cluster does not answer any more."""


class CorruptShard(RaybenchError):
    """The published file of shard `index` of the stage with this digest can't be read."""

    def __init__(self, digest: str, index: int, reason: str) -> None:
        self.digest, self.index, self.reason = digest, index, reason
        super().__init__(digest, index, reason)

    def __str__(self) -> str:
        return f"shard {self.index} of stage {self.digest}: {self.reason}"


class ProblemList:
    """Collects problems while a preflight goes on, and raises them together.

    >>> problems = ProblemList()
    >>> problems.add("a.csv: empty")
    >>> problems.check()
    Traceback (most recent call last):
    raybench.errors.Problems: a.csv: empty
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, problem: str | InputError) -> None:
        """Note one problem, or every problem of an error, once."""
        lines = problem.lines() if isinstance(problem, InputError) else [problem]
        self.lines.extend(line for line in lines if line not in self.lines)

    def add_first(self, lines: Sequence[str], count: int, where: str, what: str) -> None:
        """Note the first of `count` problems of one kind, and how many there are if some are left out."""
        for line in lines:
            self.add(line)
        if count > len(lines):
            self.add(f"{where}: {count:,} {what} in all, {len(lines)} are shown")

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note an InputError that the block raises, and go on behind it."""
        try:
            yield
        except InputError as error:
            self.add(error)

    @contextmanager
    def joining(self) -> Iterator[None]:
        """Raise an InputError of the block together with what was noted before it."""
        try:
            yield
        except InputError as error:
            self.add(error)
            raise Problems(self.lines) from error

    def check(self) -> None:
        """Raise what was collected, if anything."""
        if self.lines:
            raise Problems(self.lines)


def suggestion(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to an error, or nothing: `suggestion("sfit", ["sift"])` is `; did you mean sift?`."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {found[0]}?" if found else ""


def reason_of(cause: Exception) -> str:
    """What a library's exception says, in one line; its type where it says nothing."""
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
