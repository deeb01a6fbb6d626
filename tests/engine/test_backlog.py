"""Loading runs ahead as far as CPUs allow and devices need, and stops where the room ends."""

import pytest

from raybench.engine.backlog import LOADED_PER_DEVICE, Backlog

MB = 10**6


def fill(backlog: Backlog) -> int:
    """Start loads until there is no room; how many were started."""
    count = 0
    while backlog.has_room():
        backlog.started()
        count += 1
    return count


@pytest.mark.parametrize("loaders", [1, 6, 16])
def test_as_many_loads_run_as_there_are_loaders(loaders):
    assert fill(Backlog(devices=2, loaders=loaders, room_bytes=1e12)) == loaders


def test_loaders_that_come_later_are_used():
    backlog = Backlog(2, 4, 1e12)
    fill(backlog)
    backlog.loaders = 10
    assert fill(backlog) == 6


def test_one_shard_per_device_is_loaded_however_large_it_is():
    backlog = Backlog(devices=3, loaders=16, room_bytes=0)
    assert fill(backlog) == 3
    for _ in range(3):
        backlog.loaded(10**12)
    assert not backlog.has_room()
    backlog.gone(10**12)
    assert fill(backlog) == 1


def test_payloads_that_wait_stop_loading_before_they_fill_the_room():
    backlog = Backlog(devices=2, loaders=16, room_bytes=100 * MB)
    backlog.started()
    backlog.loaded(10 * MB)
    assert fill(backlog) == 9
    for _ in range(9):
        backlog.loaded(10 * MB)
    assert not backlog.has_room()
    backlog.gone(10 * MB)
    assert fill(backlog) == 1


def test_a_slow_device_is_not_fed_minutes_ahead():
    backlog = Backlog(devices=2, loaders=64, room_bytes=1e12)
    backlog.started()
    backlog.loaded(1)
    backlog.gone(1)
    backlog.took(load_seconds=1.0, compute_seconds=10.0)
    assert fill(backlog) == 2 * LOADED_PER_DEVICE + 1


def test_a_fast_device_gets_every_loader():
    backlog = Backlog(devices=2, loaders=64, room_bytes=1e12)
    backlog.took(load_seconds=1.0, compute_seconds=0.01)
    assert fill(backlog) == 64


def test_a_load_that_failed_leaves_its_place():
    backlog = Backlog(1, 2, 1e12)
    fill(backlog)
    backlog.failed()
    assert (len(backlog), backlog.has_room()) == (1, True)
