"""Lists of pairs: PhotoTour's lines however their numbers are set apart."""

import time

from raybench.errors import ProblemList
from raybench.formats.pair_lists import read_pair_list


def read(text):
    problems = ProblemList()
    found = read_pair_list(text.encode(), "m50.txt", problems)
    problems.check()
    return list(zip(found.a.to_pylist(), found.b.to_pylist(), found.positive.tolist(), strict=True))


def test_numbers_may_be_set_apart_by_any_blanks():
    expected = [("0", "1", True), ("2", "3", False)]
    assert read("0 5 0 1 5 0\n2 5 0 3 6 0\n") == expected
    assert read("\ufeff  0\t5 \t0 1   5 0 \t\r\n\t2 5 0 3 6 0  \r\n \r\n") == expected


def test_a_hundred_thousand_blanks_take_no_time():
    start = time.process_time()
    assert read("0 5 0 1 5 0\n2 5 0" + " " * 100_000 + "3 6 0\n") == [("0", "1", True), ("2", "3", False)]
    assert time.process_time() - start < 1
