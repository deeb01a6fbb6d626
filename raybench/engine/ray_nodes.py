"""What the driver knows of Ray's nodes: which are lost, which are about to be taken away; and whether the head answers.

Ray itself lists a lost node as alive for 15 s and more. The node's own server, the raylet, refuses connections at once:
where nodes can be reached from here at all, one that can't be is lost.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from raybench.engine.blame import NOTICED_WITHIN_SECONDS, VERDICT_SECONDS
from raybench.engine.patience import in_words
from raybench.errors import ClusterLost
from raybench.parallel import in_parallel

LOOK_EVERY_SECONDS = 5.0
LOOK_CLOSELY_EVERY_SECONDS = 0.5
ANSWER_WITHIN_SECONDS = 2.0
ASK_HEAD_EVERY_SECONDS = 2.0
RAY_GIVES_UP = "RAY_gcs_rpc_server_reconnect_timeout_s"  # after so long without its head Ray ends the process, unasked
RAYS_OWN_SECONDS = 60.0
LATER_THAN_OURS_SECONDS = 60.0


class Nodes:
    """The nodes as a thread sees them: every few seconds, and twice per second for a while after a worker died."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._lost: dict[str, float] = {}  # by node, when it was noticed
        self._draining: frozenset[str] = frozenset()
        self._reaches = False  # nodes from here; not so from outside of a cluster's network
        self._silent_once: set[str] = set()
        self._silent_for_nothing: set[str] = set()  # once taken for lost, and were not
        self._answered: dict[str, float] = {}  # by node, when it was last asked with success
        self._all_answered = float("-inf")  # when all of them were
        self._close_look_until = 0.0
        self._wanted, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._watch, name="raybench-nodes", daemon=True)
        self._thread.start()

    @property
    def draining(self) -> frozenset[str]:
        """Nodes on which nothing new should start: they are to be taken away."""
        return self._draining

    def outlived(self, node: str | None, died: float, now: float) -> bool:
        """Whether it is settled by now that this node (None: any) outlived a worker that died at that moment.

        A machine that is switched off drops what is sent to it: silence is no answer, however long a question takes.
        """
        answered = self._all_answered if node is None else self._answered.get(node, float("-inf"))
        return answered >= died + VERDICT_SECONDS or now - died >= NOTICED_WITHIN_SECONDS

    def is_lost(self, node: str) -> bool:
        return node in self._lost

    def leaves(self, node: str) -> bool:
        """Whether this node is lost, or about to be taken away."""
        return node in self._lost or node in self._draining

    def any_left_since(self, moment: float) -> bool:
        """Whether any node was found to be lost since then."""
        return any(noticed >= moment for noticed in list(self._lost.values()))

    def look_closely(self) -> None:
        """Something died: find out soon whether its node did."""
        now = time.monotonic()
        is_first = now >= self._close_look_until
        self._close_look_until = now + 2 * VERDICT_SECONDS
        if is_first:
            self._wanted.set()

    def close(self) -> None:
        """End the thread before Ray ends; one that hangs in a question to a lost head is left behind."""
        self._ended.set()
        self._wanted.set()
        self._thread.join(ANSWER_WITHIN_SECONDS)

    def _watch(self) -> None:
        first = True
        while not self._ended.is_set():
            if self._head.may_be_asked():
                try:
                    self._look(first)
                    first = False
                except Exception:  # noqa: BLE001 (a Ray that is about to end; whoever works notices it)
                    time.sleep(LOOK_CLOSELY_EVERY_SECONDS)
            self._wanted.clear()  # before it is looked whether somebody wants it: a wish is heard here or there
            close = time.monotonic() < self._close_look_until
            self._wanted.wait(LOOK_CLOSELY_EVERY_SECONDS if close else LOOK_EVERY_SECONDS)

    def _look(self, first: bool) -> None:
        listed = ray.nodes()
        self._see(listed, first)
        if not first and self._head.is_reached:  # the module it needs takes a while to import: short runs do without
            self._draining = _draining(self._head.address) & {node["NodeID"] for node in listed if node["Alive"]}

    def _see(self, listed: list[dict[str, Any]], first: bool) -> None:
        """What Ray lists, and which of these nodes answer. One that Ray never missed was silent for a while only."""
        now = time.monotonic()
        for node in listed:
            known = node["NodeID"]
            if not node["Alive"]:
                self._lost.setdefault(known, float("-inf") if first else now)
            elif now - self._lost.get(known, now) >= NOTICED_WITHIN_SECONDS:
                del self._lost[known]
                self._silent_for_nothing.add(known)
        self._probe([node for node in listed if node["Alive"] and node["NodeID"] not in self._lost])

    def _probe(self, alive: list[dict[str, Any]]) -> None:
        """Connect to all nodes while it matters whether one is lost, and until it is known that they can be reached."""
        asked = time.monotonic()
        if self._reaches and asked >= self._close_look_until:
            return
        answers = in_parallel(lambda node: _connects(node["NodeManagerAddress"], node["NodeManagerPort"]), alive)
        self._reaches = self._reaches or any(answers)
        silent = {node["NodeID"] for node, answered in zip(alive, answers, strict=True) if not answered}
        if self._reaches:
            for node in (silent & self._silent_once) - self._silent_for_nothing:
                self._lost[node] = time.monotonic()
        self._silent_once = silent
        self._answered = {node["NodeID"]: asked for node in alive if node["NodeID"] not in silent}
        self._all_answered = self._all_answered if silent else asked


class Head:
    """The head of the cluster, which must answer. `seconds`: for how long it may not, before the run ends."""

    def __init__(self, address: str, seconds: float) -> None:
        self.address, self._seconds = address, seconds
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self.is_reached = self._answered = self._answers()  # where it never is, as behind a proxy, silence says nothing
        self._asked = time.monotonic()
        self._silent_since: float | None = None

    def may_be_asked(self) -> bool:
        """Whether a question comes back, as far as can be told: of a head that is gone it ends the process instead."""
        return not self.is_reached or self._answers()

    def wait_for(self) -> None:
        """Return once the head may be asked; raises ClusterLost if it is silent for too long."""
        while not (self.is_there() and self.may_be_asked()):
            time.sleep(LOOK_CLOSELY_EVERY_SECONDS)

    def _answers(self) -> bool:
        return _connects(self._host, self._port)

    def is_there(self) -> bool:
        """Whether the head answered a moment ago; raises ClusterLost if it is silent for too long."""
        now = time.monotonic()
        if self.is_reached and now - self._asked >= ASK_HEAD_EVERY_SECONDS:
            self._asked, self._answered = now, self._answers()
            # Not since its last answer: the driver may have had something else to do for an hour.
            self._silent_since = None if self._answered else self._silent_since or now
        silent = 0.0 if self._silent_since is None else now - self._silent_since
        if silent >= self._seconds:
            raise ClusterLost(
                f"Ray's head at {self.address} has not answered for {in_words(silent)}: the cluster is lost; "
                "start one again (--ray ADDRESS)"
            )
        return self._answered or not self.is_reached


@contextmanager
def patient_with_head(owned: bool) -> Iterator[float]:
    """For how long a head may be silent; a Ray that comes up in the block ends the process for that reason later."""
    before = os.environ.get(RAY_GIVES_UP)
    given = float(before or RAYS_OWN_SECONDS)
    if not owned:
        yield max(given - 2 * VERDICT_SECONDS, 1.0)
        return
    os.environ[RAY_GIVES_UP] = str(int(given + LATER_THAN_OURS_SECONDS))
    try:
        yield given
    finally:  # the next run in this process finds what the user set
        os.environ.pop(RAY_GIVES_UP)
        if before is not None:
            os.environ[RAY_GIVES_UP] = before


def _draining(address: str) -> frozenset[str]:
    from ray.autoscaler.v2.sdk import get_cluster_status

    status = get_cluster_status(address)
    nodes = [*status.active_nodes, *status.idle_nodes]
    return frozenset(str(node.node_id) for node in nodes if node.node_status == "DRAINING")


def _connects(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=ANSWER_WITHIN_SECONDS).close()
    except OSError:
        return False
    return True
