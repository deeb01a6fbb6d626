"""Styles, scripts and data as parts of the page, and the policy that keeps it from asking for more."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from importlib.resources import files
from typing import Any

from raybench.runs.report.markup import Html, element
from raybench.visible import visible

# In the order in which they are put together: libraries, then what others use, then what starts it all.
SCRIPTS = ("uplot.min.js", "base.js", "charts.js", "tables.js", "curves.js", "differences.js", "gallery.js", "page.js")
STYLES = ("uplot.min.css", "page.css", "parts.css")
# What an HTML parser, or JavaScript of old, would see in the text of the data.
IN_JSON = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&\u2028\u2029"}


def style() -> str:
    """The styles, one behind the other."""
    return "\n".join(map(_read, STYLES))


def script() -> str:
    """The scripts in one scope: ours see each other and the library, the page's global scope sees none of ours."""
    library, *own = map(_read, SCRIPTS)
    return f'{library}\n(() => {{\n"use strict";\n{"".join(own)}}})();\n'


def policy(style_text: str, script_text: str) -> Html:
    """Nothing may be loaded, from anywhere; this style and this script may be used, and images that are in the page."""
    rules = (
        "default-src 'none'",
        f"style-src '{_hash(style_text)}'",
        f"script-src '{_hash(script_text)}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return element("meta", http_equiv="Content-Security-Policy", content=Html("; ".join(rules)))


def data_block(data: Any) -> Html:
    """Data for the scripts: names as they are shown, numbers finite, nothing that ends the element."""
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return element("script", Html(text.translate(IN_JSON)), type="application/json", id="page-data")


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {visible(key): _plain(own) for key, own in value.items()}
    return [_plain(own) for own in value] if isinstance(value, list | tuple) else value


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    return (files("raybench.runs.report") / "assets" / name).read_text(encoding="utf-8")
