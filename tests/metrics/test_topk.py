"""TopK merges to the same bytes however the references are cut and in whatever order the parts arrive."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.metrics.partials import NO_REFERENCE, TopK

quick = settings(max_examples=60, deadline=None)  # no deadline: cores are shared

# What was measured: (query, reference) -> distance, of few values, so that most are tied.
measured = st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 30)), st.sampled_from([0.0, 0.5, 2.0]))


def top(found: dict[tuple[int, int], float], k: int) -> TopK:
    """One part: a row for each measurement."""
    query, reference = (np.array([key[i] for key in found], np.int64) for i in (0, 1))
    return TopK.of(query, np.array(list(found.values())).reshape(-1, 1), reference.reshape(-1, 1), k)


def content(part: TopK) -> tuple[bytes, ...]:
    return tuple(array.tobytes() for array in part.to_arrays().values())


@st.composite
def parts_in_any_order(draw):
    found, k = draw(measured), draw(st.integers(1, 6))
    owner = {key: draw(st.integers(0, 3)) for key in found}
    shuffled = draw(st.permutations(list(found)))
    parts = [top({key: found[key] for key in shuffled if owner[key] == part}, k) for part in range(4)]
    return found, k, draw(st.permutations(parts))


@quick
@given(parts_in_any_order())
def test_the_merge_is_independent_of_cutting_and_arrival_order(drawn):
    found, k, parts = drawn
    assert content(TopK.merged(parts)) == content(top(found, k))


@quick
@given(parts_in_any_order())
def test_the_merge_is_associative_and_commutative(drawn):
    _, _, (a, b, c, _) = drawn
    left = TopK.merged([TopK.merged([a, b]), c])
    right = TopK.merged([a, TopK.merged([b, c])])
    assert content(left) == content(right) == content(TopK.merged([c, b, a]))


@quick
@given(measured, st.integers(1, 6))
def test_rows_hold_the_k_nearest_by_distance_then_reference(found, k):
    part = top(found, k)
    assert part.query.tolist() == sorted({query for query, _ in found})
    for query, distances, references in zip(part.query, part.distance, part.reference, strict=True):
        expected = sorted((distance, reference) for (own, reference), distance in found.items() if own == query)[:k]
        padded = expected + [(np.inf, NO_REFERENCE)] * (k - len(expected))
        assert list(zip(distances.tolist(), references.tolist(), strict=True)) == padded


def test_a_part_comes_back_from_its_arrays():
    part = top({(0, 3): 0.5, (0, 1): 0.5, (2, 7): 1.0}, 2)
    assert content(TopK.from_arrays(part.to_arrays())) == content(part)


def test_a_reference_in_two_parts_is_an_error():
    with pytest.raises(ValueError, match="twice"):
        TopK.merged([top({(0, 3): 0.5}, 2), top({(0, 3): 0.5}, 2)])
