"""What all networks in torch share: exact settings, TorchScript files, the way onto the device, the check of outputs.

torch is imported on first use, since that takes seconds.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError, reason_of

if TYPE_CHECKING:
    import torch


def exact_torch() -> None:
    """Settings under which a row is the same on every worker: no TF32, no search for the fastest kernel, one thread.

    Else the last bits, and with TF32 the last ten, depend on the GPU's model and on what ran before. One thread, since
    the engine runs one process per core, and sums that threads share are rounded by their number.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)


def load_torchscript(path: str, device: str) -> torch.jit.ScriptModule:
    """The network in a TorchScript file, in evaluation mode."""
    import torch

    exact_torch()
    if not pathlib.Path(path).is_file():
        raise DataError(f"{path}: no such file; expected a TorchScript model")
    try:
        jit: Any = torch.jit  # torch leaves `load` without types
        model: torch.jit.ScriptModule = jit.load(path, map_location=device)
    except (RuntimeError, ValueError) as cause:
        raise DataError(
            f"{path}: can't be loaded as TorchScript on {device} ({reason_of(cause)}); "
            "a state_dict or a pickled model must be exported first: torch.jit.trace(model, batch).save(path)"
        ) from cause
    return model.eval()


def uploaded(batch: NDArray[Any], device: str) -> torch.Tensor:
    """A batch on the device; to CUDA from pinned memory, without waiting for the copy."""
    import torch

    on_cuda = device != "cpu"
    dtype = torch.from_numpy(np.empty(0, batch.dtype)).dtype
    host = torch.empty(batch.shape, dtype=dtype, pin_memory=on_cuda)
    host.numpy()[...] = batch  # what comes from Ray's object store is read-only, of which from_numpy warns
    return host.to(device, non_blocking=True) if on_cuda else host


def checked_output(output: object, count: int, shape: tuple[int, ...], path: str) -> torch.Tensor:
    """A model's answer to `count` inputs of this shape, if it is one row each."""
    import torch

    if not isinstance(output, torch.Tensor):
        raise DataError(f"{path}: expected one tensor from the model, found {type(output).__name__}")
    if output.ndim != 2 or len(output) != count:
        raise DataError(
            f"{path}: expected ({count}, dim) from a batch of shape {shape}, "
            f"found {tuple(output.shape)}; flatten the model's output before exporting it"
        )
    return output
