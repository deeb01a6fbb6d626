"""Where a shard is computed BLAS has one thread; outside, what it had before."""

import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.engine.threads import one_blas_thread


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def busy(item):
    """Seconds of this thread and of the whole process, over many small products."""
    rows = np.ones((300, 300), np.float32)
    before = time.thread_time(), time.process_time()
    while time.thread_time() - before[0] < 0.2:
        rows @ rows
    return {"seconds": np.array([time.thread_time() - before[0], time.process_time() - before[1]])}


def threads_seen(item):
    return {"threads": np.array(sorted(blas_threads()))}


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        yield


@pytest.fixture
def run(tmp_path):
    return Run(str(tmp_path), str(tmp_path / "store"), InlineExecutor(Observer()), Observer())


def test_a_shard_sees_one_thread_and_the_rest_of_the_process_its_own(two_threads, run):
    (seen,) = run.read_each(run.each(threads_seen, ["one"], version=1))
    assert seen["threads"].tolist() == [1]
    assert blas_threads() == {2}


def test_small_products_keep_one_core_busy(two_threads, run):
    (seen,) = run.read_each(run.each(busy, ["one"], version=1))
    assert seen["seconds"][1] < 1.3 * seen["seconds"][0]


def test_the_limit_costs_little_per_shard():
    with one_blas_thread():
        pass
    times = []
    for _ in range(50):
        begun = time.perf_counter()
        with one_blas_thread():
            pass
        times.append(time.perf_counter() - begun)
    assert min(times) < 0.0002
