"""Truth of Revisited Oxford and Paris: what is written reads back, and every mistake is said, all at once."""

import json

import numpy as np
import pytest

from raybench.errors import DataError, ProblemList
from raybench.formats.revisited import KINDS, read_distractor_names, read_revisited_truth


def entry(**other):
    return {"bbx": [1, 2.5, 30, 40], "easy": [2, 0], "hard": [], "junk": [3]} | other


def truth(**other):
    return {"imlist": ["r3", "r1", "r0", "r2"], "qimlist": ["q1", "q0"], "gnd": [entry(), entry(easy=[])]} | other


def problems_of(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    problems = ProblemList()
    found = read_revisited_truth(data, "gnd_x.json", problems)
    assert found is not None or problems.lines
    return problems.lines


def test_lists_boxes_and_labels_read_back_and_other_keys_are_ignored():
    data = json.dumps(truth(more=1) | {"gnd": [entry(ok=[9]), entry(easy=[], hard=[1])]}).encode()
    found = read_revisited_truth(data, "x", ProblemList())
    assert (found.queries, found.references) == (("q1", "q0"), ("r3", "r1", "r0", "r2"))
    assert found.boxes.tolist() == [[1, 2.5, 30, 40]] * 2
    labelled = zip(found.query.tolist(), found.reference.tolist(), [KINDS[kind] for kind in found.label], strict=True)
    assert list(labelled) == [(0, 0, "easy"), (0, 2, "easy"), (0, 3, "junk"), (1, 1, "hard"), (1, 3, "junk")]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"\x80\x04}", "gnd_x.json: no JSON"),
        (b"[" * 100_000, "no JSON"),
        ([], "list at the top"),
        (truth(imlist=None), "imlist is NoneType, expected a list"),
        ({"imlist": ["a"], "gnd": []}, "qimlist is missing"),
        (truth(gnd=[]), "gnd is empty"),
        (truth(gnd=[entry()]), "gnd has 1 entries, qimlist 2 names"),
        (truth(imlist=["r3", "r1", "r3", "r2"]), "'r3' comes twice in imlist"),
        (truth(qimlist=["q0", "q0"]), "'q0' comes twice in qimlist"),
        (truth(qimlist=["q0", "r1"]), "'r1' stands in qimlist and in imlist"),
        (truth(qimlist=["q0", 7]), "qimlist[1] is 7; expected a name"),
        (truth(qimlist=["q0", "\ud800"]), "no Unicode text"),
        (truth(gnd=[entry(), entry(easy=[4])]), "gnd[1] ('q0'): easy has 4; expected positions in imlist, 0 to 3"),
        (truth(gnd=[entry(), entry(easy=[-1])]), "easy has -1"),
        (truth(gnd=[entry(), entry(easy=[1.0])]), "easy has 1.0"),
        (truth(gnd=[entry(), entry(easy=[True])]), "easy has True"),
        (truth(gnd=[entry(), entry(easy=[10**30])]), "expected positions"),
        (truth(gnd=[entry(), entry(easy=[1, 1])]), "position 1 stands in easy twice"),
        (truth(gnd=[entry(), entry(easy=[3])]), "position 3 stands in easy and junk"),
        (truth(gnd=[entry(), entry(easy="12")]), "easy is '12'; expected a list"),
        (truth(gnd=[entry(), {"bbx": [1, 2, 3, 4], "easy": [], "hard": []}]), "junk is missing"),
        (truth(gnd=[entry(), [1]]), "gnd[1] ('q0'): [1]; expected an object"),
        (truth(gnd=[entry(), entry(bbx=[1, 2, 1, 4])]), "expected x1 < x2 and y1 < y2"),
        (truth(gnd=[entry(), entry(bbx=[1, 5, 3, 4])]), "expected x1 < x2 and y1 < y2"),
        (truth(gnd=[entry(), entry(bbx=[1, 2, 3])]), "expected four numbers"),
        (truth(gnd=[entry(), entry(bbx=[1, 2, float("nan"), 4])]), "expected four numbers"),
        (truth(gnd=[entry(), entry(bbx=[1, 2, 10**400, 4])]), "expected four numbers"),
        (truth(gnd=[entry(), entry(bbx=None)]), "bbx is None; expected four numbers"),
    ],
)
def test_each_mistake_is_one_line_that_says_where(value, words):
    (line,) = problems_of(value)
    assert line.startswith("gnd_x.json") and words in line


def test_all_mistakes_are_listed_together():
    wrong = truth(imlist=["a", "a"], qimlist=["b", "b"], gnd=[entry(bbx=[]), entry(), entry()])
    lines = problems_of(wrong)
    assert len(lines) == 10
    for words in ("3 entries", "in imlist", "in qimlist", "gnd[0]", "gnd[1]", "gnd[2]"):
        assert any(words in line for line in lines), words


def test_many_mistakes_of_a_kind_are_counted():
    lines = problems_of(truth(gnd=[entry(), entry(easy=list(range(100, 150)))]))
    assert len(lines) == 11 and lines[-1].endswith("50 problems in all, 10 are shown")


def test_names_of_distractors_come_one_per_line():
    problems = ProblemList()
    assert read_distractor_names(b"00/a.jpg\r\n\n 01/b.jpg\n", "x.txt", problems) == ("00/a.jpg", "01/b.jpg")
    assert read_distractor_names(b"a.jpg\na.jpg\n", "x.txt", problems) == ("a.jpg", "a.jpg")
    assert problems.lines == ["x.txt: 'a.jpg' comes twice; names must differ"]
    for data in (b"", b" \n", b"\xff\n"):
        with pytest.raises(DataError, match=r"x\.txt: no "):
            read_distractor_names(data, "x.txt", problems)


def test_an_entry_without_labels_gives_no_pairs():
    found = read_revisited_truth(json.dumps(truth(gnd=[entry(easy=[], junk=[])] * 2)).encode(), "x", ProblemList())
    assert len(found.query) == len(found.label) == 0 and found.label.dtype == np.int8


def test_names_are_told_where_entries_are_wrong_and_not_where_names_are():
    wrong = truth(gnd=[entry(bbx=[]), entry(easy=[], hard=[1]), entry()])
    found = read_revisited_truth(json.dumps(wrong).encode(), "x", ProblemList())
    assert (found.queries, len(found.references)) == (("q1", "q0"), 4)
    assert found.boxes.tolist() == [[0, 0, 1, 1], [1, 2.5, 30, 40]]
    assert list(zip(found.query.tolist(), found.reference.tolist(), strict=True)) == [(1, 1), (1, 3)]
    assert read_revisited_truth(json.dumps(truth(qimlist=["q", "q"])).encode(), "x", ProblemList()) is None
