"""`run.each` and `run.write`: a function is the stage, an item is a shard, and the digest follows by itself."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from raybench.digests import digest_of
from raybench.engine.inline import InlineExecutor
from raybench.engine.items import Each
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import ShardFailed
from raybench.metrics.partials import Rows


@dataclass(frozen=True)
class Named:
    name: str
    values: np.ndarray


ITEMS = (Named("low", np.arange(3)), Named("high", np.arange(7, 9)))


def summed(item, factor):
    return {"sum": np.array([item.values.sum() * factor])}


def negated(item, arrays):
    return {"sum": -arrays["sum"]}


def counted(item, everything):
    return {"shards": np.array([len(everything.shards)])}


def as_text(item, arrays):
    return f"{item.name}={arrays['sum'][0]}\n".encode()


def refused(item):
    raise RuntimeError("the lamp is out")


def rows_of(item):
    return Rows.of(item.values, item.values * 2).to_arrays()


@pytest.fixture
def run(tmp_path):
    return Run(str(tmp_path / "out"), str(tmp_path / "store"), InlineExecutor(Observer()), Observer())


def test_each_item_is_one_shard_in_the_items_order(run):
    found = run.each(summed, ITEMS, 10, version=1)
    assert [arrays["sum"].tolist() for arrays in run.read_each(found)] == [[30], [150]]
    assert run.records[0].name == "summed" and run.records[0].computed == 2


def test_what_exists_is_not_computed_again(run):
    run.each(summed, ITEMS, 10, version=1)
    run.each(summed, ITEMS, 10, version=1)
    assert [(record.found, record.computed) for record in run.records] == [(0, 2), (2, 0)]


def test_an_input_that_came_from_each_is_handed_over_item_by_item(run):
    found = run.each(negated, ITEMS, run.each(summed, ITEMS, 1, version=1), version=1)
    assert [arrays["sum"].tolist() for arrays in run.read_each(found)] == [[-3], [-15]]


def test_an_input_that_came_from_each_may_be_handed_over_whole(run):
    found = run.each(counted, ["one"], run.each(summed, ITEMS, 1, version=1).whole, version=1)
    assert run.read(found, 0)["shards"].tolist() == [2]


def test_an_input_of_other_items_is_refused(run):
    with pytest.raises(ValueError, match="summed has 2 items, not 1"):
        run.each(negated, ITEMS[:1], run.each(summed, ITEMS, 1, version=1), version=1)


def test_what_each_leaves_folds_as_any_mapped_stage_does(run):
    folded = run.fold(run.each(rows_of, ITEMS, version=1), Rows)
    assert run.read(folded, 0)["values"].tolist() == [0, 2, 4, 14, 16]


def test_the_digest_covers_function_version_items_and_inputs():
    asked = Each(summed, ITEMS, (10,), version=1)
    other_item = (ITEMS[0], replace(ITEMS[1], values=np.arange(7, 10)))
    others = [
        replace(asked, function=negated),
        replace(asked, version=2),
        replace(asked, items=other_item),
        replace(asked, items=ITEMS[:1]),
        replace(asked, inputs=(11,)),
        replace(asked, inputs=(10, "more")),
    ]
    assert replace(asked).digest == asked.digest
    assert len({asked.digest, *(other.digest for other in others)}) == len(others) + 1


def test_a_thing_with_a_digest_counts_by_it_and_a_dataclass_by_its_fields():
    @dataclass(frozen=True)
    class Digested:
        place: str
        digest: str

    assert digest_of(Digested("here", "abc")) == digest_of(Digested("there", "abc"))
    assert digest_of(Digested("here", "abc")) != digest_of(Digested("here", "abd"))
    assert digest_of(Named("a", np.arange(2))) == digest_of(Named("a", np.arange(2)))
    assert digest_of(Named("a", np.arange(2))) != digest_of(Named("a", np.arange(2.0)))
    assert digest_of(range(2)) != digest_of(slice(2))


def test_a_failure_names_stage_and_item(run):
    with pytest.raises(ShardFailed, match=r"stage refused, shard 0 \(low\).*the lamp is out"):
        run.each(refused, ITEMS, version=1)


def test_write_leaves_one_file_per_item_and_records_it(run, tmp_path):
    run.write("sums/{name}-{item.values.size}.txt", as_text, ITEMS, run.each(summed, ITEMS, 1, version=1))
    assert run.files == ["sums/low-3.txt", "sums/high-2.txt"]
    assert [(tmp_path / "out" / name).read_text() for name in run.files] == ["low=3\n", "high=15\n"]
