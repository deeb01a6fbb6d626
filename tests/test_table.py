"""A table keeps every digit in files, rounds for people, and lets no name break out of its cell."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raybench.benchmarks import BENCHMARKS
from raybench.table import FigureCell, Table, figure_cells, joined, read_csv

quick = settings(max_examples=50, deadline=None)  # no deadline: cores are shared


def table_of(*rows, columns=("task", "pairs", "ap"), notes=()) -> Table:
    return Table("figures", columns, tuple(rows), frozenset({"ap"}), notes)


@quick
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_csv_gives_back_every_digit(values):
    table = table_of(*(("t", 3, value) for value in values))
    assert [row[2] for row in read_csv("figures", table.to_csv()).rows] == values


def test_csv_gives_back_the_whole_table():
    table = table_of(("a, b", 1_000_000, 0.1), ('say "x"', 0, None), ("line\nbreak", 7, 1e-300))
    assert read_csv("figures", table.to_csv(), table.fractions) == table


@pytest.mark.parametrize("name", ["001_005", "007", "nan"])
def test_a_name_made_of_digits_is_read_back_as_it_is(name):
    assert read_csv("figures", table_of((name, 1, 0.5)).to_csv()).rows[0][0] == name


def test_an_undefined_value_is_an_empty_cell_in_csv():
    assert table_of(("t", 0, math.nan), ("u", None, 0.5)).to_csv() == "task,pairs,ap\nt,0,\nu,,0.5\n"


def test_a_numpy_float_is_written_as_its_digits():
    assert table_of(("t", 3, np.float64(0.1))).to_csv() == "task,pairs,ap\nt,3,0.1\n"


def test_fractions_are_shown_as_percent_with_two_decimals():
    assert table_of(("t", 12_345, 0.123456), ("u", 1, 1.0)).shown() == [("t", "12,345", "12.35"), ("u", "1", "100.00")]


def test_other_numbers_are_shown_with_four_digits():
    assert table_of(("t", 0.123456, 0.0)).shown() == [("t", "0.1235", "0.00")]


@pytest.mark.parametrize("undefined", [math.nan, None])
def test_an_undefined_value_is_shown_as_a_dash(undefined):
    assert table_of(("t", 1, undefined)).shown() == [("t", "1", "–")]


def test_text_is_aligned_with_numbers_to_the_right():
    lines = table_of(("short", 5, 0.5), ("much longer", 12_000, 1.0), notes=("a note",)).to_text().splitlines()
    assert lines[0] == "task          pairs      ap"
    assert lines[2:] == ["short             5   50.00", "much longer  12,000  100.00", "a note"]


def test_a_bar_does_not_end_a_markdown_cell():
    lines = table_of(("a|b", 1, 0.5)).to_markdown().splitlines()
    assert lines[2] == r"| a\|b | 1 | 50.00 |"


def test_a_bar_does_not_end_a_markdown_column_name():
    lines = table_of(("t", 0.5), columns=("a|b", "ap")).to_markdown().splitlines()
    assert lines[0] == r"| a\|b | ap |"


def test_a_line_break_does_not_end_a_markdown_row():
    lines = table_of(("a\nb", 1, 0.5)).to_markdown().splitlines()
    assert len(lines) == 3


def test_a_task_called_script_is_no_element_in_html():
    page = table_of(("<script>", 1, 0.5), columns=("<b>", "pairs", "ap"), notes=("<i>",)).to_html()
    assert "&lt;script&gt;" in page
    assert not any(element in page for element in ("<script>", "<b>", "<i>"))


def test_a_task_called_script_is_no_element_in_markdown():
    assert "<script>" not in table_of(("<script>", 1, 0.5)).to_markdown()


def test_latex_escapes_its_common_special_characters():
    assert r"a\_b \& 5\% \#1 \$" in table_of(("a_b & 5% #1 $", 1, 0.5)).to_latex()


@pytest.mark.parametrize("character", ["\\", "{", "}", "~", "^"])
def test_latex_escapes_its_rare_special_characters(character):
    assert f"a{character}b" not in table_of((f"a{character}b", 1, 0.5)).to_latex()


def test_latex_aligns_numbers_to_the_right():
    assert table_of(("t", 1, 0.5)).to_latex().splitlines()[0] == r"\begin{tabular}{lrr}"


def test_tables_joined_say_whose_rows_they_are():
    both = joined("all", "descriptor", [("sift", table_of(("t", 1, 0.5))), ("orb", table_of(("t", 1, 0.25)))])
    assert both.columns == ("descriptor", "task", "pairs", "ap")
    assert both.rows == (("sift", "t", 1, 0.5), ("orb", "t", 1, 0.25))


@quick
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), min_size=1, max_size=5))
def test_csv_readers_see_the_names_as_they_are(names):
    text = table_of(*((name, 1, 0.5) for name in names)).to_csv()
    assert [row[0] for row in csv.reader(io.StringIO(text, newline=""))][1:] == names


def test_figures_are_named_the_same_once_a_table_was_written_and_read():
    table = Table("t", ("split", "pool", "norm", "map"), (("a", 100, "1.0", 0.5), ("b", 7, None, math.nan)))
    cells = figure_cells(table, ("split", "pool", "norm"), {"map"})
    assert cells == figure_cells(read_csv("t", table.to_csv()), ("split", "pool", "norm"), {"map"})
    assert cells == [FigureCell("a | 100 | 1.0", "map", 0.5), FigureCell("b | 7 | ", "map", None)]


def test_counts_are_neither_names_nor_figures():
    cells = figure_cells(table_of(("t", 5, 0.5)), ("task",), {"ap"})
    assert cells == [FigureCell("t", "ap", 0.5)]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_figure_of_a_main_table_is_a_fraction_and_no_key(name):
    benchmark = BENCHMARKS[name].open()
    assert benchmark.keys
    assert set(benchmark.figures) <= benchmark.fractions
    assert not set(benchmark.figures) & set(benchmark.keys)
