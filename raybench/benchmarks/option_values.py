"""Values given for options, in a Python call or a file, as the options have them; what does not fit is refused.

The command line's own values pass unchanged: click has read them by the same kinds.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Mapping
from typing import Any

from raybench.benchmarks.options import Option
from raybench.errors import ConfigError, quoted, suggestion

SEVERAL = (list, tuple)


def fitting(known: Option, value: Any) -> Any:
    """A value as the option has it: paths become text, a list becomes a tuple or the text that it stands for.

    Raises ConfigError for a value of another kind, or beyond what the option takes.
    """
    if known.several:
        return tuple(_text(known, one) for one in (value if isinstance(value, SEVERAL) else [value]))
    if known.separator and isinstance(value, SEVERAL):
        return known.separator.join(_text(known, one) for one in value)
    read = {str: _text, int: _whole_number, float: _number, bool: _truth, dict: _object}[known.kind]
    return read(known, value)


def _text(known: Option, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | os.PathLike | int | float):
        raise _unfit(known, "one text", value)
    text = str(value)
    if known.choices and text not in known.choices:
        words = f"one of {', '.join(known.choices)}"
        raise ConfigError(f"--{known.name} {text}: expected {words}{suggestion(text, known.choices)}")
    return text


def _whole_number(known: Option, value: Any) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise _unfit(known, "a whole number", value) from None
    if isinstance(value, bool):
        raise _unfit(known, "a whole number", value)
    if known.least is not None and number < known.least:
        raise ConfigError(f"--{known.name} {number}: expected {known.least} or more")
    return number


def _number(known: Option, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unfit(known, "a number", value)
    return float(value)


def _truth(known: Option, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _unfit(known, "true or false", value)
    return value


def _object(known: Option, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _unfit(known, 'an object such as {"size": 32}', value)
    return dict(value)


def _unfit(known: Option, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"--{known.name}: expected {expected}, found {quoted(str(value))}")
