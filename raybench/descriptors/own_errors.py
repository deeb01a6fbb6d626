"""What a class of the user's own raises, told as the user's: its file and line, and the whole traceback from there.

Whoever calls a descriptor or a flow method does so within `blamed_on_class`; built-in ones raise as they are.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybench.errors import OwnCodeFailed, RaybenchError, reason_of
from raybench.masking import masked

PACKAGE = str(Path(__file__).parents[1])
LIBRARIES = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib"))


@contextmanager
def blamed_on_class(target: str) -> Iterator[None]:
    """Raise what `module:Class` raises in the block as an OwnCodeFailed; our own errors pass."""
    try:
        yield
    except RaybenchError:
        raise
    except Exception as error:
        if target.startswith("raybench."):
            raise
        raise own_failure(target, error) from error


def own_failure(target: str, error: Exception) -> OwnCodeFailed:
    """The error in one line that begins with the user's file and line, and its traceback without our own frames."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(PACKAGE)] or frames
    own = [frame for frame in theirs if not frame.filename.startswith(LIBRARIES)] or theirs
    where = f"{own[-1].filename}:{own[-1].lineno}"
    said = masked(f"{type(error).__name__}: {reason_of(error)}")
    told = traceback.TracebackException.from_exception(error)
    told.stack = traceback.StackSummary.from_list(theirs)
    return OwnCodeFailed(f"{where}: {target} raised {said}", where, masked("".join(told.format())))
