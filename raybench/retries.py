"""What an error of an object store means: useless to try again, and why, or likely to pass."""

from __future__ import annotations

import errno


def final_reason(error: Exception) -> str | None:
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


def may_pass(error: Exception) -> bool:
    """Throttling, time-outs and lost connections."""
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    if isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EAGAIN, errno.ETIMEDOUT, errno.EIO):
        return True
    signs = ("SlowDown", "Throttl", "Timeout", "timed out", "Connect", "ServiceUnavailable", "InternalError")
    return any(sign in f"{type(error).__name__} {error}" for sign in signs)
