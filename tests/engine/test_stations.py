"""Shards pass through a worker's three stations at the same time, each with its own errors, and few at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest

from raybench.engine.shards import Shard, Shards
from raybench.engine.stages import Loaded, Place
from raybench.engine.stations import PUBLISHED_AT_ONCE, Stations

PARTS = ("load", "compute", "publish")
HELD = ("loaded", "computed")  # shards whose payload, whose arrays the worker holds


@dataclass
class Watched:
    """A stage and its sink, of which each part may be held up for a shard, and fail for another."""

    fails: tuple[str, int] = ("", -1)
    held: dict[tuple[str, int], threading.Event] = field(default_factory=dict)
    begun: dict[tuple[str, int], threading.Event] = field(default_factory=dict)
    counting: threading.Lock = field(default_factory=threading.Lock)
    inside: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS + HELD, 0))
    most: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS + HELD, 0))
    threads: set[int] = field(default_factory=set)
    published: list[int] = field(default_factory=list)

    name = "watched"
    digest = "watched"
    on_device = False

    def hold(self, part: str, *shards: int) -> None:
        self.held.update({(part, shard): threading.Event() for shard in shards})
        self.begun.update({(part, shard): threading.Event() for shard in shards})

    def load(self, shard: Shard) -> int:
        with self._in("load", shard.index):
            return shard.index

    def compute(self, payload: int) -> dict[str, np.ndarray]:
        self.threads.add(threading.get_ident())
        with self._in("compute", payload):
            return {"number": np.array([payload])}

    def publish(self, shard: Shard, arrays: dict[str, np.ndarray]) -> int:
        assert arrays["number"].tolist() == [shard.index]
        with self._in("publish", shard.index):
            self.published.append(shard.index)
        return 1

    def keys(self, shard: Shard) -> str:
        return str(shard.index)

    def count(self, what: str, change: int) -> None:
        with self.counting:
            self.inside[what] += change
            self.most[what] = max(self.most[what], self.inside[what])

    def _in(self, part: str, shard: int) -> "Inside":
        return Inside(self, part, shard)


@dataclass
class Inside:
    stage: Watched
    part: str
    shard: int

    def __enter__(self) -> None:
        stage, key = self.stage, (self.part, self.shard)
        stage.count(self.part, 1)
        if key in stage.held:
            stage.begun[key].set()
            assert stage.held[key].wait(30), f"nobody let {key} go"

    def __exit__(self, *_: object) -> None:
        self.stage.count(self.part, -1)
        before, behind = dict(zip(PARTS, (None, *HELD), strict=True)), dict(zip(PARTS, (*HELD, None), strict=True))
        for what, change in ((before[self.part], -1), (behind[self.part], 1)):
            if what is not None:
                self.stage.count(what, change)
        if self.stage.fails == (self.part, self.shard):
            raise RuntimeError(f"{self.part} of {self.shard}")


@pytest.fixture
def bring():
    """Shards brought to the stations of one worker, each by a thread of its own; gives a future for each."""
    stations = Stations(Place.here())
    with ThreadPoolExecutor(16) as threads:
        yield lambda stage, count, loaded=None: [
            threads.submit(stations.pass_through, stage, shard, stage, loaded) for shard in Shards(stage.name, count, 1)
        ]


def test_a_shard_is_loaded_while_one_is_computed_and_one_is_published(bring):
    stage = Watched()
    stage.hold("publish", *range(3))
    stage.hold("compute", *range(3))
    stage.hold("load", *range(3))
    passing = bring(stage, 3)

    def begun(part):
        """The shard that is held in this part; each is in one part at a time."""
        while True:
            for shard in range(3):
                if stage.begun[part, shard].is_set() and not stage.held[part, shard].is_set():
                    return shard
            time.sleep(0.001)

    first = begun("load")
    stage.held["load", first].set()
    assert begun("compute") == first
    second = begun("load")
    stage.held["compute", first].set()
    assert begun("publish") == first
    stage.held["load", second].set()
    assert begun("compute") == second
    third = begun("load")
    assert {first, second, third} == {0, 1, 2}  # all three at once: published, computed, loaded
    assert [stage.inside[part] for part in PARTS] == [1, 1, 1]
    for event in stage.held.values():
        event.set()
    assert sorted(future.result(30).index for future in passing) == [0, 1, 2]


@pytest.mark.parametrize("slow", PARTS)
def test_a_worker_holds_few_shards_whichever_part_is_slow(bring, slow):
    stage = Watched()
    stage.hold(slow, *range(10))
    passing = bring(stage, 10)
    for event in stage.held.values():
        event.set()
    for future in passing:
        future.result(30)
    assert stage.most["load"] == stage.most["compute"] == 1
    assert stage.most["publish"] <= PUBLISHED_AT_ONCE
    assert stage.most["loaded"] <= 2  # one that waits, one that is computed
    assert stage.most["computed"] <= PUBLISHED_AT_ONCE + 1


@pytest.mark.parametrize("part", PARTS)
def test_an_error_is_that_of_its_shard_and_the_others_go_on(bring, part):
    stage = Watched(fails=(part, 2))
    passing = bring(stage, 6)
    with pytest.raises(RuntimeError, match=f"{part} of 2"):
        passing[2].result(30)
    assert [future.result(30).index for place, future in enumerate(passing) if place != 2] == [0, 1, 3, 4, 5]


def test_every_shard_is_computed_in_one_thread(bring):
    stage = Watched()
    for future in bring(stage, 8):
        future.result(30)
    assert len(stage.threads) == 1
    assert threading.get_ident() not in stage.threads


def test_what_was_loaded_elsewhere_is_not_loaded_again(bring):
    stage = Watched()
    elsewhere = Place("task", 1, "another node", "cpu")
    (future,) = bring(stage, 1, Loaded(0, elsewhere, 5.0, 2.5))
    receipt = future.result(30)
    assert stage.most["load"] == 0
    assert (receipt.loader, receipt.started, receipt.load_seconds) == (elsewhere, 5.0, 2.5)
