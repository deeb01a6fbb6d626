"""Published rows stand beside a run's own, and say whether they may be compared."""

import pytest

from raybench.report.references import TASKS, comparable, published


@pytest.mark.parametrize("benchmark", TASKS)
def test_every_row_has_a_source_and_a_verdict_with_a_reason(benchmark):
    table = published(benchmark, ["full"])
    assert len(table.rows) >= 15
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        assert "/" in cells["source"]
        assert 0 < cells["value"] < 1
        assert cells["comparable"].startswith(("yes: ", "no, because "))


def test_only_rows_of_the_same_protocol_and_split_are_comparable():
    assert comparable("hpatches-matching", "full", "mAP_percent", {"full", "a"}).startswith("yes")
    assert comparable("hpatches-matching", "full", "mAP_percent", {"a"}).startswith("no")
    assert comparable("hbench-matching", "full", "mAP_percent", {"full"}).startswith("no")
    assert "not stated" in comparable("hpatches-verification", "split not stated", "mAP_percent_mean", {"full"})
    assert "pool" in comparable("hpatches-retrieval", "full", "mAP_percent", {"full"})
    assert "assumed" in comparable("hpatches-matching", "full (assumed; same plot series)", "mAP_percent", {"full"})


def test_comparable_rows_come_first_and_unknown_benchmarks_have_none():
    verdicts = [row[4][:2] for row in published("hpatches-matching", ["full"]).rows]
    assert verdicts == sorted(verdicts, reverse=True)
    assert verdicts[0] == "ye"
    assert published("tss", []) is None
