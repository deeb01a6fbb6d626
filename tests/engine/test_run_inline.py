"""Run with the inline executor on a small numpy stage: what is there stays, what is missing or broken is mapped."""

import json
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from damages import LISTED, UNLISTED, Damage, array_flipped, cut_short, swapped

from raybench.digests import digest_of
from raybench.engine.inline import InlineExecutor
from raybench.engine.items import Each
from raybench.engine.progress import Observer
from raybench.engine.receipts import Receipts
from raybench.engine.run import FAN_IN, MOST_REPAIRS, Run
from raybench.engine.shards import Shard, Shards
from raybench.engine.stages import Mapped
from raybench.errors import DataError, ShardFailed
from raybench.metrics.partials import Rows


@dataclass(frozen=True)
class Squares:
    """Item i becomes i². Leaves a line in `log` for each shard it computes."""

    log: Path

    name = "squares"
    on_device = False
    digest = digest_of("squares")

    def load(self, shard: Shard) -> Shard:
        return shard

    def compute(self, payload: Shard) -> dict[str, np.ndarray]:
        with self.log.open("a") as log:
            log.write(f"{payload.index}\n")
        items = np.arange(payload.start, payload.stop)
        return Rows.of(items, items**2).to_arrays()

    def keys(self, shard: Shard) -> str:
        return f"items {shard.start}..{shard.stop - 1}"

    @property
    def computed(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split()] if self.log.exists() else []


@dataclass(frozen=True)
class Failing(Squares):
    """Squares whose given shard raises the first `times` times it is computed."""

    shard: int = 1
    times: int = 99
    error: type[Exception] = RuntimeError

    def compute(self, payload: Shard) -> dict[str, np.ndarray]:
        arrays = super().compute(payload)
        if payload.index == self.shard and self.computed.count(self.shard) <= self.times:
            raise self.error("the lamp is out")
        return arrays


@dataclass(frozen=True)
class Total:
    """One shard: the sum over everything in `mapped`; breaks one of its files before it reads, if told to."""

    mapped: Mapped
    break_first: bool = False

    name = "total"
    on_device = False
    digest = digest_of("total")

    def load(self, shard: Shard) -> int:
        if self.break_first:
            Path(self.mapped.uri(0)).write_bytes(b"broken")
        return sum(int(self.mapped.read(index)["values"].sum()) for index in range(len(self.mapped.shards)))

    def compute(self, payload: int) -> dict[str, np.ndarray]:
        return {"total": np.array([payload])}

    def keys(self, shard: Shard) -> str:
        return "all"


class Notes(Observer):
    """Keeps what was said and how often something was tried again."""

    def __init__(self) -> None:
        self.said_lines: list[str] = []
        self.retries: list[str] = []

    def said(self, message: str) -> None:
        self.said_lines.append(message)

    def retried(self, stage: str, cause: str) -> None:
        self.retries.append(cause)


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def run(tmp_path, notes) -> Run:
    return Run(str(tmp_path / "out"), str(tmp_path / "store"), InlineExecutor(notes), notes)


@pytest.fixture
def log(tmp_path) -> Path:
    return tmp_path / "log"


def receipts(run: Run, name: str) -> list[dict]:
    return [json.loads(line) for line in (Path(run.out) / "receipts" / name).read_text().splitlines()]


def spoil(path: str, how: Damage = cut_short) -> None:
    how(Path(path), Path(), Path())


def test_every_shard_is_mapped_once_and_reads_back(run, log):
    stage = Squares(log)
    mapped = run.map(stage, 10, 3)
    assert stage.computed == [0, 1, 2, 3]
    assert [value for index in range(4) for value in run.read(mapped, index)["values"]] == [i * i for i in range(10)]


def test_a_second_run_computes_exactly_the_missing_shards(run, log):
    stage = Squares(log)
    mapped = run.map(stage, 20, 3)
    for index in (1, 4, 6):
        Path(mapped.uri(index)).unlink()
    log.unlink()
    run.map(stage, 20, 3)
    assert stage.computed == [1, 4, 6]
    record = run.records[-1]
    assert (record.shards, record.found, record.computed) == (7, 4, 3)


def test_a_finished_stage_is_not_computed_again(run, log):
    stage = Squares(log)
    run.map(stage, 20, 3)
    log.unlink()
    run.map(stage, 20, 3)
    assert stage.computed == []


def test_the_same_shards_computed_again_have_the_same_bytes(run, log):
    mapped = run.map(Squares(log), 10, 3)
    before = Path(mapped.uri(2)).read_bytes()
    Path(mapped.uri(2)).unlink()
    run.map(Squares(log), 10, 3)
    assert Path(mapped.uri(2)).read_bytes() == before


def test_another_shard_size_does_not_share_files(run, log):
    assert run.map(Squares(log), 10, 3).folder != run.map(Squares(log), 10, 4).folder


def test_only_shards_with_wanted_items_are_computed_and_the_rest_can_follow(run, log):
    stage = Squares(log)
    run.map(stage, 20, 3, wanted=[7, 0, 8])
    assert stage.computed == [0, 2]
    run.map(stage, 20, 3)
    assert sorted(stage.computed) == list(range(7))


@pytest.mark.parametrize("size", [1, 2, 3, 70, 100])
def test_the_fold_is_the_same_for_any_number_of_shards(run, log, size):
    folded = run.fold(run.map(Squares(log), 70, size), Rows)
    assert len(folded.shards) == 1
    rows = Rows.from_arrays(run.read(folded, 0))
    assert (rows.index.tolist(), rows.values.tolist()) == (list(range(70)), [i * i for i in range(70)])


def test_a_fold_of_many_files_goes_in_steps_of_fixed_size(run, log):
    run.fold(run.map(Squares(log), FAN_IN + 1, 1), Rows)
    assert [record.shards for record in run.records] == [FAN_IN + 1, 2, 1]


@pytest.mark.parametrize("damage", [*LISTED, *UNLISTED])
def test_a_file_upstream_that_is_damaged_during_a_run_is_mapped_again_and_said(run, notes, log, damage):
    stage = Squares(log)
    mapped, other = run.map(stage, 10, 3), run.map(stage, 10, 2)
    whole = Path(mapped.uri(2)).read_bytes()
    damage(Path(mapped.uri(2)), Path(mapped.uri(3)), Path(other.uri(2)))
    log.unlink()
    total = run.map(Total(mapped), 1, 1)
    assert run.read(total, 0)["total"].tolist() == [sum(i * i for i in range(10))]
    spoilt = [2, 3] if damage is swapped else [2]
    assert stage.computed == spoilt
    assert Path(mapped.uri(2)).read_bytes() == whole
    said = [line for line in notes.said_lines if line.startswith("mapping squares shard ")]
    assert [line.split(" again: ")[0].split()[-1] for line in said] == [str(index) for index in spoilt]
    assert run.records[-1].repaired == len(spoilt)


def test_a_file_of_another_shard_says_which_it_is(run, notes, log):
    mapped = run.map(Squares(log), 10, 3)
    swapped(Path(mapped.uri(1)), Path(mapped.uri(2)), Path())
    run.read(mapped, 1)
    (said,) = notes.said_lines
    assert said.endswith(f"it is {mapped.digest}/000002.shard, not {mapped.digest}/000001.shard")


def test_two_broken_files_upstream_are_both_mapped_again(run, log):
    stage = Squares(log)
    mapped = run.map(stage, 10, 3)
    for index in (0, 3):
        spoil(mapped.uri(index))
    log.unlink()
    total = run.map(Total(mapped), 1, 1)
    assert run.read(total, 0)["total"].tolist() == [285]
    assert stage.computed == [0, 3]


def test_a_broken_file_two_stages_up_is_mapped_again(run, log):
    stage = Squares(log)
    mapped = run.map(stage, 10, 3)
    folded = run.fold(mapped, Rows)
    for handle, index in ((mapped, 1), (folded, 0)):
        spoil(handle.uri(index))
    log.unlink()
    assert run.read(folded, 0)["values"].tolist() == [i * i for i in range(10)]
    assert stage.computed == [1]


def test_a_broken_file_that_the_driver_reads_is_mapped_again(run, log):
    mapped = run.map(Squares(log), 10, 3)
    spoil(mapped.uri(0), array_flipped)
    assert run.read(mapped, 0)["values"].tolist() == [0, 1, 4]


def test_a_repair_is_not_counted_as_an_error_of_the_stage(run, notes, log):
    mapped = run.map(Squares(log), 10, 3)
    spoil(mapped.uri(0))
    run.map(Total(mapped), 1, 1)
    assert notes.retries == ["corrupt"]


def test_a_shard_that_breaks_again_and_again_is_given_up(run, log):
    stage = Squares(log)
    mapped = run.map(stage, 10, 3)
    log.unlink()
    with pytest.raises(ShardFailed, match=f"shard 0 of stage {mapped.digest}.*loses data"):
        run.map(Total(mapped, break_first=True), 1, 1)
    assert stage.computed == [0] * MOST_REPAIRS


def test_a_shard_that_always_fails_is_given_up_after_three_attempts_with_keys_and_cause(run, log):
    stage = Failing(log)
    with pytest.raises(ShardFailed) as caught:
        run.map(stage, 10, 3)
    assert stage.computed == [0, 1, 1, 1]
    expected = "stage squares, shard 1 (items 3..5) failed 3 times; the last cause: RuntimeError: the lamp is out"
    assert str(caught.value) == expected
    assert "in compute" in str(caught.value.__cause__)


def test_what_was_published_before_a_failure_is_found_afterwards(run, log):
    with pytest.raises(ShardFailed):
        run.map(Failing(log, shard=2), 10, 3)
    log.unlink()
    stage = Squares(log)
    run.map(stage, 10, 3)
    assert stage.computed == [2, 3]


def test_a_shard_that_fails_twice_succeeds_with_attempt_three_in_its_receipt(run, notes, log):
    run.map(Failing(log, times=2), 10, 3)
    assert {line["index"]: line["attempt"] for line in receipts(run, "00-squares.jsonl")} == {0: 1, 1: 3, 2: 1, 3: 1}
    assert run.records[-1].attempts == 6
    assert notes.retries == ["error", "error"]


def test_wrong_data_is_raised_at_once_and_not_tried_again(run, notes, log):
    stage = Failing(log, error=DataError)
    with pytest.raises(DataError, match="the lamp is out"):
        run.map(stage, 10, 3)
    assert stage.computed == [0, 1]
    assert notes.retries == []


def test_receipts_tell_items_rows_and_bytes(run, log):
    mapped = run.map(Squares(log), 10, 3)
    lines = receipts(run, "00-squares.jsonl")
    assert [(line["index"], line["items"], line["rows"]) for line in lines] == [
        (0, 3, 3),
        (1, 3, 3),
        (2, 3, 3),
        (3, 1, 1),
    ]
    assert [line["size_bytes"] for line in lines] == [Path(mapped.uri(index)).stat().st_size for index in range(4)]


class Nowhere:
    """A sink that keeps nothing."""

    def publish(self, shard, arrays):
        return 1


@pytest.mark.slow
def test_what_the_driver_keeps_of_a_shard_is_a_few_bytes():
    """Plans, queues and receipts of 10,000 shards, in which nothing is computed."""
    shards = Shards("item", 10_000, 1)
    executor = InlineExecutor(Observer())
    tracemalloc.start()
    with Receipts(shards) as receipts:
        for receipt in executor.map(Each(item_itself, range(10_000), (), version=1), shards, Nowhere()):
            receipts.add(receipt)
        _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert receipts.computed == 10_000
    assert most / 10_000 < 300


def item_itself(item):
    return {"item": np.array([item])}


@dataclass(frozen=True)
class OnFoundDevice(Squares):
    """Squares that says what it found of its device."""

    device_words = "an abacus of 12 beads"


def test_what_a_stage_found_of_its_device_is_in_receipts_and_said_once_but_not_in_the_bytes(run, notes, log):
    plain, found = run.map(Squares(log), 10, 3), run.map(OnFoundDevice(log), 9, 3)
    bodies = [b"".join(array.tobytes() for array in mapped.read(0).values()) for mapped in (plain, found)]
    assert bodies[0] == bodies[1]
    assert {line["worker"]["device"] for line in receipts(run, "00-squares.jsonl")} == {"cpu"}
    assert {line["worker"]["device"] for line in receipts(run, "01-squares.jsonl")} == {"cpu: an abacus of 12 beads"}
    assert len([line for line in notes.said_lines if line.endswith("cpu: an abacus of 12 beads")]) == 1


def letter(item, texts):
    return texts[item].encode()


def test_write_gives_one_file_per_item(run):
    run.write("{name}.txt", letter, ["a/one", "b"], {"a/one": "one", "b": ""})
    assert (Path(run.out) / "a" / "one.txt").read_bytes() == b"one"
    assert (Path(run.out) / "b.txt").read_bytes() == b""


def test_what_write_gives_is_written_again_each_time(run):
    run.write("{name}.txt", letter, ["a"], {"a": "old"})
    run.write("{name}.txt", letter, ["a"], {"a": "new"})
    assert (Path(run.out) / "a.txt").read_bytes() == b"new"


def test_a_run_works_in_memory(notes, log, tmp_path):
    root = f"memory://{tmp_path.name}"
    run = Run(f"{root}/out", f"{root}/store", InlineExecutor(notes), notes)
    folded = run.fold(run.map(Squares(log), 10, 3), Rows)
    assert run.read(folded, 0)["values"].tolist() == [i * i for i in range(10)]
