"""How many workers a stage asks for, in plain numbers."""

from raybench.engine import demand
from raybench.engine.demand import Demand


def demand_at(monkeypatch, shards, asked=None):
    """A demand, and a function that moves its clock."""
    clock = [1_000.0]
    monkeypatch.setattr(demand.time, "monotonic", lambda: clock[0])

    def pass_by(seconds):
        clock[0] += seconds

    return Demand(shards, asked), pass_by


def test_all_there_are_and_no_more_than_there_are_shards(monkeypatch):
    one, _ = demand_at(monkeypatch, 100)
    assert one.wanted(there=8, left=100, grows=False) == 8
    assert one.wanted(there=8, left=3, grows=False) == 3
    one, _ = demand_at(monkeypatch, 100)
    assert one.wanted(there=0, left=3, grows=False) == 1


def test_what_the_user_asked_for_whatever_there_is(monkeypatch):
    one, pass_by = demand_at(monkeypatch, 1_000, asked=4)
    pass_by(500)
    assert [one.wanted(there, 999, grows=True) for there in (0, 2, 64)] == [4, 4, 4]
    assert one.wanted(there=2, left=1, grows=True) == 1


def test_a_cluster_that_grows_is_asked_for_more_while_the_rest_takes_longer_than_a_node_to_come(monkeypatch):
    one, pass_by = demand_at(monkeypatch, 1_000)
    assert one.wanted(there=8, left=1_000, grows=True) == 8, "nothing is known of the pace yet"
    pass_by(10)
    assert one.wanted(there=8, left=990, grows=True) == 16, "990 seconds are left"
    assert one.wanted(there=16, left=990, grows=True) == 32
    assert one.wanted(there=16, left=100, grows=True) == 16, "about a second is left"


def test_a_cluster_that_does_not_grow_is_asked_for_what_it_has(monkeypatch):
    one, pass_by = demand_at(monkeypatch, 1_000)
    pass_by(10)
    assert one.wanted(there=8, left=990, grows=False) == 8


def test_waiting_for_the_first_node_says_nothing_about_shards(monkeypatch):
    one, pass_by = demand_at(monkeypatch, 100)
    for _ in range(30):
        assert one.wanted(there=0, left=100, grows=True) == 1
        pass_by(10)
    assert one.wanted(there=0, left=100, grows=True) == 1
    pass_by(1)
    assert one.wanted(there=16, left=50, grows=True) == 16, "fifty shards per second: a second is left"


def test_lost_workers_are_asked_for_again(monkeypatch):
    one, _ = demand_at(monkeypatch, 100)
    assert [one.wanted(there, 90, grows=True) for there in (8, 2, 0)] == [8, 8, 8]
