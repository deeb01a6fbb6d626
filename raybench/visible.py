"""Text from data on its way to a person: what a terminal or a page would obey, or can't show, becomes its escape.

Names of files, tasks and images are whatever their makers chose: they may hold terminal commands, line ends, marks that
turn the order of letters round, or bytes that are no UTF-8.
"""

from __future__ import annotations

import re

# Control characters, marks of writing direction, line and paragraph ends, and what stands for bytes that are no UTF-8.
OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
# How text is written into files as UTF-8: a lone surrogate, which has none, as its escape, which JSON reads back.
AS_ESCAPES = "backslashreplace"


def visible(text: str) -> str:
    r"""The text in one line, nothing in it but letters to look at.

    >>> visible("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return OBEYED.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_lines(text: str) -> str:
    """The same for text whose line ends are ours."""
    return "\n".join(map(visible, text.split("\n")))


def in_html(text: str) -> str:
    """Text for an element or a quoted attribute of a page, line ends kept."""
    import html  # which brings 2,000 names of letters that `raybench --help` has no use for

    return html.escape(visible_lines(text))
