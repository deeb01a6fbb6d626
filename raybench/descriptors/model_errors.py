"""A network in a file that does not take its input: the file's fault, told in one line and not tried again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from raybench.errors import DataError

OF_MACHINES = ("CUDA", "cuDNN", "CUBLAS", "NVIDIA", "llocat", "memory")  # signs of an error that is no model's


@contextmanager
def blamed_on_model(path: str, shape: tuple[int, ...]) -> Iterator[None]:
    """Raise that a network fails on a batch of this shape, (n, channels, …), as a DataError.

    What a machine lacks passes, and so do errors of torch.compile, which have types of their own.
    """
    try:
        yield
    except Exception as cause:
        is_plain = type(cause) in (RuntimeError, ValueError) or type(cause).__module__.startswith("onnxruntime")
        if not is_plain or any(sign in str(cause) for sign in OF_MACHINES):
            raise
        last = next((line.strip() for line in reversed(str(cause).splitlines()) if line.strip()), "no reason")
        what = {1: "grey patches", 3: "RGB images"}[shape[1]]
        raise DataError(
            f"{path}: fails on a batch of {what}, {shape} ({last.removeprefix('RuntimeError: ')}); "
            "give a model that was exported for such input"
        ) from cause
