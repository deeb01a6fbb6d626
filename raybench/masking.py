"""Credentials in words: what looks like one is masked before it is shown or written, or refused as an argument.

Libraries put whole URLs into their errors, signature and all. Masked are logins and signed queries of URLs, headers
that authorize, and the values of environment variables that are named like a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

MASK = "…"
LEAST_LENGTH = 8  # of a value that is taken for a secret: shorter ones are words such as `token` or `cls`
SECRET_WORDS = {"token", "secret", "password", "passwd", "passphrase", "credential", "credentials", "apikey", "sas"}
KEY_WORDS = {"api", "access", "account", "auth", "private", "secret", "storage", "encryption"}  # before `key`

PATTERNS = [
    # A password may hold a slash; only web addresses have ports, whose colon looks like a login's.
    (re.compile(r"\b((?!https?:)[a-z][a-z0-9+.-]*://)[^\s/:@]*:[^\s@]*@", re.IGNORECASE), rf"\1{MASK}@"),
    (re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s/@]+@", re.IGNORECASE), rf"\1{MASK}@"),
    (
        re.compile(
            r"\b((?:x-(?:amz|goog|ms)-)?(?:signature|credential|security-token)|access_?token|AWSAccessKeyId"
            r"|AccountKey|SharedAccessKey|SharedAccessSignature|password|passwd|secret)=[^&\s;,'\"<>)]+",
            re.IGNORECASE,
        ),
        rf"\1={MASK}",
    ),
    (re.compile(r"([?&](?:sig|token|key|auth|code|api_?key)=)[^&\s;,'\"<>)]+", re.IGNORECASE), rf"\1{MASK}"),
    (re.compile(r"\b(authorization|x-amz-security-token)(['\"]?\s*[:=]\s*)[^\n]+", re.IGNORECASE), rf"\1\2{MASK}"),
    (re.compile(r"\b(bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{MASK}"),
]


def masked(text: str) -> str:
    """The text without what looks like a credential.

    >>> masked("GET https://me:pass@host/a.png?X-Amz-Signature=f00&n=1 failed")
    'GET https://…@host/a.png?X-Amz-Signature=…&n=1 failed'
    """
    for value in environment_secrets().values():
        text = text.replace(value, MASK)
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    return text


def credential_in(name: str, value: Any) -> str | None:
    """Which credential an argument carries, in words; None if it has none."""
    for words, text in _texts(name, value):
        if words != name and len(text) >= LEAST_LENGTH and is_named_secret(words.rpartition(" ")[2]):
            return f"{words} is named like a credential"
        for variable, secret in environment_secrets().items():
            if secret in text:
                return f"{words} holds the value of {variable}"
        if masked(text) != text:
            return f"{words} holds a password or a signature"
    return None


def is_named_secret(name: str) -> bool:
    """Whether a name is that of a secret.

    >>> [is_named_secret(name) for name in ("HF_TOKEN", "apiKey", "cls_tokens", "AWS_ACCESS_KEY_ID", "key")]
    [True, True, False, False, False]
    """
    *before, last = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", name) or [""]
    last = last.lower()
    return last in SECRET_WORDS or (last == "key" and bool(before) and before[-1].lower() in KEY_WORDS)


def environment_secrets() -> Mapping[str, str]:
    """The environment variables that are named like a secret, the longest value first."""
    found = {name: value for name, value in os.environ.items() if len(value) >= LEAST_LENGTH and is_named_secret(name)}
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def _texts(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Every text in a value, with the words for where it is."""
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(f"{name} {key}", inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(name, inner)
