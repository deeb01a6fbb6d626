"""Pictures of cases, worst mistakes first, as cards with words in HTML. Equal images are in the page once."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.runs.report.leaderboard import dot
from raybench.runs.report.markup import Html, element
from raybench.runs.report.pictures import Chosen
from raybench.runs.report.shown import NamedRun, Section

MOST_BESIDE = 3  # panels of a card of usual width
KINDS = ("missed", "false alarm", "worst", "best", "right")


class PageImages:
    """The images of a page: the first of equal ones carries the bytes, later ones name it."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def image(self, jpeg: bytes, alt: str) -> Html:
        """An `<img>`, or the place of one that is gone."""
        if not jpeg:
            return element("span", "the image is gone", class_="gone", role="img", aria_label=alt)
        digest = hashlib.sha256(jpeg).digest()
        if digest in self._known:
            return element("img", alt=alt, data_same=self._known[digest], decoding="async")
        self._known[digest] = f"im{len(self._known)}"
        source = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
        return element("img", src=Html(source), alt=alt, id=self._known[digest], decoding="async")


def gallery(
    section: Section, pictures: Sequence[Chosen], left_out: int, images: PageImages, compared: bool
) -> Html | None:
    """The cards of a benchmark's chosen pictures, with filters; None without pictures.

    `compared` says whether it is known what units are worth by two runs.
    """
    if not pictures:
        return None
    cards = [_card(run, picture, images) for run, picture in pictures]
    words = f"{left_out} more cases are left out, so that the page stays small; a report of fewer runs shows them."
    return element(
        "div",
        _filters(section.runs, pictures, compared),
        element("ul", cards, class_="cards"),
        element("button", "Show all", type="button", class_="all-cases", hidden=True),
        element("p", words, class_="quiet small") if left_out else None,
        class_="gallery",
    )


def _filters(runs: Sequence[NamedRun], pictures: Sequence[Chosen], compared: bool) -> Html:
    present = {picture.kind for _, picture in pictures}
    kinds = [kind for kind in KINDS if kind in present]
    buttons = [element("button", "all", type="button", data_kind="", aria_pressed="true")]
    buttons += [element("button", kind, type="button", data_kind=kind, aria_pressed="false") for kind in kinds]
    named = list(dict.fromkeys((run.colour, run.name) for run, _ in pictures))
    chips = element("span", buttons, class_="chips", role="group", aria_label="kind of case")
    count = element("span", class_="quiet count", aria_live="polite")
    if len(runs) < 2:
        return element("div", chips if kinds else None, count, class_="tools")
    options = [element("option", name, value=colour) for colour, name in named]
    whose = element("select", element("option", "all", value=""), options, data_whose=True)
    every = [element("option", run.name, value=run.colour) for run in runs]
    better = element("select", element("option", "any", value=""), every, data_better=True)
    return element(
        "div",
        chips if kinds else None,
        element("label", "Cases of", whose),
        element("label", "which went better with", better) if compared else None,
        count,
        class_="tools",
    )


def _card(run: NamedRun, picture: ReportPicture, images: PageImages) -> Html:
    panels = picture.panels or (PicturePanel("", "", picture.jpeg),)
    shown = [_panel(panel, picture, images) for panel in panels]
    words = element(
        "p", element("b", picture.title), " ", picture.caption, element("span", dot(run), run.name, class_="whose")
    )
    opener = element("button", shown, type="button", class_="open", aria_label=f"Open large: {picture.title}")
    return element(
        "li",
        opener,
        words,
        class_="card" if 0 < len(picture.panels) <= MOST_BESIDE else "card wide",
        data_run=run.colour,
        data_kind=picture.kind,
        data_unit=picture.unit,
        data_row=picture.row,
    )


def _panel(panel: PicturePanel, picture: ReportPicture, images: PageImages) -> Html:
    alone = not picture.panels
    alt = picture.alt or picture.caption or picture.title if alone else f"{panel.label}: {panel.name}"
    mark = {True: "panel right", False: "panel wrong", None: "panel"}[panel.right]
    label = None if alone else element("span", panel.label, class_="label")
    name = None if alone else element("span", panel.name, class_="file")
    return element("span", images.image(panel.jpeg, alt), label, name, class_=mark)
