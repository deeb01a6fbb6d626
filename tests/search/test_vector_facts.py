"""Facts of vector sets: dimension, length, and vectors that stand in two sets."""

import numpy as np
import pytest
from vector_stages import inline_run, vector_set

from raybench.errors import DataError
from raybench.search.vector_facts import are_normalised, shared_count, vector_facts


def descriptors(count, seed=0, dimension=8):
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


def test_count_and_dimension_leave_out_what_was_skipped(tmp_path):
    run = inline_run(tmp_path)
    facts = vector_facts(run, vector_set(run, "queries", descriptors(30), 4, absent=[0, 1, 2, 3, 9]))
    assert (facts.role, facts.count, facts.dimension) == ("queries", 25, 8)


def test_lengths_are_judged_over_all_sets_together(tmp_path):
    run = inline_run(tmp_path)
    rows = descriptors(100)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    normal, long, few = (
        vector_facts(run, vector_set(run, name, values))
        for name, values in (("queries", unit), ("references", rows), ("training", unit[:1] * 1.5))
    )
    assert are_normalised([normal])
    assert not are_normalised([normal, long])
    assert are_normalised([normal, few])  # 0.5 / 101 is less than 0.01
    assert not are_normalised([few])


def test_the_sum_of_deviations_does_not_depend_on_cut_or_order(tmp_path):
    run = inline_run(tmp_path)
    rows = descriptors(500)
    order = np.random.default_rng(1).permutation(500)
    cuts = [vector_set(run, "queries", rows, 500), vector_set(run, "queries", rows, 7, order=order)]
    assert len({vector_facts(run, one).deviation for one in cuts}) == 1


def test_equal_vectors_in_two_sets_are_counted_each(tmp_path):
    run = inline_run(tmp_path)
    training, references = descriptors(60), descriptors(50, 1)
    references[[3, 17, 18]] = training[[9, 9, 40]]
    references[30] = np.nextafter(training[5], np.float32(9))
    training[1, 2], references[44] = 0.0, training[1]
    references[44, 2] = -0.0
    one, other = (
        vector_facts(run, vector_set(run, name, values, 16))
        for name, values in (("references", references), ("training", training))
    )
    assert shared_count(run, one, other) == 4
    assert shared_count(run, other, one) == 3


def test_a_set_of_two_dimensions_is_refused(tmp_path):
    run = inline_run(tmp_path)
    mixed = vector_set(run, "queries", descriptors(6), 3)
    other = vector_set(run, "queries", descriptors(6, dimension=4), 3)
    mixed.mapped.publish(mixed.mapped.shards[1], other.mapped.read(1))
    with pytest.raises(DataError, match="queries: vectors of dimension 4 and 8; all must be the same"):
        vector_facts(run, mixed)
