"""Ground truth and predictions of DISC2021: real files, wrong files, and back."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from raybench.digests import digest_of_bytes
from raybench.errors import DataError, ProblemList, Problems
from raybench.formats.disc import read_ground_truth, write_predictions
from raybench.formats.disc_predictions import check_predictions, match_tables, read_block
from raybench.formats.names import Names

BLOCK_BYTES = [7, 40, 2**25]  # a line or none, some lines, all of them


def checked(data, block_bytes=2**25, **given):
    return check_predictions(io.BytesIO(data), "p.csv", block_bytes=block_bytes, **given)


def rows_of(data, block_bytes=2**25):
    """Query, reference and score of every line, read block by block."""
    file = io.BytesIO(data)
    parts = [read_block(file, one, "p.csv") for one in checked(data, block_bytes).blocks]
    return [row for part in parts for row in zip(*(column.tolist() for column in part), strict=True)]


ISC = Path("/work/shared/data/isc2021")


@pytest.mark.skipif(not ISC.exists(), reason="the published list files are not on this machine")
@pytest.mark.parametrize(
    ("name", "pairs", "unmatched"), [("public_ground_truth.csv", 4991, 20009), ("subset_1_ground_truth.csv", 4991, 0)]
)
def test_the_published_lists_are_read(name, pairs, unmatched):
    truth = read_ground_truth((ISC / name).read_bytes(), name)
    assert (len(truth), len(truth.unmatched)) == (pairs, unmatched)
    assert (truth.query[0].as_py(), truth.reference[0].as_py()) == ("Q00003", "R326040")
    assert (truth.query[-1].as_py(), truth.reference[-1].as_py()) == ("Q24999", "R473589")


@pytest.mark.parametrize(
    "header", ["", "query_id,reference_id\n", "query,reference\n", "\ufeffquery_id,reference_id\r\n"]
)
def test_a_header_is_optional(header):
    truth = read_ground_truth(f"{header}Q1,R1\nQ2,\n".encode(), "truth.csv")
    assert (truth.query.to_pylist(), truth.reference.to_pylist(), truth.unmatched.to_pylist()) == (
        ["Q1"],
        ["R1"],
        ["Q2"],
    )
    assert truth.line.tolist() == [2 if header else 1]


def test_blank_lines_and_windows_line_ends_do_no_harm():
    truth = read_ground_truth(b"Q1,R1\r\n\r\nQ2,R2\r\n", "truth.csv")
    assert truth.line.tolist() == [1, 3]
    assert truth.reference.to_pylist() == ["R1", "R2"]


def test_every_problem_of_a_ground_truth_is_named_with_its_line():
    data = b"query_id,reference_id\nQ1,R1\nQ2\nQ1,R1\n,R3\nQ4,R4\nQ4,\nQ5,R5,R6\n"
    with pytest.raises(Problems) as raised:
        read_ground_truth(data, "truth.csv")
    assert raised.value.lines() == [
        "truth.csv: line 3: 1 columns, expected 2 (query,reference)",
        "truth.csv: line 8: 3 columns, expected 2 (query,reference)",
        "truth.csv: line 5: no query; expected query,reference",
        "truth.csv: lines 2 and 4: the same pair twice ('Q1', 'R1'); keep one",
        "truth.csv: line 6: query 'Q4' has a match here and is elsewhere listed without one",
    ]


@pytest.mark.parametrize("data", [b"", b"query_id,reference_id\n", b"Q1,\nQ2,\n"])
def test_a_ground_truth_without_pairs_is_an_error(data):
    with pytest.raises(Problems, match="no pair"):
        read_ground_truth(data, "truth.csv")


def test_bytes_that_are_no_text_are_an_error():
    with pytest.raises(DataError, match=r"truth.csv: no CSV file of UTF-8 text"):
        read_ground_truth(b"Q1,\xff\xfe\n", "truth.csv")


def test_bytes_that_are_no_text_leave_nothing_on_the_screen(capfd):
    with pytest.raises(DataError, match=r"truth.csv: no CSV file of UTF-8 text"):
        read_ground_truth(b"Q1,R1\n\xff,\xfe,\xfd\n", "truth.csv")
    assert capfd.readouterr() == ("", "")


def test_a_ground_truth_that_names_unknown_images_is_said_once_a_line():
    truth = read_ground_truth(b"Q1,R1\nQ2,R9\nQ7,R2\n", "truth.csv")
    problems, mend = ProblemList(), "mend the file or bring the image"
    query, reference = truth.indices(Names.of(["Q2", "Q1"]), Names.of(["R1", "R2"]), problems)
    assert problems.lines == [
        f"truth.csv: line 3: query 'Q7' is not among the queries; those are 'Q1' …; {mend}",
        f"truth.csv: line 2: reference 'R9' is not among the references; those are 'R1' …; {mend}",
    ]
    assert (query.tolist(), reference.tolist()) == ([0], [0])


def test_many_unknown_images_are_counted():
    lines = "".join(f"Q{row},R{row}\n" for row in range(40))
    problems = ProblemList()
    read_ground_truth(lines.encode(), "truth.csv").indices(
        Names.of(["Q1"]), Names.of([f"R{i}" for i in range(40)]), problems
    )
    assert len(problems.lines) == 11
    assert problems.lines[-1] == "truth.csv: 39 lines name an unknown query in all, 10 are shown"


@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
def test_every_problem_of_predictions_is_named_with_its_line(block_bytes):
    data = b"query_id,reference_id,score\nQ1,R1,0.5\nQ2,R2\nQ3,R3,x\nQ4,R4,nan\nQ1,R1,0.25\n\nQ5,,1\n,R1,2\nQ1,R1,3\n"
    with pytest.raises(Problems) as raised:
        checked(data, block_bytes)
    assert raised.value.lines() == [
        "p.csv: line 3: 2 columns, expected 3 (query,reference,score)",
        "p.csv: line 9: no query; expected query,reference,score",
        "p.csv: line 4: score 'x' is no number",
        "p.csv: line 5: score 'nan' is no number",
        "p.csv: line 8: no reference; expected query,reference,score",
        "p.csv: lines 2 and 6: the same prediction twice ('Q1', 'R1'); keep one",
        "p.csv: lines 2 and 10: the same prediction twice ('Q1', 'R1'); keep one",
    ]


@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
def test_many_problems_of_a_kind_are_counted_over_all_blocks(block_bytes):
    with pytest.raises(Problems) as raised:
        checked("".join(f"Q{row},R{row % 20},x\n" for row in range(40)).encode() + b"Q7,R7,1\n" * 30, block_bytes)
    lines = raised.value.lines()
    assert lines[10] == "p.csv: 40 scores that are no numbers in all, 10 are shown"
    assert lines[11] == "p.csv: lines 8 and 41: the same prediction twice ('Q7', 'R7'); keep one"
    assert lines[21:] == ["p.csv: 30 lines that repeat an earlier one in all, 10 are shown"]


@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n", b"\r\n"])
def test_predictions_are_the_same_however_the_file_is_cut(block_bytes, end):
    data = b"query,reference,score\r\nQ1,R1,0.5\n\nQ\xc3\xbc2, R1 ,-1e3\n  \n\nQ1,R2,7" + end
    found = checked(data, block_bytes)
    assert (found.count, found.queries.to_pylist(), found.references.to_pylist()) == (3, ["Q1", "Qü2"], ["R1", "R2"])
    assert rows_of(data, block_bytes) == [("Q1", "R1", 0.5), ("Qü2", "R1", -1000.0), ("Q1", "R2", 7.0)]
    assert found.digest == digest_of_bytes(data)


def test_more_predictions_than_allowed_are_refused():
    data = b"Q1,R1,0.5\nQ1,R2,0.4\n"
    assert checked(data, most=2).count == 2
    assert checked(data, most=None).count == 2
    with pytest.raises(Problems, match=r"p.csv: 2 predictions, at most 1 are taken"):
        checked(data, most=1)


@pytest.mark.parametrize("data", [b"", b"\n", b"query_id,reference_id,score\n"])
def test_predictions_without_a_line_are_refused(data):
    with pytest.raises(Problems, match="no prediction"):
        checked(data)


def test_predictions_are_read_back_as_they_were_written():
    score = [1 / 3, -1.2345678901234567e-30, 2.0**70, 0.1]
    query, reference = ["Q1", "Q1", "Q2", "Q3"], ["R3", "R1", "R3", "R9"]
    data = write_predictions(pa.array(query), pa.array(reference), np.array(score))
    assert data.startswith(b"query_id,reference_id,score\nQ1,R3,0.3333333333333333\n")
    assert rows_of(data) == [*zip(query, reference, score, strict=True)]


def test_names_with_commas_quotes_and_other_letters_are_read_back():
    query, reference = ["a,b", 'say "ü"'], ["é 1", "plain"]
    text = write_predictions(pa.array(query), pa.array(reference), np.array([0.5, -1.0]))
    assert rows_of(text) == [*zip(query, reference, [0.5, -1.0], strict=True)]


def test_single_precision_scores_are_written_as_they_are():
    data = write_predictions(pa.array(["Q1"]), pa.array(["R1"]), np.array([0.1], np.float32))
    assert rows_of(data)[0][2] == np.float32(0.1)


def test_tables_are_matched_by_name():
    truth = read_ground_truth(b"Q2,R5\nQ9,\n", "truth.csv")
    tables = match_tables(truth, checked(b"Q9,R1,0.5\nQ2,R5,0.25\nQ3,R5,1\n"))
    assert [tables.queries[i] for i in range(3)] == ["Q2", "Q3", "Q9"]
    assert (tables.true_query.tolist(), tables.true_reference.tolist()) == ([0], [1])


def test_predictions_for_other_queries_are_refused():
    truth = read_ground_truth(b"Q2,R5\n", "truth.csv")
    with pytest.raises(DataError, match=r"none of its queries \('Q2.jpg' …\) stands in truth.csv \('Q2' …\)"):
        match_tables(truth, checked(b"Q2.jpg,R5.jpg,0.25\n"))


@pytest.mark.parametrize("block_bytes", BLOCK_BYTES)
@pytest.mark.parametrize("header", ["score,reference_id,query_id", "Similarity, ref , QUERY"])
def test_columns_stand_in_the_order_that_a_first_line_names(header, block_bytes):
    data = f"{header}\n0.5,R1,Q1\n0.25,R2,Q2\n".encode()
    assert [(str(a), str(b), score) for a, b, score in rows_of(data, block_bytes)] == [
        ("Q1", "R1", 0.5),
        ("Q2", "R2", 0.25),
    ]
    truth = read_ground_truth(b"ref,query\nR1,Q1\n", "truth.csv")
    assert (truth.query.to_pylist(), truth.reference.to_pylist()) == (["Q1"], ["R1"])


def test_a_first_line_of_other_names_is_told_what_they_may_be():
    with pytest.raises(Problems, match=r"line 1: score 'distance' is no number; a first line of names has query or "):
        checked(b"query,reference,distance\nQ1,R1,0.5\n")


def test_names_of_the_truth_with_a_suffix_are_told_what_the_image_is_called():
    truth, problems = read_ground_truth(b"Q1.jpg,R1\nQ7,R1\n", "truth.csv"), ProblemList()
    truth.indices(Names.of(["Q1", "Q2"]), Names.of(["R1"]), problems)
    assert "'Q1' is: names are without folder and suffix" in problems.lines[0]
    assert "those are 'Q1' …; mend the file" in problems.lines[1]


@pytest.mark.parametrize(
    ("line", "words"), [(b"R1,Q1,1\n", "its references do: swap"), (b"Q1.jpg,R1,1\n", "leave folder and suffix out")]
)
def test_predictions_without_a_known_query_are_told_why(line, words):
    with pytest.raises(DataError, match=words):
        match_tables(read_ground_truth(b"Q1,R1\n", "truth.csv"), checked(line))
