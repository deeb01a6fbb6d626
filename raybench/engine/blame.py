"""Whose fault it is that a worker died with shards in it: a shard's own, nobody's, or too early to tell.

Plain facts in, a verdict out; no Ray. A node that is lost or leaves is nobody's fault. It is often seen later than the
death of its workers, so a verdict stays open for some seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

# A node that still answers so long after the death stays: its own server refuses connections as soon as it is gone, and
# is asked twice per second meanwhile. Where it can't be reached, Ray's own time counts.
VERDICT_SECONDS = 5.0
NOTICED_WITHIN_SECONDS = 30.0  # Ray sends work to a lost node until it misses it: 15 s measured, half a minute at most


class Fault(Enum):
    """The verdict on a death."""

    OPEN = "too early to tell"
    NOBODY = "its node was lost, or leaves"
    SUSPECTS = "one of several shards: which can't be told, so each runs alone from now on"
    OWN = "the shard was alone with a worker that died on a node that stays"


@dataclass(frozen=True)
class Death:
    """What is known of a process that ended. `node` is None where Ray does not say on which it was.

    `began`: when it was given its work. `preempted`: Ray itself says that the node was taken away.
    """

    shards: int
    node: str | None
    began: float
    died: float
    preempted: bool = False
    out_of_memory: bool = False


class NodesSeen(Protocol):
    """What is known of nodes."""

    def outlived(self, node: str | None, died: float, now: float) -> bool:
        """Whether it is settled by now that this node (None: any) outlived a worker that died at that moment."""
        ...

    def leaves(self, node: str) -> bool:
        """Whether this node is lost, or about to be taken away."""
        ...

    def any_left_since(self, moment: float) -> bool:
        """Whether any node was found to be lost since then."""
        ...


def fault_of(death: Death, nodes: NodesSeen, now: float) -> Fault:
    """The verdict. A kill for want of memory is done by a node that is there: no need to wait for its own end."""
    if death.preempted or node_left(death.node, death.began, nodes):
        return Fault.NOBODY
    if not death.out_of_memory and not nodes.outlived(death.node, death.died, now):
        return Fault.OPEN
    return Fault.OWN if death.shards == 1 else Fault.SUSPECTS


def node_left(node: str | None, began: float, nodes: NodesSeen) -> bool:
    """Whether the node went; of an unknown one, whether any went that might have been it."""
    if node is not None:
        return nodes.leaves(node)
    return nodes.any_left_since(began - NOTICED_WITHIN_SECONDS)
