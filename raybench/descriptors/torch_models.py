"""What all networks in torch share: exact settings, TorchScript files, the check of outputs.

torch is imported on first use, since that takes seconds.
"""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Any

from raybench.descriptors.model_errors import blamed_on_model
from raybench.errors import DataError, reason_of
from raybench.formats.torch_files import check_archive

if TYPE_CHECKING:
    import torch


def settle_torch(tf32: bool = False) -> None:
    """Settings under which a row is the same on every worker: no search for the fastest kernel, one thread, and TF32
    off unless it is asked for. They are the process's, which may have served another stage: set them before each use.

    Else the last bits, and with TF32 the last thirteen, depend on the GPU's model and on what ran before. One thread,
    since the engine runs one process per core, and sums that threads share are rounded by their number.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = False
    torch.set_num_threads(1)


def load_torchscript(path: str, device: str) -> torch.jit.ScriptModule:
    """The network in a TorchScript file, in evaluation mode."""
    import torch

    if not pathlib.Path(path).is_file():
        raise DataError(f"{path}: no such file; expected a TorchScript model")
    try:
        check_archive(path)
        jit: Any = torch.jit  # torch leaves `load` without types
        model: torch.jit.ScriptModule = jit.load(path, map_location=device)
    except Exception as cause:  # damaged archives make it raise anything, a MemoryError for an absurd size, too
        raise DataError(
            f"{path}: can't be loaded as TorchScript on {device} ({reason_of(cause)}); "
            "a state_dict or a pickled model must be exported first: torch.jit.trace(model, batch).save(path)"
        ) from cause
    return model.eval()


def run_as_it_is(model: Any, values: torch.Tensor, path: str) -> object:
    """The network's answer, without the optimiser that fuses a TorchScript's kernels after some calls: a row would
    depend on how many batches the process had seen before. Raises DataError if it does not take such input."""
    import torch

    jit: Any = torch.jit  # torch leaves `optimized_execution` without types
    with jit.optimized_execution(False), blamed_on_model(path, tuple(values.shape)):
        output: object = model(values)
    return output


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
