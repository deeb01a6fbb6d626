"""Requests to a store that fail: tried again if that may help, said at once if it can't.

Throttling and time-outs are tried again with growing, jittered pauses; wrong credentials, a missing bucket and a
refused permission become a StorageError that says what to do.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable
from typing import TypeVar

from raybench.errors import StorageError, StorageUnavailable

R = TypeVar("R")

ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.2


def with_retries(uri: str, action: Callable[[], R]) -> R:
    """The action's result; a missing file is a FileNotFoundError, what the user can mend a StorageError."""
    for attempt in range(ATTEMPTS):
        try:
            return action()
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
            if attempt == ATTEMPTS - 1:
                raise StorageUnavailable(f"{uri}: still failing after {ATTEMPTS} tries ({error})") from error
            time.sleep(FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.5))
    raise AssertionError("the last attempt returns or raises")


def _final_reason(error: Exception) -> str | None:
    """Why trying again is useless, in words; None if it may help."""
    name, text = type(error).__name__, str(error)
    if name in ("NoCredentialsError", "PartialCredentialsError"):
        return "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
    if any(sign in text for sign in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken")):
        return f"the credentials are refused ({text}); check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if isinstance(error, PermissionError):
        return f"permission denied ({text}); check the credentials in the environment and the permissions"
    if "NoSuchBucket" in text or "bucket does not exist" in text.lower():
        return f"the bucket does not exist ({text}); make it or mend the name"
    return None


def _may_pass(error: Exception) -> bool:
    """Throttling, time-outs and lost connections."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EAGAIN, errno.ETIMEDOUT, errno.EIO):
        return True
    signs = ("SlowDown", "Throttl", "Timeout", "timed out", "Connect", "ServiceUnavailable", "InternalError")
    return any(sign in f"{type(error).__name__} {error}" for sign in signs)
