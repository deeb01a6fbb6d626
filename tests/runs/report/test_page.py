"""What the page says, before any script runs: figures, marks, notes, policy; and that it stays small."""

import base64
import dataclasses
import hashlib
import html.parser
import json
import re
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from report_pages import ATTACK, copy_run, jpeg, manifest, pairs_run, patch_run, several_runs

from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.metrics.samples import FigureOf
from raybench.runs.report import pictures
from raybench.runs.report.differences import MOST_UNITS, chosen_units, unit_data
from raybench.runs.report.leaderboard import Board
from raybench.runs.report.page import Shown, write_report
from raybench.runs.report.shown import run_names, sections_of
from raybench.runs.unit_values import UnitValues
from raybench.table import Table, warning_of


class Parsed(html.parser.HTMLParser):
    """Elements with their attributes, and the text of the page by element."""

    def __init__(self, page):
        super().__init__()
        self.found, self.texts, self._open = [], {}, []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)


def data_of(page):
    (block,) = re.findall(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(block)


def first_table(page):
    """The first leaderboard as rows of cells, without tags."""
    table = page[page.index('<table class="sortable figures"') : page.index("</table>")]
    rows = re.findall(r"<tr.*?</tr>", table)
    return [[re.sub(r"<[^>]*>", " ", cell).split() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def test_the_first_heading_says_what_the_page_is():
    made = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
    page = write_report(several_runs(), made=made)
    assert "<h1>raybench: 2 benchmarks, 5 descriptors</h1>" in page
    assert "<span>5 runs</span>" in page and "page made 2026-11-18 09:30 UTC" in page
    assert "<h1>raybench: hbench-classification, sift</h1>" in write_report([patch_run("sift")])


def test_its_policy_allows_its_own_style_and_script_and_nothing_else():
    page = write_report(several_runs())
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_in_it_has_an_address():
    parsed = Parsed(write_report(several_runs()))
    addresses = [value for _, attributes in parsed.found for key, value in attributes.items() if key in ("src", "href")]
    assert addresses and all(value.startswith(("#", "data:image/jpeg;base64,")) for value in addresses)


def test_names_end_no_element_and_make_none():
    runs = [dataclasses.replace(patch_run(ATTACK), units=several_runs()[-1].units), copy_run("a", (1.0, 0, 0, 0))]
    plain = [patch_run("x/plain"), copy_run("a", (1.0, 0, 0, 0))]
    found, expected = Parsed(write_report(runs)).found, Parsed(write_report(plain)).found
    assert [tag for tag, _ in found] == [tag for tag, _ in expected]
    assert ATTACK in write_report(several_runs()).replace("\\u003c", "<").replace("\\u003e", ">")
    assert ATTACK in data_of(write_report(several_runs()))["sections"][1]["units"]["figures"][0]["names"]


def test_its_data_is_json_whatever_the_numbers():
    odd = Table("blocks", ("codec", "block", "mAP"), (("Flat", f"crops/{'9' * 400}", np.nan), ("Flat", "crops/5", 0.5)))
    main = Table("copydays_metrics", ("codec", "strong_mAP"), (("Flat", float("inf")),))
    page = write_report([Shown(manifest("copydays", "a\u2028b"), (main, odd))])
    assert "\u2028" not in page and data_of(page)["charts"]


def test_the_best_is_bold_and_the_second_underlined_with_its_interval():
    page = write_report([patch_run(name) for name in ("meanstd", "sift", "orb")])
    rows = first_table(page)
    assert rows[0][1:] == [["easy"], ["hard"], ["mean"]]
    assert rows[2] == [
        ["sift"],
        ["90.00", "80.00–95.00"],
        ["80.00", "ties", "75.00–90.00"],
        ["85.00", "ties", "82.50–90.00"],
    ]
    assert re.findall(r'<(b|u) class="v">([\d.]+)', page)[:6] == [
        ("b", "90.00"), ("u", "80.00"), ("b", "85.00"), ("u", "70.00"), ("b", "85.00"), ("u", "77.50"),
    ]  # fmt: skip


def test_a_single_run_shows_every_row_with_every_figure_and_no_winner():
    page = write_report([patch_run("sift")])
    rows = first_table(page)
    assert rows[0] == [["row"], ["ap"], ["auc"]]
    assert rows[1] == [["t_easy"], ["90.00", "80.00–95.00"], ["90.00"]]
    assert rows[2][2] == ["–"] and '<b class="v">' not in page


def test_less_may_be_better_and_what_rests_on_ties_wins_nothing():
    from raybench.runs.report.leaderboard import _marks
    from raybench.runs.report.measured import Measured

    constant = [Measured(1.0, worst=0.1, best=1.0), Measured(0.9), Measured(0.8)]
    assert _marks(constant, lower=False) == ["", "best", "second"]
    cells = [Measured(0.1), Measured(0.3), Measured(None), Measured(0.1)]
    assert _marks(cells, lower=True) == ["best", "second", "", "best"]
    assert _marks(cells, lower=False) == ["second", "best", "", "second"]


def test_where_less_is_better_the_page_says_so_beside_the_figure():
    page = write_report([pairs_run("sift", 0.1203, 0.1117), pairs_run("orb", 0.3), patch_run("sift")])
    assert '<option value="fpr95">fpr95 (less is better)</option><option>ap</option>' in page
    assert page.count('<span class="under">(less is better)</span>') == 1, "in the overview"
    assert data_of(page)["charts"][0]["lower"] == [True, False]
    alone = first_table(write_report([pairs_run("sift", 0.1)]))
    assert alone[0][1:] == [["fpr95", "(less", "is", "better)"], ["ap"]]


def test_the_range_of_ties_goes_from_low_to_high():
    rows = first_table(write_report([pairs_run("sift", 0.1203, 0.1117), pairs_run("orb", 0.3)]))
    assert rows[1] == [["sift"], ["12.03", "ties", "11.17–12.03"]]


def test_which_run_went_better_is_asked_only_where_units_have_values():
    runs = [copy_run("a", (1.0, 0.0, 0.5, 0.2)), copy_run("b", (0.0, 0.0, 0.8, 0.3))]
    assert "which went better with" in write_report(runs)
    without = write_report([dataclasses.replace(run, units=()) for run in runs])
    assert "which went better with" not in without and "Where two runs differ" not in without
    assert "Cases of" in without


def test_what_stands_for_a_run_is_a_mean_of_tasks_or_its_best_variant():
    patches, _ = (Board.of(section) for section in sections_of(several_runs()))
    assert patches.headline("sift").measured.value == pytest.approx(0.85)
    assert patches.headline("sift").words == "mean of 2 rows"
    rows = (("Flat", "None", 0.3), ("PCA", "None", 0.4))
    run = Shown(manifest("disc2021", "a"), (Table("disc_metrics", ("codec", "score_norm", "uAP"), rows),))
    (section,) = sections_of([run])
    assert Board.of(section).headline("a").words == "PCA | None, the best of 2"


def test_warnings_are_badges_and_come_first_among_notes():
    page = write_report(several_runs())
    assert re.search(r'<a class="badge" href="#b0" title="LIMITED: only[^"]*">LIMITED', page)
    assert page.index('<li class="loud">LIMITED') < page.index("<li>ap: TREC")
    assert [warning_of(note) for note in ("SKIPPED: 3", "MISSING flows", "ROC: of", "T1..T50: x", "uAP: y")] == [
        "SKIPPED", "MISSING", "", "", "",
    ]  # fmt: skip


def test_published_figures_have_comparable_ones_first():
    page = write_report([patch_run("sift"), patch_run("orb")])
    assert "Published figures beside: 1 of 2 comparable" in page
    assert page.index("yes: the same") < page.index("no, because it is old")
    assert '<a href="#b0">hbench-classification</a> 1 of 2</span>' in write_report(several_runs())


def test_runs_that_share_a_descriptor_are_named_by_their_folders():
    several = [manifest("tss", "dis"), manifest("tss", "dis"), manifest("tss", "zero")]
    outs = ("/a/one", "/a/two", "/b/zero")
    named = [dataclasses.replace(one, execution={"out": out}) for one, out in zip(several, outs, strict=True)]
    assert run_names(named) == ["one", "two", "zero"]
    assert run_names([dataclasses.replace(one, execution={}) for one in several])[:2] == ["dis (1)", "dis (2)"]


def test_arguments_that_runs_share_are_written_once():
    page = write_report([patch_run("sift"), patch_run("orb")])
    assert '<th scope="row">seed</th><td colspan="2">0</td>' in page
    assert '<th scope="row">descriptor</th><td>sift</td><td>orb</td>' in page


def test_pictures_are_bounded_and_what_is_left_out_is_said(monkeypatch):
    monkeypatch.setattr(pictures, "MOST_BYTES", 3 * len(jpeg("red")))
    page = write_report(several_runs())
    assert page.count("data:image/jpeg;base64,") == 3
    assert "4 more cases are left out" in page


def test_a_case_without_its_image_leaves_the_place_empty():
    picture = ReportPicture("t", "c", panels=(PicturePanel("query", "Q", b""),))
    page = write_report([dataclasses.replace(patch_run("a"), pictures=(picture,))])
    assert "the image is gone" in page and 'aria-label="query: Q"' in page


def test_of_many_units_the_most_different_are_kept_and_some_of_the_rest():
    values = np.full((2, 50_000), 0.5)
    values[1, [7, 40_000]] = (0.9, 0.0)
    kept = chosen_units(values)
    assert len(kept) == MOST_UNITS and {7, 40_000} <= set(kept.tolist()) and len(set(kept.tolist())) == MOST_UNITS
    values[:, :49_990] = np.nan
    assert chosen_units(values).tolist() == list(range(49_990, 50_000))


def test_units_are_matched_by_name_and_only_where_two_runs_have_them():
    def run(name, units):
        own = UnitValues(FigureOf("Flat | None", "uAP"), "queries", tuple(units), np.array(list(units.values())))
        return Shown(manifest("disc2021", name), (), units=(own,))

    (section,) = sections_of([run("a", {"q": 0.25, "p": 1.0}), run("b", {"p": 0.5, "q": 0.75, "r": 0.1})])
    (figure,) = unit_data(section)["figures"]
    assert figure["names"] == ["q", "p"] and figure["values"] == [[0.25, 1.0], [0.75, 0.5]]
    (section,) = sections_of([run("a", {"q": 0.25})])
    assert unit_data(section) is None


def test_a_runs_own_page_is_written_in_no_time():
    run = copy_run("sscd", (1.0, 0.0, 0.5, 0.2))
    write_report([run])
    start = time.perf_counter()
    write_report([run])
    assert time.perf_counter() - start < 0.3
