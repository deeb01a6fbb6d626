"""Digests: the one way in which inputs, parameters and stages get their names.

A digest is XXH3-128 over canonical JSON, with arrays and bytes by their content: made to tell versions apart at the
speed of memory, not to withstand forgery. What has a `digest` of its own counts by that, another dataclass by its
fields, so no list of fields is written by hand. If something can be stale, its digest lacks an input.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from xxhash import xxh3_128, xxh3_128_hexdigest


def digest_of(*parts: Any) -> str:
    """The digest of JSON-like values, arrays, bytes and frozen dataclasses of these, in this order.

    >>> digest_of("a", 1) == digest_of("a", 1), digest_of("a", 1) == digest_of("a", "1")
    (True, False)
    """
    return digest_of_bytes(json.dumps(parts, sort_keys=True, default=_by_content).encode())


def digest_of_bytes(data: bytes | memoryview) -> str:
    """The digest of a file's content."""
    return xxh3_128_hexdigest(data)


def digest_of_parts(parts: Iterable[bytes]) -> str:
    """The same of a content that comes in parts.

    >>> digest_of_parts([b"a", b"b"]) == digest_of_bytes(b"ab")
    True
    """
    whole = xxh3_128()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _by_content(value: Any) -> Any:
    own = getattr(value, "digest", None)
    if isinstance(own, str):
        return ["digest", own]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return ["dataclass", type(value).__qualname__, fields]
    if isinstance(value, range | slice):
        return [type(value).__name__, value.start, value.stop, value.step]
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        return ["array", content.dtype.str, content.shape, digest_of_bytes(content.tobytes())]
    if isinstance(value, bytes):
        return ["bytes", digest_of_bytes(value)]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"no digest for {type(value).__name__}")
