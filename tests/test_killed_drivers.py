"""A driver that is killed at any moment and run again with other workers leaves what an undisturbed run leaves."""

import signal

import pytest
from conftest import GOLDEN
from drivers import Driver, Stop, has_ended, results, run, wait_until

HBENCH = GOLDEN / "hbench_classification/data"
PUBLISHED = "raybench.engine.stages:publish_shard"
RENAMED = "pathlib:Path.replace"  # of a temporary file that is whole, to its name
MOMENTS = {
    "hbench-classification": {
        "listing": Stop("raybench.storage:list_files"),
        "mid-extract": Stop(RENAMED, ".shard", 3),
        "between stages": Stop("raybench.engine.run:Run._perform", call=2),
        "mid-fold": Stop(PUBLISHED, "pairs-fold", 2),
        "mid-export": Stop(RENAMED, "_neg_", 1),
        "manifest": Stop(RENAMED, "manifest.json", 2),
    },
    "disc2021": {
        "listing": Stop("raybench.storage:list_files", call=2),
        "mid-extract": Stop(PUBLISHED, "describe-images", 4),
        "between stages": Stop("raybench.engine.run:Run._perform", call=11),
        "mid-fold": Stop(PUBLISHED, "pairs-above-fold", 1),
        "mid-export": Stop(RENAMED, "predictions.csv", 1),
        "manifest": Stop(RENAMED, "manifest.json", 2),
    },
    "tss": {
        "listing": Stop("raybench.storage:list_files"),
        "mid-extract": Stop(PUBLISHED, "dense-flow", 3),
        "between stages": Stop("raybench.engine.run:Run._perform", call=2),
        "mid-fold": Stop(PUBLISHED, "joined-scores", 1),
        "mid-export": Stop(RENAMED, "flow1.flo", 4),
        "manifest": Stop(RENAMED, "manifest.json", 2),
    },
}
OFF, TWO, ONE = (("--ray", "off"), ("--ray", "local", "--cpus", "2"), ("--ray", "local", "--cpus", "1"))
QUICK = [("hbench-classification", moment, OFF, OFF) for moment in MOMENTS["hbench-classification"]]
EVERY = [
    (benchmark, moment, first, then)
    for benchmark, moments in MOMENTS.items()
    for moment in moments
    for first, then in ((OFF, TWO), (TWO, ONE))
]
CASES = [
    *(pytest.param(*case, id="-".join(case[:2])) for case in QUICK),
    *(
        pytest.param(*case, id="-".join([*case[:2], case[2][1]]), marks=[pytest.mark.slow, pytest.mark.ray(own=True)])
        for case in EVERY
    ),
]


@pytest.fixture(scope="module")
def inputs(copies):
    return {
        "hbench-classification": (
            *("--data", HBENCH / "hpatches", "--benchmarks", HBENCH / "benchmarks", "--shard-size", "4"),
            *("--descriptor", "patch_descriptors:Block4"),
        ),
        "disc2021": ("--data", copies / "disc", "--descriptor", "thumbnail", "--codecs", "Flat", "--shard-size", "16"),
        "tss": ("--data", GOLDEN / "tss/data/Dataset", "--descriptor", "dis", "--shard-size", "1"),
    }


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """What a benchmark leaves if nobody disturbs it."""
    left = {}

    def found(benchmark):
        if benchmark not in left:
            out = tmp_path_factory.mktemp("undisturbed")
            code, said = run(("run", benchmark, *inputs[benchmark], "--device", "cpu", *OFF, "--out", out))
            assert code == 0, said
            left[benchmark] = results(out)
        return left[benchmark]

    return found


@pytest.mark.parametrize(("benchmark", "moment", "first", "then"), CASES)
def test_a_killed_driver_run_again_leaves_what_an_undisturbed_one_does(
    benchmark, moment, first, then, inputs, undisturbed, tmp_path
):
    out = tmp_path / "out"
    command = ("run", benchmark, *inputs[benchmark], "--device", "cpu", "--out", out)
    driver = Driver((*command, *first), tmp_path / "meeting", MOMENTS[benchmark][moment])
    stopped = driver.wait_until_stopped()
    driver.process.send_signal(signal.SIGKILL)
    assert driver.ended()[0] == -signal.SIGKILL
    wait_until(lambda: has_ended(stopped))  # a worker that goes on would finish the shards that it has
    driver.go_on()
    assert bool(list(out.rglob(".*.tmp"))) == (MOMENTS[benchmark][moment].function == RENAMED)
    code, said = run((*command, *then))
    assert code == 0, said
    assert list(out.rglob(".*")) == [], "something temporary was left"
    assert results(out) == undisturbed(benchmark)
