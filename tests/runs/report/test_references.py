"""Published rows stand beside a run's own, and say whether they may be compared."""

import pytest

from raybench.runs.report.comparable import VERDICTS, copydays, disc2021, hpatches, revisited
from raybench.runs.report.references import ROWS, published

FULL_DISC = {
    "splits": {"full": 116},
    "queries": 50_000,
    "references": 1_000_000,
    "k": 10,
    "candidates": "knn",
    "variants": {("Flat", "None"), ("PCAW512,L2norm,Flat", "1.00[0,2]")},
    "distractors": 10_000,
    "codecs": {"PCAW512,L2norm,Flat"},
    "pairs": {"JODS": 81, "FG3DCar": 2},
    "sets": {"roxford5k": (70, 4_993), "own": (3, 9)},
}


@pytest.mark.parametrize("benchmark", ROWS)
def test_every_row_has_a_source_and_a_verdict_with_a_reason(benchmark):
    table = published(benchmark, FULL_DISC)
    assert len(table.rows) >= 6
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        assert "/" in cells["source"] or "." in cells["source"]
        assert 0 < cells["value"] <= 1
        assert cells["comparable"].startswith(("yes: ", "no, because "))


def test_only_rows_of_the_same_protocol_and_split_are_comparable():
    def verdict(benchmark, stated, metric, splits):
        return hpatches(benchmark, {"split_or_set": stated, "metric": metric}, {"splits": splits})

    assert verdict("hpatches-matching", "full", "mAP_percent", {"full": 116, "a": 40}).startswith("yes")
    assert verdict("hpatches-matching", "full", "mAP_percent", {"a": 40}).startswith("no")
    assert "116 sequences of split full; this run has 8" in verdict(
        "hpatches-matching", "full", "mAP_percent", {"full": 8}
    )
    assert verdict("hbench-matching", "full", "mAP_percent", {"full": 116}).startswith("no")
    assert "not stated" in verdict("hpatches-verification", "split not stated", "mAP_percent_mean", {"full": 116})
    assert "pool" in verdict("hpatches-retrieval", "full", "mAP_percent", {"full": 116})
    assert "assumed" in verdict("hpatches-matching", "full (assumed; same plot series)", "mAP_percent", {"full": 116})


def test_a_disc_row_is_comparable_only_with_its_images_candidates_codec_and_norm():
    row = {
        "benchmark": "disc2021",
        "split_or_set": "val (dev) 50k queries x 1M refs, k=10/query",
        "metric": "uAP [codec=Flat; score_norm=None]",
    }
    assert disc2021("disc2021", row, FULL_DISC).startswith("yes")
    assert "160" in disc2021("disc2021", row, {**FULL_DISC, "references": 160})
    assert "global" in disc2021("disc2021", row, {**FULL_DISC, "candidates": "global"})
    assert "k = 5" in disc2021("disc2021", row, {**FULL_DISC, "k": 5})
    assert "no row" in disc2021("disc2021", {**row, "metric": "uAP [codec=Flat; score_norm=1.00[0,2]]"}, FULL_DISC)


def test_a_copydays_row_is_comparable_only_with_as_many_images_and_the_same_codec():
    row = {"split_or_set": "strong + 10k", "metric": "strong_mAP [codec=PCAW512,L2norm,Flat]"}
    facts = {"queries": 3_212, "distractors": 10_000, "codecs": {"PCAW512,L2norm,Flat"}}
    assert copydays("copydays", row, facts).startswith("yes")
    assert "150" in copydays("copydays", row, {**facts, "distractors": 150})
    assert "no row" in copydays("copydays", row, {**facts, "codecs": {"Flat"}})


def test_a_row_of_revisited_is_comparable_only_with_the_whole_set():
    row = {"split_or_set": "roxford5k, hard", "metric": "mp_at_10_percent"}
    assert revisited("revisited", row, FULL_DISC) == "yes: mp_at_10 of roxford5k, hard"
    assert "10 and 4,993" in revisited("revisited", row, {"sets": {"roxford5k": (10, 4_993)}})
    assert "this run has own" in revisited("revisited", row, {"sets": {"own": (70, 4_993)}})


def test_the_rows_of_revisited_are_those_that_the_tool_prints_for_its_example():
    rows = [row for row in published("revisited", FULL_DISC).rows if "example" in row[0]]
    percent = {row[1]: round(100 * row[3], 2) for row in rows if row[2] == "map_percent"}
    assert [percent[f"roxford5k, {setup}"] for setup in ("easy", "medium", "hard")] == [84.81, 64.67, 38.47]
    assert [percent[f"rparis6k, {setup}"] for setup in ("easy", "medium", "hard")] == [92.12, 77.2, 56.32]


@pytest.mark.parametrize("benchmark", ["disc2021", "hpatches-matching", "copydays", "revisited"])
def test_no_row_is_comparable_with_descriptors_of_another_arithmetic(benchmark):
    facts = {**FULL_DISC, "queries": 3_212} if benchmark == "copydays" else FULL_DISC
    exact, fast = (published(benchmark, {**facts, "precision": words}).rows for words in ("", "float16, torch.compile"))
    assert any(row[4].startswith("yes") for row in exact)
    assert all(row[4].startswith("no") for row in fast)
    assert any("computed by float16, torch.compile, not in exact float32" in row[4] for row in fast)


def test_comparable_rows_come_first_and_unknown_benchmarks_have_none():
    verdicts = [row[4][:2] for row in published("hpatches-matching", {"splits": {"full": 116}}).rows]
    assert verdicts == sorted(verdicts, reverse=True)
    assert verdicts[0] == "ye"
    assert published("unknown", {}) is None


def test_whoever_has_rows_has_a_verdict():
    assert VERDICTS.keys() == ROWS.keys()
