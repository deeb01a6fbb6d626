"""Several requests under way at once, by threads: for what waits for a disk or an object store."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16  # requests under way at once from one process
TRIED_AT_ONCE = 2  # items in a loop, before it is asked whether they wait
AHEAD_AT_ONCE = 1_024  # items that are asked for ahead, before one is tried alone again
WAITS = 4.0  # seconds per CPU second: a neighbour on a busy machine makes it two or three


def in_parallel(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The function's results in the order of the items, with several requests under way at once if they wait.

    Where they do not, as for files in the page cache, threads that share one Python take twice as long as a loop.
    """
    waiting = list(items)
    found: list[R] = []
    while len(found) < len(waiting):
        started, own = time.perf_counter(), time.thread_time()
        found += [function(item) for item in waiting[len(found) : len(found) + TRIED_AT_ONCE]]
        if _waited(started, own):
            with ThreadPoolExecutor(THREADS) as pool:
                found += pool.map(function, waiting[len(found) :])
    return found


def ahead_if_they_wait(function: Callable[[T], R], items: Iterable[T], most: int) -> Iterator[R]:
    """The function's results in the order of the items as they are asked for; `ahead` of that where items wait.

    Handing one to a thread and back costs more than reading a small file of the page cache: five times as much.
    """
    left = iter(items)
    for item in left:
        started, own = time.perf_counter(), time.thread_time()
        result = function(item)
        is_slow = _waited(started, own)
        yield result
        if is_slow:
            yield from ahead(function, itertools.islice(left, AHEAD_AT_ONCE), most)


def _waited(started: float, own: float) -> bool:
    """Whether what began at these readings of wall clock and CPU clock mostly waited."""
    return time.perf_counter() - started > WAITS * (time.thread_time() - own)


def ahead(function: Callable[[T], R], items: Iterable[T], most: int) -> Iterator[R]:
    """The same, with `most` under way at once, or waiting for a thread, while one is used."""
    pool = ThreadPoolExecutor(THREADS)
    asked: deque[Future[R]] = deque()
    try:
        for item in items:
            asked.append(pool.submit(function, item))
            if len(asked) == most:
                yield asked.popleft().result()
        while asked:
            yield asked.popleft().result()
    finally:
        # For a caller that wants no more. Not waited for: whoever closes this may be a thread of the pool, if that is
        # where an abandoned loop is collected as garbage.
        pool.shutdown(wait=False, cancel_futures=True)
