"""Scores of pairs: however a set is cut and in whatever order parts arrive, the fold is the same."""

import numpy as np
import pytest
from conftest import GOLDEN
from hypothesis import given
from hypothesis import strategies as st

from raybench.benchmarks.tss import trees
from raybench.benchmarks.tss.scoring import PairScores, Rules, ScorePairs
from raybench.engine.shards import plan


def scores(index):
    index = np.array(index, np.int64)
    values = index[:, None, None] + np.arange(102).reshape(1, 2, 51) / 1000
    states = np.stack([index % 2, index % 4], 1).astype(np.int8)
    return PairScores(index, values, states, np.array([f"problem {i}" if i % 3 == 0 else "" for i in index]))


def same(a, b):
    one, other = a.to_arrays(), b.to_arrays()
    return all(np.array_equal(one[name], other[name]) for name in one)


@given(st.permutations(range(12)), st.lists(st.integers(1, 11), max_size=4, unique=True))
def test_the_fold_does_not_depend_on_cuts_or_order(order, cuts):
    parts = [scores(part) for part in np.split(np.array(order), sorted(cuts))]
    merged = PairScores.merged(parts)
    assert same(merged, scores(range(12)))
    nested = PairScores.merged([PairScores.merged(parts[:2]), *parts[2:]])
    assert same(nested, merged)


def test_a_pair_that_comes_twice_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        PairScores.merged([scores([0, 1]), scores([1, 2])])


def stage(**rules):
    data = GOLDEN / "tss/data"
    true, found = trees.list_truth(str(data / "Dataset")), trees.list_results(str(data / "Results"))
    names = list(true.files)
    truth = trees.TruthTree.of(true, list(trees.look_at_truth(true, names, False).values()), False)
    results = trees.ResultsTree.of(found, trees.look_at_results(found, names), False)
    return ScorePairs(truth, results, Rules(**rules))


def test_every_cut_of_the_plan_gives_the_same_scores():
    folded = []
    for size in (1, 3, 10):
        made = stage()
        parts = [PairScores.from_arrays(made.compute(made.load(shard))) for shard in plan("x", 10, size)]
        folded.append(PairScores.merged(parts[::-1]))
    assert same(folded[0], folded[1]) and same(folded[1], folded[2])
    assert not folded[0].problems.any()


def test_the_digest_knows_rules_pairs_and_files():
    plain = stage().digest
    assert plain == stage().digest
    assert (
        len(
            {plain, *(stage(**rules).digest for rules in ({"tool": "matlab"}, {"auto_flip": True}, {"use_prec": True}))}
        )
        == 4
    )
