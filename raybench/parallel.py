"""Several requests under way at once, by threads: for what waits for a disk or an object store."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16  # requests under way at once from one process


def in_parallel(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The function's results in the order of the items, with several requests under way at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, items))


def ahead(function: Callable[[T], R], items: Iterable[T], most: int) -> Iterator[R]:
    """The same as they are asked for: while one is used, the next are under way, or wait; `most` at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        asked: deque[Future[R]] = deque()
        try:
            for item in items:
                asked.append(pool.submit(function, item))
                if len(asked) == most:
                    yield asked.popleft().result()
            while asked:
                yield asked.popleft().result()
        finally:
            for future in asked:  # of a caller that wants no more
                future.cancel()
