"""The best pairs are those of a full sort, however they are cut and in whatever order partials come."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.formats import shardfile
from raybench.metrics.top_pairs import TopPairs, worst_of_best

quick = settings(max_examples=100, deadline=None)


@st.composite
def scored_pairs(draw):
    """Distinct pairs with few different scores, so that most are tied."""
    pairs = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique=True, max_size=60))
    scores = [draw(st.integers(-2, 2)) / 2 for _ in pairs]
    return [(query, reference, score) for (query, reference), score in zip(pairs, scores, strict=True)]


def top(triples, most):
    query, reference, score = zip(*triples, strict=True) if triples else ((), (), ())
    return TopPairs.of(np.array(query, np.int64), np.array(reference, np.int64), np.array(score, np.float64), most)


def as_triples(pairs):
    return list(zip(pairs.query.tolist(), pairs.reference.tolist(), pairs.score.tolist(), strict=True))


@quick
@given(scored_pairs(), st.integers(1, 70))
def test_the_best_are_the_first_of_a_full_sort(triples, most):
    expected = sorted(triples, key=lambda triple: (-triple[2], triple[1], triple[0]))[:most]
    assert as_triples(top(triples, most)) == expected


@quick
@given(scored_pairs(), st.integers(1, 70), st.randoms(use_true_random=False), st.integers(1, 6))
def test_cutting_and_order_of_partials_change_nothing(triples, most, shuffler, parts):
    whole = shardfile.encode(top(triples, most).to_arrays())
    shuffler.shuffle(triples)
    cut = [top(triples[number::parts], most) for number in range(parts)]
    assert shardfile.encode(TopPairs.merged(cut).to_arrays()) == whole
    nested = TopPairs.merged([TopPairs.merged(cut[:2]), *cut[2:]])
    assert shardfile.encode(nested.to_arrays()) == whole


def test_arrays_read_back_are_the_same_pairs():
    pairs = top([(1, 2, 0.5), (0, 7, 0.5)], 5)
    again = TopPairs.from_arrays(shardfile.decode(shardfile.encode(pairs.to_arrays())))
    assert (as_triples(again), again.most) == ([(1, 2, 0.5), (0, 7, 0.5)], 5)


def test_the_worst_of_the_best_is_minus_infinity_where_there_are_too_few():
    scores = np.array([3.0, 1.0, 2.0])
    assert [worst_of_best(scores, most) for most in (1, 2, 3, 4)] == [3.0, 2.0, 1.0, -np.inf]
