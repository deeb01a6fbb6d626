"""Standings over sets in shards equal those of one sort, for every cut, order of rows and executor."""

import numpy as np
import pytest
from test_standings import by_sorting
from vector_stages import inline_run, stored, vector_set

from raybench.errors import DataError
from raybench.metrics.micro_ap import TruePairs
from raybench.search.distances import row_distances
from raybench.search.set_standings import PairStandings, pair_standings
from raybench.search.standings import Asked


def vectors(count, seed, whole=False):
    rng = np.random.default_rng(seed)
    found = rng.integers(-2, 3, (count, 12)) if whole else rng.standard_normal((count, 12))
    return found.astype(np.float32)


def labelled(queries, references, seed=5):
    rng = np.random.default_rng(seed)
    return TruePairs.of(*np.nonzero((rng.random((queries, references)) < 0.03) & (np.arange(queries)[:, None] % 4 > 0)))


def expected(queries, references, pairs, distance):
    limit = row_distances(queries[pairs.query], references[pairs.reference], distance)
    found = by_sorting(queries, references, Asked(pairs.query, pairs.reference, limit), distance)
    return PairStandings(limit, found.before, found.fewest, found.most).to_arrays()


@pytest.mark.parametrize("distance", ["squared_L2", "ip"])
@pytest.mark.parametrize("whole", [False, True], ids=["floats", "tied whole numbers"])
def test_every_cut_and_order_of_both_sets_gives_the_same_bytes(tmp_path, distance, whole):
    run = inline_run(tmp_path)
    queries, references = vectors(40, 0, whole), vectors(500, 1, whole)
    pairs = labelled(40, 500)
    asked = vector_set(run, "queries", queries, 13, order=np.random.default_rng(2).permutation(40))
    shuffled = vector_set(run, "references", references, 77, order=np.random.default_rng(3).permutation(500))
    straight = vector_set(run, "references", references, 500)
    seen = {
        stored(pair_standings(run, asked, among, pairs, distance, size))
        for size in (None, 500, 90, 7)
        for among in (straight, shuffled)
    }
    assert len(seen) == 1
    found = run.read(pair_standings(run, asked, straight, pairs, distance), 0)
    for name, values in expected(queries, references, pairs, distance).items():
        assert np.array_equal(found[name], values), name


def test_a_second_set_of_references_counts_on_behind_the_first(tmp_path):
    run = inline_run(tmp_path)
    queries, references, distractors = vectors(10, 0, True), vectors(60, 1, True), vectors(200, 2, True)
    pairs = labelled(10, 60)
    sets = [vector_set(run, "references", references), vector_set(run, "distractors", distractors, 50)]
    found = run.read(pair_standings(run, vector_set(run, "queries", queries), sets, pairs, "ip"), 0)
    together = expected(queries, np.concatenate([references, distractors]), pairs, "ip")
    assert all(np.array_equal(found[name], values) for name, values in together.items())


def test_a_pair_without_a_vector_is_said(tmp_path):
    run = inline_run(tmp_path)
    queries, references = vectors(3, 0), vectors(9, 1)
    sets = vector_set(run, "queries", queries), vector_set(run, "references", references)
    with pytest.raises(DataError, match="of 2 labelled pairs only 1 have vectors"):
        pair_standings(run, *sets, TruePairs.of(np.array([0, 1]), np.array([4, 9])), "ip")


def test_queries_and_references_of_other_dimensions_are_said(tmp_path):
    run = inline_run(tmp_path)
    sets = vector_set(run, "queries", vectors(3, 0)), vector_set(run, "references", vectors(9, 1)[:, :5])
    with pytest.raises(DataError, match="queries have dimension 12, references 5"):
        pair_standings(run, *sets, TruePairs.of(np.array([0]), np.array([4])), "ip")
