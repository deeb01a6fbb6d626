"""Scores of pairs as a step: each pair by itself, in the order of the truth; the digest knows what they rest on."""

import numpy as np
from conftest import GOLDEN
from vector_stages import inline_run

from raybench.benchmarks.tss import trees
from raybench.benchmarks.tss.scoring import Rules, read_and_score, score_pair, score_pairs
from raybench.engine.items import Each


def opened(pairs=None):
    data = GOLDEN / "tss/data"
    true, found = trees.list_truth(str(data / "Dataset")), trees.list_results(str(data / "Results"))
    names = list(true.files)[:pairs]
    truth = trees.TruthTree.of(true, list(trees.look_at_truth(true, names, False).values()), False)
    return truth, trees.ResultsTree.of(found, trees.look_at_results(found, names), False)


def test_every_pair_has_its_own_scores_in_order(tmp_path):
    truth, results = opened()
    found = score_pairs(inline_run(tmp_path), truth, results, Rules())
    assert found.values.shape == (len(truth.pairs), 2, 51) and len(truth.pairs) == 10
    assert not found.problems.any()
    for pair, values, states in zip(truth.pairs, found.values, found.states, strict=True):
        alone = score_pair(truth.read(pair), results.read(pair), Rules())
        assert np.array_equal(values, alone.values)
        assert states.tolist() == [alone.flow_state, alone.mask_state]


def digest(pairs=None, **rules):
    truth, results = opened(pairs)
    return Each(read_and_score, truth.pairs, (truth, results, Rules(**rules)), version=1).digest


def test_the_digest_knows_rules_pairs_and_files():
    others = [digest(**rules) for rules in ({"tool": "matlab"}, {"auto_flip": True}, {"use_prec": True})]
    assert digest() == digest()
    assert len({digest(), digest(pairs=9), *others}) == 5
