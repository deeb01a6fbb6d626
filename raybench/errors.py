"""What can go wrong, by who can mend it.

    RaybenchError
      InputError            the user's arguments or data: exit code 2, one line each
        ConfigError         an argument
        DataError           a file: what was expected, what was found, where, what to do
          OutOfReach          a listed file that is gone, rewritten or closed: what it holds is not at fault
        StorageError        a URI that can't be reached: credentials, bucket, permission
          StorageUnavailable  a store that does not answer for now: nobody's fault, it may do so later
        ManifestMismatch    the output folder belongs to another run
        FolderInUse         the output folder has a driver that is at work
        Problems            several of the above, found together
      FigureBelow           a figure is below what --fail-below asks for: exit code 4
      ShardFailed           a shard failed for good: exit code 3
        OwnCodeFailed       the user's own class raised an exception, and would do so again
        Stalled             nothing was published for as long as --patience allows
        ClusterLost         the head of the Ray cluster does not answer any more
      CorruptShard          a broken stage file; Run maps it again, nobody else handles it

Every error pickles by its arguments alone, since it may cross a process border.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

MOST_SHOWN = 80  # letters of a text in a message
MOST_LETTERS, MOST_KNOWN = 200, 10_000  # of words that a wrong one is compared with


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


class OutOfReach(DataError):
    """A file can't be read as it was listed. It is not broken, so it is never skipped, nor kept as such."""


class StorageError(InputError):
    """A URI can't be reached: wrong credentials, missing bucket, no permission."""


class StorageUnavailable(StorageError):
    """A store did not answer, or not with what it holds, for as long as one request is tried."""


class ManifestMismatch(InputError):
    """The output folder holds a run with other arguments."""


class FolderInUse(InputError):
    """Another driver is at work on the output folder."""


class Problems(InputError):
    """Several problems that were found together, before any compute."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = list(lines)
        super().__init__(self._lines)

    def lines(self) -> list[str]:
        return self._lines

    def __str__(self) -> str:
        return "\n".join(self._lines)


class FigureBelow(RaybenchError):
    """The run is done, and figures are below what --fail-below asks for."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = list(lines)
        super().__init__(self._lines)

    def lines(self) -> list[str]:
        """Each figure as one line."""
        return self._lines

    def __str__(self) -> str:
        return "\n".join(self._lines)


class ShardFailed(RaybenchError):
    """A shard failed three times; names stage, shard, keys and the last cause."""


class OwnCodeFailed(ShardFailed):
    """The user's own class raised: one line in words, its file and line, and its whole traceback."""

    def __init__(self, line: str, where: str, trace: str) -> None:
        self.line, self.where, self.trace = line, where, trace
        super().__init__(line, where, trace)

    def __str__(self) -> str:
        return self.line


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
        self._known: set[str] = set()

    def add(self, problem: str | InputError) -> None:
        """Note one problem, or every problem of an error, once."""
        lines = problem.lines() if isinstance(problem, InputError) else [problem]
        new = dict.fromkeys(line for line in lines if line not in self._known)
        self.lines.extend(new)
        self._known.update(new)

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


@contextmanager
def blamed_on_file(words: str, advice: str = "it may be cut short or damaged") -> Iterator[None]:
    """Raise what a library raises in the block as a DataError: these words, the library's reason, and what to do.

    On damaged bytes libraries raise whatever they trip over, so every kind counts. Our own errors pass, and so does a
    lack of memory: sizes are checked before (`formats.limits`), so it is the machine's and not the file's.
    """
    try:
        yield
    except (RaybenchError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{words} ({reason_of(error)}); {advice}") from error


def suggestion(word: str, known: Iterable[str]) -> str:
    """A suggestion to append to an error, or nothing: `suggestion("sfit", ["sift"])` is ` (did you mean sift?)`."""
    if len(word) > MOST_LETTERS:  # similar words of any length take for ever to compare
        return ""
    found = difflib.get_close_matches(word, itertools.islice(known, MOST_KNOWN), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


def quoted(text: str) -> str:
    """A text of the user's in quotes, cut where it is long.

    >>> quoted("sift"), len(quoted("x" * 10**6))
    ("'sift'", 84)
    """
    return repr(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} …")


def reason_of(cause: Exception) -> str:
    """What a library's exception says, in one line; its type where it says nothing."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__
