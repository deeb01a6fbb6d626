"""The page in a real browser: it works, asks for nothing, and complains of nothing."""

import pytest
from browser import Browser, chromium
from report_pages import ATTACK, pairs_run, patch_run, several_runs

from raybench.runs.report.page import write_report

pytestmark = pytest.mark.skipif(
    chromium() is None, reason="no Chromium here (chromium, chromium-browser, google-chrome)"
)
TABLE = "#b0 .board .view:not([hidden]) table"
SHOWN = (
    "[...document.querySelectorAll('#b1 .card')].filter((card) => card.offsetParent)"
    ".map((card) => card.dataset.unit + card.dataset.run)"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(write_report(several_runs()))
    return path


@pytest.fixture(scope="module")
def browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture
def opened(browser, page):
    """The page, freshly loaded; whatever a test did there, nothing was asked for and nothing went wrong."""
    browser.requests.clear()
    browser.errors.clear()
    browser.open(page)
    yield browser
    assert browser.errors == []
    assert {url for url in browser.requests if not url.startswith("data:")} == {f"file://{page}"}


def words(browser, selector):
    return browser.do(f"[...document.querySelectorAll({selector!r})].map((one) => one.textContent)")


def choose(browser, selector, value):
    browser.do(
        f"(() => {{ const select = document.querySelector({selector!r}); select.value = {value!r};"
        "select.dispatchEvent(new Event('change')); })()"
    )


def click(browser, selector):
    browser.do(f"document.querySelector({selector!r}).click()")


@pytest.mark.parametrize("part", ["b1", "cite"])
@pytest.mark.parametrize("how", ["click", "address"])
def test_a_link_leads_to_its_part_though_what_it_passes_is_drawn_only_then(opened, page, part, how):
    if how == "click":
        click(opened, f"nav a[href='#{part}']")
    else:
        opened.call("Page.navigate", url="about:blank")
        opened.open(f"{page}#{part}")
    opened.wait(
        f"Math.abs(document.getElementById('{part}').getBoundingClientRect().top) < 60"
        " || innerHeight + scrollY > document.documentElement.scrollHeight - 2"
    )


def test_a_click_on_a_heading_sorts_and_a_second_one_turns_it_round(opened):
    names = f"{TABLE} tbody th"
    assert words(opened, names) == ["meanstd", "sift", "orb"]
    click(opened, f"{TABLE} thead th:nth-child(3) button")
    assert words(opened, names) == ["orb", "sift", "meanstd"]
    click(opened, f"{TABLE} thead th:nth-child(3) button")
    assert words(opened, names) == ["meanstd", "sift", "orb"]
    assert opened.do(f"document.querySelector('{TABLE} thead th:nth-child(3)').ariaSort") == "ascending"


def test_another_figure_is_one_choice_away(opened):
    assert words(opened, f"{TABLE} caption") == ["ap, percent"]
    choose(opened, "#b0 .board [data-choose]", "auc")
    assert words(opened, f"{TABLE} caption") == ["auc, percent"]


def test_differences_to_a_chosen_run_stand_beside_its_figures(opened):
    choose(opened, "#b0 .board [data-baseline]", "2")
    assert words(opened, f"{TABLE} tbody tr:nth-child(2) .difference") == ["+20.00", "−5.00", "+7.50"]
    choose(opened, "#b0 .board [data-baseline]", "")
    assert words(opened, f"{TABLE} .difference") == []


def test_colours_of_differences_follow_what_is_better(browser, tmp_path):
    (tmp_path / "page.html").write_text(write_report([pairs_run("sift", 0.9), pairs_run("orb", 0.1)]))
    browser.open(tmp_path / "page.html")
    kinds = "[...document.querySelectorAll('.view:not([hidden]) .difference')].map((one) => one.className)"
    found = {}
    for run in ("0", "1"):
        choose(browser, "[data-baseline]", run)
        found[words(browser, ".view:not([hidden]) .difference")[0]] = browser.do(kinds)
    assert found == {"−80.00": ["difference better"], "+80.00": ["difference worse"]}
    choose(browser, "[data-choose]", "ap")
    assert browser.do(kinds) == ["difference"], "equal ones have no colour"


@pytest.mark.parametrize("width", [1300, 700, 360])
def test_names_below_the_overview_are_whole(browser, tmp_path, width):
    runs = [pairs_run("sift", 0.9), *several_runs()[-1:], patch_run("sift")]
    (tmp_path / "page.html").write_text(write_report(runs))
    browser.open(tmp_path / "page.html", width=width)
    browser.wait("document.querySelector('.overview canvas')")
    browser.do(
        """(() => {
          const draw = CanvasRenderingContext2D.prototype.fillText;
          window.drawn = {};
          CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            const wide = this.measureText(text).width;
            const from = this.textAlign === "right" ? x - wide : this.textAlign === "center" ? x - wide / 2 : x;
            const ends = [from, from + wide].map((end) => this.getTransform().transformPoint({ x: end, y }));
            const { width, height } = this.canvas;
            window.drawn[text] = ends.every((one) => one.x >= 0 && one.x <= width && one.y >= 0 && one.y <= height);
            draw.call(this, text, x, y);
          };
          document.querySelector('.overview .chart').chart.redraw();
        })()"""
    )
    names = ["patch-pairs", "(less is better)", "hbench-classification", "disc2021"]
    with_name = "Object.keys(window.drawn).filter((text) => text.includes(name))"
    browser.wait(f"{names}.every((name) => {with_name}.length)")
    assert browser.do(f"{names}.map((name) => {with_name}.every((text) => window.drawn[text]))") == [True] * 4


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("markdown", "| sift | **90.00 [80.00–95.00]** | _80.00_ | **85.00** |"),
        ("latex", r"sift & \textbf{90.00 [80.00--95.00]} & \underline{80.00} & \textbf{85.00} \\"),
        ("csv", "sift,0.9,0.8,0.85"),
    ],
)
def test_a_copied_table_is_what_is_shown(opened, kind, row):
    opened.do("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    click(opened, f"#b0 .board [data-copy={kind}]")
    opened.wait("'copied' in window")
    lines = opened.do("window.copied").splitlines()
    assert row in lines and sum("meanstd" in line for line in lines) == 1


def test_curves_are_drawn_and_a_run_can_be_hidden(opened):
    opened.do("document.querySelector('#b0-curves').scrollIntoView()")
    opened.wait("document.querySelector('#b0 .curves canvas')")
    chart = "document.querySelector('#b0 .curves .chart').chart"
    assert opened.do(f"{chart}.series.map((one) => one.show).join()") == "true,true,true,true"
    click(opened, "#b0 .curves .run-box input")
    assert opened.do(f"{chart}.series[1].show") is False
    assert words(opened, "#b0 .point tbody th") == ["sift", "orb"]


def test_the_operating_point_follows_the_slider_and_curves_switch_to_roc(opened):
    opened.do("document.querySelector('#b0-curves').scrollIntoView()")
    opened.wait("document.querySelector('#b0 .curves canvas')")
    before = words(opened, "#b0 .point tbody td")
    opened.do(
        "(() => { const one = document.querySelector('#b0 .slider input'); one.value = 20;"
        "one.dispatchEvent(new Event('input')); })()"
    )
    assert words(opened, "#b0 .slider output") == ["20 %"]
    assert words(opened, "#b0 .point tbody td") != before
    click(opened, "[data-curve=roc]")
    assert opened.do("document.querySelector('#b0 .curves .chart').chart.axes[0].label").startswith("false positive")


def test_the_gallery_keeps_the_kind_and_the_cases_that_are_asked_for(opened):
    assert len(opened.do(SHOWN)) == 6
    click(opened, "#b1 [data-kind='false alarm']")
    assert opened.do(SHOWN) == ["Q13", "Q14"]
    click(opened, "#b1 .chips [data-kind='']")
    choose(opened, "#b1 [data-better]", "3")
    assert opened.do(SHOWN) == ["Q04"]  # which is worth more by run 3 than by run 4


def test_a_case_opens_large_arrows_walk_and_escape_closes(opened):
    is_open = "document.getElementById('viewer').open"
    click(opened, "#b1 .card .open")
    assert opened.do(is_open) is True
    first = words(opened, "#viewer .words")
    opened.press("ArrowRight")
    assert words(opened, "#viewer .words") != first
    opened.press("ArrowLeft")
    assert words(opened, "#viewer .words") == first
    opened.press("Escape")
    opened.wait(f"{is_open} === false")


def test_images_that_are_in_the_page_once_are_shown_everywhere(opened, page):
    assert page.read_text().count("data:image/jpeg;base64,") == 4
    loaded = "[...document.querySelectorAll('.card img')].map((one) => one.complete && one.naturalWidth)"
    opened.wait(f"{loaded}.every((width) => width === 32)")
    assert opened.do(loaded) == [32] * 18


def test_where_two_runs_differ_leads_to_the_case(opened):
    assert words(opened, "#b1 .lists h4")[0] == "better with sscd: 1"
    click(opened, "#b1 .lists button")
    assert opened.do("document.querySelector('#viewer .words b').textContent") == "missed: Q0"
    opened.do("document.getElementById('viewer').close()")
    opened.do("document.querySelector('#b1-differences').scrollIntoView()")
    opened.wait("document.querySelector('#b1 .differences canvas')")


def test_names_are_text_wherever_scripts_put_them(opened):
    assert words(opened, "#b1 .differences option")[:2] == ["sscd", ATTACK.rpartition("/")[2]]
    assert ATTACK in words(opened, "#b1 .lists td")
    assert opened.do("document.querySelectorAll('img[src=x]').length") == 0


def test_dark_is_what_the_system_says_until_the_reader_says_otherwise(opened, page):
    paper = "getComputedStyle(document.documentElement).getPropertyValue('--paper').trim()"
    light = opened.do(paper)
    click(opened, "#theme")
    dark = opened.do(paper)
    assert dark != light and opened.do("document.getElementById('theme').ariaPressed") == "true"
    opened.open(page, scheme="dark")
    assert opened.do(paper) == dark
    click(opened, "#theme")
    assert opened.do(paper) == light


def test_a_phone_never_scrolls_sideways(opened, page):
    opened.open(page, width=360, height=740)
    opened.do("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert opened.do("document.documentElement.scrollWidth") <= 360


def test_the_keyboard_reaches_the_figures_first(opened):
    opened.press("Tab")
    assert opened.do("document.activeElement.textContent") == "Skip to the figures"
    opened.press("Enter")
    opened.wait("document.activeElement.id === 'main'")


def test_on_paper_notes_are_unfolded_and_the_rest_stays_away(opened):
    opened.do("window.dispatchEvent(new Event('beforeprint'))")
    assert opened.do("document.querySelector('#b0 .published').open") is True
    assert opened.do("document.querySelector('#b0-more details').open") is False
    opened.do("window.dispatchEvent(new Event('afterprint'))")
    assert opened.do("document.querySelector('#b0 .published').open") is False


def test_every_image_and_control_has_a_name(opened):
    nameless = (
        "[...document.querySelectorAll('button, select, input, img')].filter((one) => !(one.alt || one.ariaLabel ||"
        "one.textContent.trim() || one.closest('label')?.textContent.trim() || one.placeholder)).length"
    )
    assert opened.do(nameless) == 0
