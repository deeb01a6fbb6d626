"""Ctrl-C, `kill` and a closed terminal: the run ends in order, says how to go on, and leaves no process behind."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import GOLDEN
from drivers import AGENTS, Driver, Stop, run, wait_until

HBENCH = GOLDEN / "hbench_classification/data"
MID_EXTRACT = Stop("raybench.engine.stages:publish_shard", "extract", 2)
RAY_ENDS = Stop("raybench.engine.ray_core:RayExecutor.close")
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
on_ray = pytest.mark.ray(own=True)
slow = [pytest.mark.slow, on_ray]


@pytest.fixture
def command(tmp_path):
    given = ("--data", HBENCH / "hpatches", "--benchmarks", HBENCH / "benchmarks", "--shard-size", "4")
    more = ("--descriptor", "patch_descriptors:Block4", "--device", "cpu", "--out", tmp_path / "out")
    return ("run", "hbench-classification", *given, *more)


def assert_ended_in_order(driver):
    code, said = driver.ended()
    assert code == 130, said
    assert said.splitlines()[-1].startswith("interrupted; the same command resumes")
    assert not any(word in said for word in ("Traceback", "***", "SIGTERM", "Exception", "error")), said


def ray_is_coming_up(driver):
    return any(Path("/tmp/ray").glob(f"session_*_{driver.pid}"))


@pytest.mark.parametrize("number", SIGNALS)
def test_a_run_in_this_process_ends_in_order(number, command, tmp_path):
    driver = Driver((*command, "--ray", "off"), tmp_path / "meeting", MID_EXTRACT)
    driver.wait_until_stopped()
    driver.process.send_signal(number)
    assert_ended_in_order(driver)
    assert driver.left() == []
    assert list((tmp_path / "out").rglob(".*")) == [], "something temporary was left"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@on_ray
def test_a_run_on_a_local_ray_ends_in_order_and_takes_ray_along(number, command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting", MID_EXTRACT)
    worker = driver.wait_until_stopped()
    assert worker != driver.pid
    assert len(driver.left()) > 5, "there was no Ray to end"
    driver.process.send_signal(number)
    assert_ended_in_order(driver)
    assert driver.left() == []


@pytest.mark.parametrize("number", [pytest.param(number, marks=slow) for number in SIGNALS])
def test_a_signal_while_ray_comes_up_ends_both(number, command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting")
    wait_until(lambda: ray_is_coming_up(driver), driver.process)
    driver.process.send_signal(number)
    assert_ended_in_order(driver)
    assert driver.left() == []


@pytest.mark.parametrize("number", [pytest.param(number, marks=slow) for number in SIGNALS])
def test_a_signal_while_ray_ends_lets_it_end(number, command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting", RAY_ENDS)
    driver.wait_until_stopped()
    driver.process.send_signal(number)
    with pytest.raises(subprocess.TimeoutExpired):
        driver.process.wait(3)  # it does not go before Ray
    driver.go_on()
    assert_ended_in_order(driver)
    assert driver.left() == []


@pytest.mark.parametrize("number", [pytest.param(number, marks=slow) for number in SIGNALS])
def test_a_signal_to_the_whole_group_as_terminals_and_schedulers_send_it(number, command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting", MID_EXTRACT)
    driver.wait_until_stopped()
    os.killpg(driver.pid, number)
    assert_ended_in_order(driver)
    wait_until(lambda: driver.left() == [], seconds=30)


@pytest.mark.slow
@on_ray
def test_a_second_interrupt_ends_at_once_and_the_kernel_takes_ray_along(command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting", RAY_ENDS)
    driver.wait_until_stopped()
    driver.process.send_signal(signal.SIGINT)
    wait_until(lambda: not signal_is_pending(driver.pid), driver.process)
    driver.process.send_signal(signal.SIGINT)
    assert_ended_in_order(driver)  # though nobody let Ray end
    wait_until(lambda: driver.left(without=AGENTS) == [], seconds=30)
    wait_until(lambda: driver.left() == [], seconds=120)


def signal_is_pending(pid):
    """Whether a signal waits to be seen by a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return any(int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd")))


@pytest.mark.slow
@on_ray
def test_nothing_of_a_local_ray_outlives_a_killed_driver(command, tmp_path):
    driver = Driver((*command, "--ray", "local"), tmp_path / "meeting", MID_EXTRACT)
    driver.wait_until_stopped()
    driver.process.send_signal(signal.SIGKILL)
    driver.ended()
    wait_until(lambda: driver.left(without=AGENTS) == [], seconds=30)
    wait_until(lambda: driver.left() == [], seconds=120)  # Ray's agents try for a minute to tell their server of it


def test_a_signal_that_the_caller_ignores_stays_ignored(command, tmp_path):
    driver = Driver((*command, "--ray", "off"), tmp_path / "meeting", MID_EXTRACT, ignored=signal.SIGHUP)
    driver.wait_until_stopped()
    driver.process.send_signal(signal.SIGHUP)
    driver.go_on()
    assert driver.ended()[0] == 0


def test_an_interrupted_run_goes_on_where_it_was(command, tmp_path):
    driver = Driver((*command, "--ray", "off"), tmp_path / "meeting", MID_EXTRACT)
    driver.wait_until_stopped()
    driver.process.send_signal(signal.SIGTERM)
    assert_ended_in_order(driver)
    code, said = run((*command, "--ray", "off", "--progress", "json"))
    assert code == 0
    assert '"stage_started", "stage": "extract", "shards": 12, "found": 1' in said
