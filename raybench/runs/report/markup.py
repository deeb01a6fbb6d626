"""HTML as nested elements: text is escaped unless it is `Html` already, so that no name from data becomes markup."""

from __future__ import annotations

from collections.abc import Iterable

from raybench.visible import in_html

VOID = {"img", "input", "meta", "col", "rect"}  # which have no end


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
Attribute = str | int | float | bool | None


def element(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """An element. `data_run=3` is `data-run="3"`, `class_` is `class`; None and False leave an attribute out.

    >>> element("b", "a<b", class_="x", hidden=True)
    '<b class="x" hidden>a&lt;b</b>'
    """
    given = "".join(_attribute(name, value) for name, value in attributes.items())
    inside = joined_html(children)
    return Html(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{inside}</{tag}>")


def joined_html(children: Iterable[Child]) -> Html:
    """Children one after the other; lists may be nested."""
    return Html("".join(map(_child, children)))


def folded(title: Child, *children: Child, **attributes: Attribute) -> Html:
    """What a reader unfolds."""
    return element("details", element("summary", title), *children, **attributes)


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{value if isinstance(value, Html) else in_html(str(value))}"'


def _child(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return in_html(str(child))
    return joined_html(child)
