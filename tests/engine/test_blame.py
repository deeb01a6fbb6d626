"""Whose fault a death is, by plain facts: no Ray."""

from dataclasses import dataclass, field, replace

import pytest

from raybench.engine.attempts import MOST_FAILURES, STORAGE, Attempts, Failure
from raybench.engine.blame import NOTICED_WITHIN_SECONDS, Death, Fault, fault_of
from raybench.engine.shards import Shards
from raybench.errors import DataError, OwnCodeFailed, ShardFailed, StorageError, StorageUnavailable


@dataclass
class Seen:
    """Nodes that are known to leave, and when each was noticed."""

    left: dict = field(default_factory=dict)
    notices_within: float = 5.0

    def outlived(self, node, died, now):
        return now - died >= self.notices_within

    def leaves(self, node):
        return node in self.left

    def any_left_since(self, moment):
        return any(noticed >= moment for noticed in self.left.values())


ALONE = Death(shards=1, node="a", began=100.0, died=200.0)


def test_a_shard_alone_with_a_worker_that_died_on_a_node_that_stays_is_to_blame():
    assert fault_of(ALONE, Seen(), now=205.0) is Fault.OWN


def test_of_several_shards_none_is_to_blame_but_each_is_suspected():
    assert fault_of(replace(ALONE, shards=3), Seen(), now=205.0) is Fault.SUSPECTS


def test_a_verdict_stays_open_for_as_long_as_a_lost_node_may_go_unnoticed():
    assert fault_of(ALONE, Seen(), now=204.9) is Fault.OPEN
    assert fault_of(ALONE, Seen(notices_within=30.0), now=229.9) is Fault.OPEN


@pytest.mark.parametrize("now", [200.0, 204.0, 300.0])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_node_that_leaves_is_nobodys_fault(now, shards):
    assert fault_of(replace(ALONE, shards=shards), Seen(left={"a": 203.0}), now) is Fault.NOBODY


def test_another_node_that_leaves_excuses_nobody():
    assert fault_of(ALONE, Seen(left={"b": 203.0}), now=205.0) is Fault.OWN


def test_a_preempted_actor_is_nobodys_fault_wherever_it_was():
    assert fault_of(replace(ALONE, preempted=True), Seen(), now=300.0) is Fault.NOBODY


def test_a_kill_for_want_of_memory_is_judged_at_once():
    assert fault_of(replace(ALONE, out_of_memory=True), Seen(), now=200.0) is Fault.OWN
    assert fault_of(replace(ALONE, out_of_memory=True, shards=2), Seen(), now=200.0) is Fault.SUSPECTS
    assert fault_of(replace(ALONE, out_of_memory=True), Seen(left={"a": 199.0}), now=200.0) is Fault.NOBODY


def test_where_the_node_is_unknown_any_that_left_meanwhile_or_shortly_before_may_have_been_it():
    somewhere = replace(ALONE, node=None)
    assert fault_of(somewhere, Seen(left={"b": 150.0}), now=205.0) is Fault.NOBODY
    assert fault_of(somewhere, Seen(left={"b": 100.0 - NOTICED_WITHIN_SECONDS}), now=205.0) is Fault.NOBODY
    assert fault_of(somewhere, Seen(left={"b": 99.0 - NOTICED_WITHIN_SECONDS}), now=205.0) is Fault.OWN


class Stage:
    name = "squares"

    def keys(self, shard):
        return f"numbers {shard.start}..{shard.stop - 1}"


@pytest.fixture
def shard():
    return Shards("squares", 40, 3)[4]


def test_what_was_lost_or_waited_for_storage_is_no_failure(shard):
    attempts = Attempts(Stage())
    for _ in range(2 * MOST_FAILURES):
        attempts.lose(shard)
        attempts.pause(shard)
    assert (attempts.of(shard), attempts.times_lost(shard)) == (1, 6)
    attempts.note(shard, Failure("its own"))
    attempts.note(shard, Failure("its own"))
    assert attempts.of(shard) == 3
    with pytest.raises(ShardFailed, match=r"shard 4 \(numbers 12\.\.14\) failed 3 times.*the third"):
        attempts.note(shard, Failure("the third"))


def test_a_store_that_does_not_answer_is_nobodys_fault_and_one_that_refuses_is_the_users(shard):
    assert Failure.of(StorageUnavailable("s3://b: no answer")).nobodys == STORAGE
    refused = StorageError("s3://b: permission denied")
    assert (Failure.of(refused).nobodys, Failure.of(refused).error) == ("", refused)
    assert isinstance(Failure.of(DataError("a.csv: nonsense")).error, DataError)


def test_a_users_class_that_raises_elsewhere_is_tried_again(shard):
    def raised(line):
        return Failure.of(OwnCodeFailed(f"mine.py:{line}: mine:Mine raised OSError: x", f"mine.py:{line}", "trace"))

    attempts = Attempts(Stage())
    attempts.note(shard, raised(7))
    attempts.note(shard, raised(8))
    with pytest.raises(OwnCodeFailed, match=r"mine\.py:8: .* \(stage squares, shard 4: numbers 12\.\.14\)"):
        attempts.note(shard, raised(8))
