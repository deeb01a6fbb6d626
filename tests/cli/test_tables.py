"""Tables on a terminal: few rows, no wider than it is, nothing lost."""

import math

import click
import pytest

from raybench.cli.tables import MOST_ROWS, few_rows, fitted, table_lines
from raybench.table import Table

WIDE = Table(
    "disc_metrics",
    ("codec", "score_norm", "queries", "uAP", "accuracy-at-1", "recall-at-p90", "threshold_at_p90"),
    (
        ("PCAW512,L2norm,Flat", "1.00[0,2]", 25_000, 0.6171, 0.6513, 0.5104, 0.1234),
        ("Flat", "None", 25_000, 0.5, 0.5, 0.25, 0.5),
    ),
    frozenset({"uAP", "accuracy-at-1", "recall-at-p90"}),
    ("LIMITED: only the first 25,000 queries were used.", "uAP: pooled average precision over all queries and codecs."),
)
FIGURES = ("25,000", "61.71", "65.13", "51.04", "0.1234")


def plain(lines):
    return [click.unstyle(line) for line in lines]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_table_is_no_wider_than_the_terminal_and_keeps_every_figure(width):
    lines = plain(table_lines(WIDE, "x.csv", width))
    assert max(map(len, lines)) <= width
    for figure in FIGURES:
        assert sum(figure in line for line in lines) >= 1


def test_elsewhere_a_table_keeps_its_full_width():
    lines = plain(table_lines(WIDE, "x.csv"))
    assert "\n".join(lines) + "\n" == WIDE.to_text()


def test_headings_are_broken_before_names_are_shortened():
    lines = plain(table_lines(WIDE, "x.csv", 80))
    assert lines[0].split() == ["score_", "accuracy-", "recall-", "threshold_"]
    assert any("PCAW512,L2norm,Flat" in line for line in lines)


def test_blocks_repeat_what_names_a_row():
    lines = plain(table_lines(WIDE, "x.csv", 40))
    assert sum(line.startswith("PCAW51") for line in lines) > 1


def levels(count):
    rows = [(f"s{i}", noise, i / count) for i in range(count) for noise in ("e", "h", "t", "mean")]
    return Table("hpatches", ("split", "noise", "map"), tuple(rows), frozenset({"map"}))


def test_of_a_long_table_the_means_are_shown_with_where_the_rest_is():
    lines = table_lines(levels(10), "runs/x.csv")
    assert sum(" mean " in line for line in lines) == 10
    assert not any(" e " in line for line in lines)
    assert lines[-1] == "… 30 more rows in runs/x.csv"


def test_of_a_long_table_without_means_the_first_rows_are_shown():
    rows = tuple((f"task {i}", i / 100) for i in range(100))
    shown = few_rows(Table("t", ("task", "ap"), rows))
    assert shown.rows == rows[:MOST_ROWS]


def test_a_long_table_that_is_nowhere_else_is_shown_whole():
    assert len(table_lines(levels(10))) == 2 + 40


def test_long_lines_are_broken_at_words_and_indented():
    text = "Flat\n  uAP  one line that is too long\n"
    assert fitted(text, 21) == "Flat\n  uAP  one line that\n       is too long\n"
    assert fitted(text, None) == text


def test_lines_of_a_block_go_on_below_the_same_column_and_keep_p_and_its_value_together():
    text = "  map  sift  a  can't be told apart, p = 0.126\n       orb   a  can't be told apart, p = 0.126\n"
    found = fitted(text, 42).split("\n")
    assert [line.index(line.split()[0]) for line in found[1::2]] == [16, 16]
    assert [line.strip() for line in found[1:4:2]] == ["p = 0.126", "p = 0.126"]


def test_a_line_that_would_go_on_at_the_far_right_goes_on_at_the_left():
    assert fitted("  map            and then words\n", 24) == "  map            and\n    then words\n"


def test_a_short_table_is_shown_whole():
    assert few_rows(levels(7)) == levels(7)


@pytest.mark.parametrize("undefined", [None, math.nan])
def test_a_row_without_figures_is_a_warning_in_colour_and_words(undefined):
    rows = (("Flat", 3, 0.5), ("PCAW704,L2norm,Flat", 3, undefined))
    lines = table_lines(Table("t", ("codec", "queries", "uAP"), rows), "x.csv")
    assert lines[2] == click.unstyle(lines[2])
    assert lines[3] == click.style(click.unstyle(lines[3]), fg="yellow")
    assert click.unstyle(lines[4]) == "NO FIGURES: PCAW704,L2norm,Flat (see the notes)"


def test_a_note_that_warns_is_in_colour_and_others_are_not():
    styled = [line for line in table_lines(WIDE, "x.csv") if line != click.unstyle(line)]
    assert plain(styled) == [WIDE.notes[0]]


def test_names_from_data_can_not_command_the_terminal():
    table = Table("t", ("a\x1b[2J", "b"), (("\x1b[31mred\n", 1.0),), notes=("\x1b[1mnote",))
    assert not any("\x1b" in line for line in table_lines(table, "x\x1b.csv"))
