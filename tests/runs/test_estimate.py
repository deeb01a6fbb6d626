"""From measures to seconds, hours and cost: cases small enough for paper."""

import pytest

from raybench.runs.planning.estimate import Estimate, Machines, cost_of, fitted
from raybench.runs.planning.measured import Measure
from raybench.runs.planning.probed_run import PlannedStage


def measure(work, load, compute, publish=0.0, base=1.0):
    return Measure(work, base, load, compute, publish, 10 * work, 5 * work, 100 * work, 1_000.0)


def stage(*measures, name="describe-images", shards=10, found=0, on_device=True):
    missing = shards - found
    return PlannedStage(
        name, on_device, shards, found, 10 * shards, 10.0 * missing, missing, (10.0, 1.0), True, 0.0, measures, ""
    )


def estimate(*stages, counts=(1, 2), gpus=1, cpus_per_gpu=1.0, start=0.0, price=None):
    costs = tuple(cost_of(one, {}) for one in stages)
    return Estimate(costs, counts, Machines(gpus, cpus_per_gpu, start, 0.0), price, {})


WARM = measure(1.0, 9.0, 9.0)  # the first of a stage, which pays for what is done once


def test_time_grows_with_work_and_with_the_number_of_shards():
    assert fitted([(1, 1, 50.0), (10, 1, 12.0), (100, 1, 102.0)], work=1_000, base=10) == pytest.approx(1_020)


def test_where_a_larger_sample_took_less_all_grows_with_work():
    assert fitted([(1, 1, 50.0), (10, 1, 12.0), (100, 1, 10.0)], work=1_000, base=10) == pytest.approx(100)


def test_the_first_sample_counts_only_if_there_is_no_other():
    assert fitted([(10, 1, 5.0)], work=100, base=1) == pytest.approx(50)
    assert fitted([(10, 1, 5.0), (10, 1, 1.0)], work=100, base=1) == pytest.approx(10)


def test_on_gpus_a_stage_takes_the_longer_of_loading_and_computing():
    reading = stage(WARM, measure(10.0, 4.0, 1.0))
    computing = stage(WARM, measure(10.0, 1.0, 4.0))
    assert estimate(reading).wall_seconds == pytest.approx({1: 40 + 4, 2: 20 + 4})
    assert estimate(computing).wall_seconds == pytest.approx({1: 40 + 1, 2: 20 + 1})
    assert estimate(reading).bottleneck == "reading images on 1 and 2 GPUs"
    assert estimate(computing).bottleneck == "describe on 1 and 2 GPUs"


def test_more_cpus_per_gpu_load_faster():
    reading = stage(WARM, measure(10.0, 4.0, 1.0))
    assert estimate(reading, cpus_per_gpu=8.0).wall_seconds == pytest.approx({1: 10 + 4, 2: 5 + 4})


def test_without_gpus_every_cpu_does_all_of_a_shard():
    found = estimate(stage(WARM, measure(10.0, 1.0, 2.0, 1.0)), gpus=0)
    assert found.wall_seconds == pytest.approx({1: 40, 2: 20})
    assert found.bottleneck == "describe on 1 and 2 CPUs"


def test_no_worker_gets_a_part_of_a_shard():
    found = estimate(stage(WARM, measure(10.0, 0.0, 4.0), shards=3), counts=(2, 64), gpus=0)
    assert found.wall_seconds == pytest.approx({2: 8, 64: 4})


def test_what_is_found_in_the_store_costs_nothing():
    one = stage(WARM, measure(10.0, 1.0, 4.0), found=10)
    assert estimate(one, gpus=0).wall_seconds == {1: 0.0, 2: 0.0}
    assert estimate(one).to_json()["stages"][0]["bytes_written"] == 0


def test_hours_cost_and_the_bottleneck_follow_the_count():
    found = estimate(
        stage(WARM, measure(10.0, 0.0, 360.0)), stage(WARM, measure(10.0, 0.0, 400.0), name="search", shards=1),
        counts=(1, 10), gpus=0, price=2.0,
    )  # fmt: skip
    assert found.wall_seconds == pytest.approx({1: 4_000, 10: 760})
    assert found.gpu_hours == pytest.approx({1: 4_000 / 3600, 10: 7_600 / 3600})
    assert found.cost == pytest.approx({1: 8_000 / 3600, 10: 15_200 / 3600})
    assert found.bottleneck == "describe on 1 CPU; search on 10 CPUs"


def test_the_start_counts_once_and_may_be_what_takes_longest():
    found = estimate(stage(WARM, measure(10.0, 0.0, 0.1), shards=1), start=5.0)
    assert found.wall_seconds == pytest.approx({1: 5.1, 2: 5.1})
    assert found.bottleneck == "starting Ray and checking inputs on 1 and 2 GPUs"


def test_memory_is_that_of_the_largest_shard_beside_the_process():
    found = estimate(stage(WARM, measure(10.0, 1.0, 1.0)))
    assert found.peak_memory_bytes == 1_000 + 2 * 1_000 + 3 * 50
