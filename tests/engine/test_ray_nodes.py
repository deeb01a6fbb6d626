"""Which nodes are lost, by sockets that answer, refuse, or keep silent as a machine does that is switched off."""

import os
import socket
import time

import pytest
from engine_runs import new_run
from number_stages import Squares

from raybench.engine import ray_nodes
from raybench.engine.blame import NOTICED_WITHIN_SECONDS, Death, Fault, fault_of
from raybench.engine.progress import Observer
from raybench.engine.ray_nodes import RAY_GIVES_UP, Head, Nodes, patient_with_head
from raybench.engine.shards import Shards
from raybench.errors import ClusterLost


class Server:
    """A port of this machine, and the node that Ray lists there."""

    def __init__(self):
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._waiting = []
        self.port = self._socket.getsockname()[1]

    def listed(self, name, alive=True):
        return {"NodeID": name, "Alive": alive, "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": self.port}

    def fall_silent(self):
        """Let nobody in any more, and refuse nobody: the next who knock are left waiting."""
        self._socket.listen(0)
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", self.port))
            self._waiting.append(one)

    def close(self):
        for one in [*self._waiting, self._socket]:
            one.close()


@pytest.fixture
def server(request):
    def make():
        made = Server()
        request.addfinalizer(made.close)
        return made

    return make


class AwayHead:
    """Keeps the thread from asking Ray: the test says what is listed."""

    is_reached, address = True, ""

    def may_be_asked(self):
        return False


@pytest.fixture
def nodes(monkeypatch):
    monkeypatch.setattr(ray_nodes, "ANSWER_WITHIN_SECONDS", 0.2)
    watched = Nodes(AwayHead())
    watched.look_closely()
    yield watched
    watched.close()


def verdict(nodes, node):
    """On a shard whose worker on this node died six seconds ago."""
    now = time.monotonic()
    return fault_of(Death(shards=1, node=node, began=now - 60, died=now - 6), nodes, now)


def test_a_node_that_keeps_silent_is_not_taken_for_one_that_stays(nodes, server):
    stays, silent = server(), server()
    silent.fall_silent()
    listed = [stays.listed("stays"), silent.listed("silent")]
    nodes._see(listed, first=False)
    assert {node: verdict(nodes, node) for node in ("stays", "silent", None)} == {
        "stays": Fault.OWN,
        "silent": Fault.OPEN,  # a second question is under way
        None: Fault.OPEN,
    }
    nodes._see(listed, first=False)
    assert {node: verdict(nodes, node) for node in ("stays", "silent", None)} == {
        "stays": Fault.OWN,
        "silent": Fault.NOBODY,
        None: Fault.NOBODY,
    }


def test_a_node_that_ray_never_missed_was_not_lost(nodes, server):
    listed = [server().listed("back"), server().listed("gone", alive=False), server().listed("new")]
    long_ago, just_now = time.monotonic() - NOTICED_WITHIN_SECONDS - 1, time.monotonic()
    nodes._lost.update(back=long_ago, gone=long_ago, new=just_now)
    nodes._see(listed, first=False)
    assert [nodes.is_lost(node) for node in ("back", "gone", "new")] == [False, True, True]


def test_a_node_that_was_taken_for_lost_by_mistake_is_not_so_again(nodes, server):
    stays, out_of_reach = server(), server()
    out_of_reach.fall_silent()
    listed = [stays.listed("stays"), out_of_reach.listed("out of reach")]
    nodes._lost["out of reach"] = time.monotonic() - NOTICED_WITHIN_SECONDS - 1
    for _ in range(3):
        nodes._see(listed, first=False)
    assert not nodes.is_lost("out of reach")
    assert verdict(nodes, None) is Fault.OPEN, "Ray's own time counts"


def test_a_head_that_was_never_reached_may_be_asked_and_one_that_went_may_not(server):
    reached, never = server(), server()
    never.close()
    heads = [Head(f"127.0.0.1:{one.port}", 5.0) for one in (reached, never)]
    assert [head.may_be_asked() for head in heads] == [True, True]
    reached.close()
    assert [head.may_be_asked() for head in heads] == [False, True]


def test_a_head_is_silent_from_the_first_question_without_an_answer(server, monkeypatch):
    monkeypatch.setattr(ray_nodes, "ASK_HEAD_EVERY_SECONDS", 0.0)
    there = server()
    head = Head(f"127.0.0.1:{there.port}", 0.5)
    time.sleep(0.6)  # in which the driver has something else to do
    there.close()
    assert not head.is_there()
    time.sleep(0.6)
    with pytest.raises(ClusterLost, match="has not answered for 1 s"):
        head.is_there()


def test_no_actor_is_asked_for_on_a_lost_node_that_ray_still_lists(executor):
    """Else every loss raises what a stage asks an autoscaler for: the node that went and the one that came."""
    import ray

    one = executor(cpus=None)
    one._nodes._lost.update({node["NodeID"]: time.monotonic() for node in ray.nodes()})
    one._on_cpus(Squares(), Shards("squares", 40, 3), None)
    assert len(one._cpu_pool.seats) == 1, "only one for which a node may come"


@pytest.mark.parametrize("when", ["before a stage", "during a stage"])
def test_a_head_that_just_went_is_asked_nothing(executor, server, tmp_path, monkeypatch, when):
    """Ray ends a process whose question is not answered, without a word of ours."""
    from raybench.engine import ray_core, ray_flow

    head, one = server(), executor()
    one._head = Head(f"127.0.0.1:{head.port}", 4.0)

    def go_away():
        head.close()
        monkeypatch.setattr(ray_flow, "LOOK_EVERY_SECONDS", 0.0)
        monkeypatch.setattr(ray_core.Machines, "there", lambda *_: pytest.fail("the head was asked"))

    class GoneWithTheFirst(Observer):
        def published(self, receipt):
            go_away()

    if when == "before a stage":
        go_away()
    with pytest.raises(ClusterLost, match="has not answered for 4 s"):
        new_run(tmp_path, one, GoneWithTheFirst()).map(Squares(pause=1.0), 40, 1)


@pytest.mark.parametrize(("given", "ours", "rays"), [(None, 60.0, "120"), ("10", 10.0, "70")])
def test_every_run_of_a_process_waits_as_long_for_the_head_as_the_first(monkeypatch, given, ours, rays):
    if given is None:
        monkeypatch.delenv(RAY_GIVES_UP, raising=False)
    else:
        monkeypatch.setenv(RAY_GIVES_UP, given)
    for _ in range(2):
        with patient_with_head(owned=True) as seconds:
            assert (seconds, os.environ[RAY_GIVES_UP]) == (ours, rays)
        assert os.environ.get(RAY_GIVES_UP) == given
