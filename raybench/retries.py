"""Requests to a store that fail: tried again if that may help, said at once if it can't.

A store that throttles, errs inside, cuts an answer short or is away is asked again with growing, jittered pauses, for
about a minute; then it is a StorageUnavailable, and whoever asked decides how long to wait for it. Wrong credentials, a
missing bucket and a refused permission become a StorageError that says what to do. This is the only loop: what
libraries bring of their own is switched off, or their tries would multiply with these.
"""

from __future__ import annotations

import errno
import logging
import random
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import urlsplit

from raybench.errors import RaybenchError, StorageError, StorageUnavailable, reason_of
from raybench.masking import masked

R = TypeVar("R")

TRY_SECONDS = 60.0  # from the first failure of a request
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 8.0
SAY_AFTER_SECONDS = 10.0

REFUSED_KEYS = ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired")
PASSING_STATUSES = (408, 429, 500, 502, 503, 504)
PASSING_CODES = ("BadDigest", "IncompleteBody", "RequestTimeout", "XAmzContentSHA256Mismatch")  # damaged on the way
REMOTE_IO = getattr(errno, "EREMOTEIO", errno.EIO)  # Linux has it: s3fs gives it to an error inside the store
PASSING_ERRNOS = (errno.EBUSY, errno.EAGAIN, errno.ETIMEDOUT, errno.EIO, errno.ESTALE, REMOTE_IO)
PASSING_SIGNS = ("SlowDown", "Throttl", "Timeout", "timed out", "Connect", "ServiceUnavailable", "InternalError")
PASSING_TYPES = ("ClientPayloadError", "IncompleteRead", "ResponseParserError", "HTTPClientError", "ServerDisconnected")


def with_retries(uri: str, action: Callable[[], R]) -> R:
    """The action's result; a missing file is a FileNotFoundError, what the user can mend a StorageError."""
    began: float | None = None
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return action()
        except RaybenchError:
            raise
        except (IsADirectoryError, NotADirectoryError) as error:
            raise StorageError(f"{uri}: {error.strerror or error}; expected a file") from error
        except FileNotFoundError as error:
            if "://" in uri and "bucket does not exist" in str(error):
                raise StorageError(f"{uri}: the bucket does not exist; make it or mend the name") from error
            raise
        except Exception as error:
            reason = _final_reason(error)
            if reason is not None:
                raise StorageError(f"{uri}: {reason}") from error
            if not _may_pass(error):
                raise
            now = time.monotonic()
            began = now if began is None else began
            if now - began + pause > TRY_SECONDS:
                raise StorageUnavailable(
                    f"{uri}: no good answer for {now - began:.0f} seconds (the last: {_shown(error)}); "
                    "check the store and the network, then run the same command again"
                ) from error
            if now - began > SAY_AFTER_SECONDS:
                _say(_store_of(uri), int(now // TRY_SECONDS), _shown(error))
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _final_reason(error: Exception) -> str | None:
    """Why trying again is useless, in words; None if it may help."""
    name, text, code = type(error).__name__, _shown(error), _answer(error)[0]
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
    if any(sign in f"{code} {text}" for sign in REFUSED_KEYS):
        return f"the credentials are refused ({text}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if isinstance(error, PermissionError):
        return f"permission denied ({text}); check the credentials in the environment and the permissions"
    if "NoSuchBucket" in text or "bucket does not exist" in text.lower():
        return f"the bucket does not exist ({text}); make it or mend the name"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"the server's certificate is not trusted ({text}); set AWS_CA_BUNDLE, or mend the address"
    return None


def _may_pass(error: Exception) -> bool:
    """Throttling, time-outs, lost connections, damaged answers and errors inside the store."""
    code, status = _answer(error)
    if status in PASSING_STATUSES or code in PASSING_CODES:
        return True
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno in PASSING_ERRNOS:
        return True
    names = " ".join(kind.__name__ for kind in type(error).__mro__)
    return any(sign in names for sign in PASSING_TYPES) or any(sign in f"{names} {error}" for sign in PASSING_SIGNS)


def _answer(error: Exception) -> tuple[str, int]:
    """The error code and the HTTP status in which a store refused a request, as far as botocore tells."""
    response: Any = getattr(error.__cause__ or error, "response", None)
    if not isinstance(response, dict):
        return "", 0
    code = str(response.get("Error", {}).get("Code", ""))
    return code, int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _shown(error: Exception) -> str:
    """What an error says, in one line; credentials, as in an endpoint's address, stay out of it."""
    return masked(reason_of(error))


def _store_of(uri: str) -> str:
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme else uri


@lru_cache(maxsize=64)
def _say(store: str, period: int, reason: str) -> None:
    """A line in the log, once per store, minute and reason: hundreds of requests may wait for the same store."""
    logging.getLogger(__name__).warning("%s: no good answer yet (%s); still trying", store, reason)
