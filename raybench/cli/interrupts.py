"""Ctrl-C, `kill` and a terminal that is closed: the first ends a run in order, the second at once.

In order means that the Ray which the run started is ended, too. At once leaves that to the kernel, which ends Ray's
processes together with the one that started them. Either way what is published stays.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType

INTERRUPTED = 130  # the exit code
HOW_TO_GO_ON = "interrupted; the same command resumes: what is published is not computed again"
SHOW_CURSOR = "\x1b[?25h"
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_in_order_on_signals() -> None:
    """From now on the first of these signals raises KeyboardInterrupt, and the next one ends the process.

    One that is ignored stays so: `nohup` has its command ignore SIGHUP, a shell its background jobs SIGINT.
    """
    handler = _Handler()
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def say_interrupted() -> int:
    """Say how to go on, if the terminal is still there; the exit code."""
    with suppress(OSError):
        sys.stderr.flush()
        cursor = SHOW_CURSOR if os.isatty(2) else ""  # which a live line hides
        os.write(2, f"{cursor}{HOW_TO_GO_ON}\n".encode())  # at any moment, even while something else is being printed
    return INTERRUPTED


class _Handler:
    def __init__(self) -> None:
        self._ending = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._ending:
            os._exit(say_interrupted())
        self._ending = True
        raise KeyboardInterrupt
