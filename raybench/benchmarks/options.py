"""Options: fields of frozen dataclasses. The command line, `--config` keys and Python arguments are made from them.

A field is declared once, with its default, its text for `--help` and its group. Nothing here knows the command line.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

GROUPS = ("input", "method", "protocol", "execution")


@dataclass(frozen=True)
class Option:
    """What an option is to whoever shows or parses it. `default_words` stand where the default is not a plain value."""

    key: str
    text: str
    group: str
    kind: type  # str, int, float, bool, dict (a JSON object)
    default: Any
    default_words: str
    choices: tuple[str, ...]
    several: bool  # a tuple: may be given several times, or with commas
    is_uri: bool
    least: int | None
    separator: str  # between several values in one text; a list is joined by it

    @property
    def name(self) -> str:
        return self.key.replace("_", "-")


def option(
    default: Any,
    text: str,
    group: str,
    *,
    default_words: str = "",
    choices: Iterable[str] = (),
    is_uri: bool = False,
    least: int | None = None,
    separator: str = "",
) -> Any:
    """A field of an options dataclass. Its kind is its annotation: `int`, `str | None`, `tuple[str, ...]`, `dict`."""
    facts = {
        "text": text,
        "group": group,
        "default_words": default_words,
        "choices": tuple(choices),
        "is_uri": is_uri,
        "least": least,
        "separator": separator,
    }
    return field(default_factory=dict, metadata=facts) if default is dict else field(default=default, metadata=facts)


def options_of(declared: type) -> list[Option]:
    """The options that a dataclass declares, in order; fields that are none are passed over."""
    hints = typing.get_type_hints(declared)
    found = []
    for one in dataclasses.fields(declared):
        if one.metadata:
            kind, several = _kind(hints[one.name])
            default = {} if one.default is dataclasses.MISSING else one.default
            found.append(Option(key=one.name, kind=kind, several=several, default=default, **one.metadata))
    return found


def asked(options: Any, keys: Iterable[str] | None = None) -> list[str]:
    """The names, as `--name`, of those options that are not at their default."""
    known = options_of(type(options))
    given = [one for one in known if getattr(options, one.key) != one.default and (keys is None or one.key in keys)]
    return [f"--{one.name}" for one in given]


def _kind(hint: Any) -> tuple[type, bool]:
    """The plain type of a value, and whether there may be several."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (one for one in typing.get_args(hint) if one is not type(None))
    if typing.get_origin(hint) is tuple:
        return typing.get_args(hint)[0], True
    return typing.get_origin(hint) or hint, False
