"""Score norms as text, and the bias they give."""

import numpy as np
import pytest

from raybench.errors import Problems
from raybench.search.score_norm import ScoreNorm, parse_norms


def test_several_norms_are_read_in_their_order_and_printed_as_published():
    norms = parse_norms("1.0[0,2];0.5[1, 3]; none ;-2[4]")
    assert norms == (ScoreNorm(1.0, 0, 2), ScoreNorm(0.5, 1, 3), ScoreNorm(-2.0, 4, 4))
    assert [str(norm) for norm in norms] == ["1.00[0,2]", "0.50[1,3]", "-2.00[4,4]"]


def test_norms_that_differ_are_printed_differently():
    norms = parse_norms("1.0[0,2];1.001[0,2];-0.001[0,2];0[0,2];1e-7[0,2]")
    assert [str(norm) for norm in norms] == ["1.00[0,2]", "1.001[0,2]", "-0.001[0,2]", "0.00[0,2]", "1e-07[0,2]"]


@pytest.mark.parametrize("text", ["none", "None", "", " ; none"])
def test_none_is_no_norm(text):
    assert parse_norms(text) == ()


def test_all_that_is_wrong_is_said_a_line_each():
    with pytest.raises(Problems) as caught:
        parse_norms("1.0;1.0[0,2;x[0,2];1.0[2,0];1.0[-1,2];nan[0,2];1[0,2];1.0[0,2]")
    form = "expected weight[first,last] such as 1.0[0,2], several joined by ';'"
    assert caught.value.lines() == [
        f"score norm '1.0': {form}",
        f"score norm '1.0[0,2': {form}",
        f"score norm 'x[0,2]': {form}",
        "score norm '1.0[2,0]': the first neighbour, 2, comes after the last, 0",
        f"score norm '1.0[-1,2]': {form}",
        f"score norm 'nan[0,2]': {form}",
        "score norm '1.0[0,2]': given twice",
    ]


def test_a_training_set_that_is_too_small_is_named():
    assert ScoreNorm(1.0, 0, 2).problem(3) is None
    assert ScoreNorm(1.0, 0, 2).problem(2) == "score norm 1.00[0,2]: needs 3 training vectors, there are 2"


def test_the_bias_is_minus_the_weighted_mean_of_the_neighbours_named():
    products = np.array([[8.0, 4.0, 2.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
    assert ScoreNorm(0.5, 1, 2).bias(products).tolist() == [-1.5, -0.5]
    assert ScoreNorm(2.0, 0, 0).bias(products).tolist() == [-16.0, -2.0]
