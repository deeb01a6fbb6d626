"""Figures of Revisited Oxford and Paris equal those of a plain reading of the protocol, ties and extremes included."""

import dataclasses

import numpy as np
import pytest
from vector_stages import inline_run, vector_set

from raybench.benchmarks.images.revisited_figures import SETUPS, RankedSet, extreme_ranks, score_set, set_ties
from raybench.benchmarks.images.revisited_sets import Labelled
from raybench.formats.revisited import EASY, HARD, JUNK
from raybench.metrics.micro_ap import TruePairs
from raybench.search.set_standings import pair_standings

NO_LABEL = 3
QUERIES, REFERENCES, DISTRACTORS = 13, 60, 40


def plain_figures(scores, label, setup):
    """AP, P@1, 5, 10 of one query by the protocol's words: sort, take out junk, walk down; None without a positive."""
    right, junk = SETUPS[setup]
    order = [place for place in np.argsort(-scores, kind="stable").tolist() if label[place] not in junk]
    ranks = [rank for rank, place in enumerate(order) if label[place] in right]
    if not ranks:
        return None
    ap = 0.0
    for number, rank in enumerate(ranks):
        before = number / rank if rank else 1.0
        ap += (before + (number + 1) / (rank + 1)) / 2 / len(ranks)
    depths = [min(k, ranks[-1] + 1) for k in (1, 5, 10)]
    return [ap, *(sum(rank < depth for rank in ranks) / depth for depth in depths)]


def made_up(seed, whole):
    random = np.random.default_rng(seed)
    draw = (lambda shape: random.integers(-2, 3, shape)) if whole else random.standard_normal
    queries, references, distractors = (
        np.asarray(draw((count, 6)), np.float32) for count in (QUERIES, REFERENCES, DISTRACTORS)
    )
    label = random.choice([EASY, HARD, JUNK, NO_LABEL], (QUERIES, REFERENCES), p=[0.1, 0.1, 0.2, 0.6])
    label[0], label[1, label[1] != NO_LABEL] = NO_LABEL, JUNK
    return queries, references, distractors, label


def labelled_of(label):
    query, reference = np.nonzero(label != NO_LABEL)
    names = tuple(f"q{number}" for number in range(len(label)))
    return Labelled(names, TruePairs(query, reference), label[query, reference].astype(np.int8))


def ranked_of(run, queries, sets, label, size=17):
    labelled = labelled_of(label)
    asked = vector_set(run, "queries", queries, 5)
    among = [vector_set(run, f"set {number}", one, size) for number, one in enumerate(sets)]
    return RankedSet("Flat", "x", labelled, pair_standings(run, asked, among, labelled.pairs, "ip"))


@pytest.mark.parametrize("whole", [False, True], ids=["floats", "tied whole numbers"])
@pytest.mark.parametrize("with_distractors", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_figure_is_that_of_a_plain_sort(tmp_path, whole, with_distractors, seed):
    queries, references, distractors, label = made_up(seed, whole)
    sets = [references, distractors] if with_distractors else [references]
    found = score_set(ranked_of(inline_run(tmp_path), queries, sets, label))
    scores = queries.astype(np.float64) @ np.concatenate(sets).astype(np.float64).T
    behind = np.full(scores.shape[1] - REFERENCES, NO_LABEL)
    for number, setup in enumerate(SETUPS):
        for query in range(QUERIES):
            expected = plain_figures(scores[query], np.append(label[query], behind), setup)
            values = found["values"][number, :, query]
            assert values == pytest.approx(expected or [np.nan] * 4, abs=1e-12, nan_ok=True)
            assert found["positives"][number, query] == np.isin(label[query], SETUPS[setup][0]).sum()
            assert found["junk"][number, query] == np.isin(label[query], SETUPS[setup][1]).sum()


@pytest.mark.parametrize("seed", range(4))
def test_extremes_of_ties_are_those_of_a_sort_with_positives_last_and_first(tmp_path, seed):
    queries, references, distractors, label = made_up(seed, whole=True)
    ranked = ranked_of(inline_run(tmp_path), queries, [references, distractors], label)
    scores = queries.astype(np.float64) @ np.concatenate([references, distractors]).astype(np.float64).T
    behind = np.full(DISTRACTORS, NO_LABEL)
    for setup in SETUPS:
        for ranks, sign in zip(extreme_ranks(ranked, setup), (1, -1), strict=True):
            for query in range(QUERIES):
                kinds = np.append(label[query], behind)
                right, junk = (np.isin(kinds, some) for some in SETUPS[setup])
                order = np.lexsort((sign * right, -scores[query]))
                order = order[~junk[order]]
                assert ranks.rank[ranks.query == query].tolist() == np.flatnonzero(right[order]).tolist()
    ends = set_ties(ranked)
    assert np.all(ends["worst"] <= ends["best"]) and ends["tied"].max() > 0


def test_a_distractor_that_is_far_changes_nothing_and_none_raises_ap(tmp_path):
    run = inline_run(tmp_path)
    queries, references, distractors, label = made_up(9, whole=False)
    queries[:, 0] = np.abs(queries[:, 0]) + 1
    before = score_set(ranked_of(run, queries, [references], label))["values"]
    far = np.zeros((3, 6), np.float32)
    far[:, 0] = -1e4
    assert np.array_equal(
        score_set(ranked_of(run, queries, [references, far], label))["values"], before, equal_nan=True
    )
    for number in range(1, DISTRACTORS, 7):
        after = score_set(ranked_of(run, queries, [references, distractors[:number]], label))["values"]
        there = ~np.isnan(before[:, 0])
        assert np.all(after[:, 0][there] <= before[:, 0][there] + 1e-15)


def test_junk_is_as_if_it_were_not_there(tmp_path):
    run = inline_run(tmp_path)
    queries, references, _, label = made_up(3, whole=False)
    label[:, 30:] = JUNK
    with_junk = score_set(ranked_of(run, queries, [references], label))["values"][1]
    without = score_set(ranked_of(run, queries, [references[:30]], label[:, :30]))["values"][1]
    assert np.array_equal(with_junk, without, equal_nan=True)


def test_a_set_without_labels_has_no_figures():
    labelled = Labelled(("a", "b"), TruePairs(np.zeros(0, int), np.zeros(0, int)), np.zeros(0, np.int8))
    found = score_set(RankedSet("Flat", "x", labelled, None))
    assert np.isnan(found["values"]).all() and found["values"].shape == (3, 4, 2)
    assert np.isnan(set_ties(RankedSet("Flat", "x", labelled, None))["worst"]).all()


def test_only_references_are_measured_and_shards_of_distractors_are_read_once(tmp_path):
    run = inline_run(tmp_path)
    queries, references, distractors, label = made_up(2, whole=False)
    one = ranked_of(run, queries, [references], label)
    stages = len(run.records)
    ranked_of(run, queries, [references, distractors], label)
    measured = [record for record in run.records if record.name == "measure-pairs"]
    assert [record.computed > 0 for record in measured] == [True, False]
    assert len(run.records) > stages and dataclasses.is_dataclass(one)
