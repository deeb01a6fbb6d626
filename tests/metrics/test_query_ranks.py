"""Ranks without junk are places in the ranking that is left once junk is taken out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from raybench.metrics.query_ranks import QueryRanks


@given(seed=st.integers(0, 10_000), queries=st.integers(1, 5), references=st.integers(1, 30))
def test_ranks_are_places_in_the_ranking_without_junk(seed, queries, references):
    rng = np.random.default_rng(seed)
    expected = []
    columns = []
    for query in range(queries):
        label = rng.choice(3, references)  # 0: none, 1: relevant, 2: junk; by place in the ranking
        left = label[label != 2]
        expected += [(query, int(rank)) for rank in np.flatnonzero(left == 1)]
        columns += [(query, place, label[place]) for place in np.flatnonzero(label > 0)]
    pairs = np.array(columns, np.int64).reshape(-1, 3)[rng.permutation(len(columns))]
    query, before, label = pairs.T
    ranks = QueryRanks.of(query, before, label == 1, label == 2)
    assert list(zip(ranks.query.tolist(), ranks.rank.tolist(), strict=True)) == expected
    assert np.array_equal(query[ranks.pair], ranks.query)
    assert ranks.positives(queries).sum() == len(expected)
    if len(ranks):
        assert all(
            np.array_equal(ranks.order[ranks.query == q], np.arange((ranks.query == q).sum())) for q in range(queries)
        )
