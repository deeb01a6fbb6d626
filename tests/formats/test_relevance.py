"""Truth of one's own data: what is written reads back, in CSV and Parquet alike, and each mistake is one clear line."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raybench.errors import InputError, ProblemList
from raybench.formats.names import Names
from raybench.formats.relevance import read_relevance

QUERIES, REFERENCES = Names.of(["q1", "q2", "q3"]), Names.of(["cat/1", "dog/1", "r1", "r2"])


def parquet(**columns):
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def problems_of(data, name="truth.csv"):
    problems = ProblemList()
    try:
        read_relevance(data, name, problems).indices(QUERIES, REFERENCES, problems)
    except InputError as error:
        return error.lines()
    return problems.lines


def pairs_of(data, name="truth.csv"):
    problems = ProblemList()
    found = read_relevance(data, name, problems)
    query, reference = found.indices(QUERIES, REFERENCES, problems)
    problems.check()
    return list(zip(query.tolist(), reference.tolist(), found.grades.gain.tolist(), strict=True)), found


def test_two_columns_are_all_positive():
    for data in (b"q1,r1\nq2,r2\n", b"query,reference\nq1,r1\nq2,r2", b"reference,query\nr1,q1\n\nr2,q2\n"):
        pairs, found = pairs_of(data)
        assert pairs == [(0, 2, 1.0), (1, 3, 1.0)]
        assert found.grades.said == ""


def test_columns_of_other_names_are_passed_over():
    pairs, _ = pairs_of(b"note,Query_ID,reference_id,by\nx,q1,r1,me\ny,q2,r2,you\n")
    assert pairs == [(0, 2, 1.0), (1, 3, 1.0)]


def test_a_comma_between_quotes_is_part_of_a_name():
    queries, references = Names.of(["q,1", "q2"]), Names.of(["r1"])
    for first in (b"", b'query,reference,"note, by whom"\n'):
        more = b",x" if first else b""
        problems = ProblemList()
        found = read_relevance(first + b'"q,1",r1' + more + b"\nq2,r1" + more + b"\n", "truth.csv", problems)
        query, reference = found.indices(queries, references, problems)
        problems.check()
        assert (query.tolist(), reference.tolist()) == ([0, 1], [0, 0])


def test_words_are_grades():
    pairs, found = pairs_of(b"query,reference,grade\nq1,r1,positive\nq1,r2,Hard\nq2,r1,JUNK\n")
    assert [pair[:2] for pair in pairs] == [(0, 2), (0, 3), (1, 2)]
    assert found.grades.hard.tolist() == [False, True, False]
    assert np.isnan(found.grades.gain).tolist() == [False, False, True]
    assert found.grades.said == "words"


def test_numbers_are_grades_and_zero_is_not_relevant():
    pairs, found = pairs_of(b"q1,r1,3\nq1,r2,0\nq2,r1,0.5\n")
    assert pairs == [(0, 2, 3.0), (0, 3, 0.0), (1, 2, 0.5)]
    assert found.grades.said == "numbers"


def test_parquet_says_the_same_as_csv():
    data = parquet(query=["q1", "q1", "q2"], reference=["r1", "r2", "r1"], grade=[3.0, 0.0, 0.5], other=[1, 2, 3])
    assert pairs_of(data, "truth.parquet")[0] == pairs_of(b"q1,r1,3\nq1,r2,0\nq2,r1,0.5\n")[0]
    words = parquet(query=["q1"], reference=["r1"], grade=["hard"])
    assert pairs_of(words, "truth.parquet")[1].grades.hard.tolist() == [True]


def test_names_may_have_their_folder_and_suffix():
    pairs, _ = pairs_of(b"query,reference\nqueries/q1.jpg,cat/1.png\nq2.JPG,dog/1\n")
    assert [pair[:2] for pair in pairs] == [(0, 0), (1, 1)]


def test_names_may_have_more_folders_than_those_of_the_set():
    known = Names.of(["1", "a/1", "b/1", "c/a/1"])
    for name, place in {"x/y/a/1.jpg": 1, "x/b/1": 2, "/home/me/c/a/1.png": 3, "c/1": 0, "x/": -1, "a/b": -1}.items():
        problems = ProblemList()
        found = read_relevance(f"q1,{name}\n".encode(), "truth.csv", problems)
        assert found.indices(QUERIES, known, problems)[1].tolist() == [place], name
        assert bool(problems.lines) == (place < 0)


def test_an_accent_may_be_written_in_two_ways():
    apart, composed = "cafe\u0301", "caf\u00e9"
    for known, wanted in ((apart, composed), (composed, apart)):
        found = read_relevance(f"q1,x/{wanted}.png\n".encode(), "truth.csv", ProblemList())
        problems = ProblemList()
        query, reference = found.indices(QUERIES, Names.of(["a", known]), problems)
        assert (query.tolist(), reference.tolist(), problems.lines) == ([0], [1], [])
    both = Names.of([apart, composed])
    for wanted, index in ((apart, 0), (composed, 1)):
        assert (
            read_relevance(f"q1,{wanted}\n".encode(), "x", ProblemList()).indices(QUERIES, both, problems)[1] == index
        )


def test_a_query_without_a_reference_is_one_without_match():
    _, found = pairs_of(b"query,reference,grade\nq1,r1,positive\nq3,,\n")
    assert found.unmatched.to_pylist() == ["q3"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"q1,r9\n", ["line 1: reference 'r9' is not among the references", "'cat/1'"]),
        (b"query,reference\nq7,r1\n", ["line 2: query 'q7' is not among the queries"]),
        (b"q1,r1,good\n", ["line 1: grade 'good'", "positive, hard, junk, or a number"]),
        (b"q1,r1,hrad\n", ["line 1: grade 'hrad'", "hard"]),
        (b"q1,r1,-1\nq2,r2,1\n", ["line 1: grade '-1'", "a number from 0 upwards"]),
        (b"q1,r1,nan\nq2,r2,1\n", ["line 1: grade 'nan'"]),
        (b"q1,r1,inf\nq2,r2,1\n", ["line 1: grade 'inf'"]),
        (b"q1,r1,positive\nq2,r2,2\n", ["line 1: grade 'positive' is a word", "line 2", "a number"]),
        (b"q1,r1,positive\nq2,r2,\n", ["line 2: no grade"]),
        (b"q1,r1\nq2,r1\nq1,r1\n", ["line 1 and line 3: the same pair twice", "'q1', 'r1'"]),
        (b"q1,r1\nq1.jpg,x/r1\n", ["line 1 and line 2: the same pair twice"]),
        (b"q1,r1\nq1,\n", ["line 1: query 'q1' has a reference here and is elsewhere listed without one"]),
        (b"q1,r1\nq2,\nq3,\nq2,\n", ["line 4: query 'q2' is listed without a reference once more; keep one line"]),
        (b"q1,r1\nq9,\n", ["query 'q9', listed without a reference, is not among the queries"]),
        (b",r1\nq1,r1\n", ["line 1: no query"]),
        (b"q1,r1\nq2\n", ["line 2: 1 columns, expected 2"]),
        (b"q1;r1\nq2;r2\n", ["does not name the columns", "joined by semicolons", "query,reference"]),
        (b"a,b,c,d\n1,2,3,4\n", ["does not name the columns query and reference, and has 4;"]),
        (b"query,reference,ref\nq1,r1,r1\n", ["names a column twice"]),
        (
            b"image,match\nq1,r1\n",
            ["line 1: 'image,match' names no query and no reference", "call them query,reference"],
        ),
        (b"image,match,label\nq1,r1,1\n", ["names the columns image,match,label; expected query,reference,grade"]),
        (b"query,reference,grade\nq1,r1,junk\n", ["no relevant pair"]),
        (b"query,reference\n", ["no relevant pair"]),
        (b"", ["is empty", "query,reference"]),
        (b"\xff\xfe,r1\n", ["UTF-8"]),
    ],
)
def test_what_is_wrong_is_one_clear_line(data, words):
    (line,) = problems_of(data)
    assert line.startswith("truth.csv")
    for word in words:
        assert word in line


def test_what_is_wrong_with_parquet_is_one_clear_line():
    (line,) = problems_of(parquet(image=["a"], label=[1]), "truth.parquet")
    assert "has the columns image, label; expected query, reference" in line
    (line,) = problems_of(parquet(query=["q1"], reference=["r9"]), "truth.parquet")
    assert "row 1: reference 'r9' is not among the references" in line
    (line,) = problems_of(b"PAR1 no", "truth.parquet")
    assert "no Parquet file" in line


def test_all_problems_are_said_together():
    lines = problems_of(b"query,reference,grade\nq9,r1,positive\nq1,r9,positive\n")
    assert len(lines) == 2


def test_lines_and_names_that_are_wrong_are_said_together():
    lines = problems_of(
        b"query,reference,grade\nq1,r1,positiv\nq9,r1,hard\nq2,r2,hard\n,r1,hard\nq2,r2.jpg,junk\nq3,r1\n"
    )
    assert [line.partition("; ")[0].partition(", which")[0] for line in lines] == [
        "truth.csv: line 7: 2 columns, expected 3 (query,reference,grade)",
        "truth.csv: line 5: no query",
        "truth.csv: line 2: grade 'positiv' (did you mean positive?)",
        "truth.csv: line 3: query 'q9' is not among the queries",
        "truth.csv: line 4 and line 6: the same pair twice ('q2', 'r2')",
    ]
