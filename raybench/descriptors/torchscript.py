"""A TorchScript file as a patch descriptor: grey patches in, one row a patch out.

The file must hold a module that maps float32 (n, 1, side, side) to (n, dim). Where it came from, how it was
trained and what its digest is are not known here. torch is imported on first use, since that takes seconds.
"""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.pixels import resized, standardised
from raybench.errors import ConfigError, DataError

if TYPE_CHECKING:
    import torch

FIXED_SCALES = {"none": (1.0, 0.0, 1.0), "unit": (255.0, 0.0, 1.0)}  # divisor, mean, standard deviation


def _scale(normalise: str) -> tuple[float, float, float] | None:
    """Divisor, mean and deviation that hold for every patch, or None where each patch has its own."""
    if normalise == "patch":
        return None
    if normalise in FIXED_SCALES:
        return FIXED_SCALES[normalise]
    try:
        mean, deviation = (float(word) for word in normalise.split(","))
        known = math.isfinite(mean) and math.isfinite(deviation) and deviation > 0
    except ValueError:
        known = False
    if not known:
        raise ConfigError(
            f"normalise={normalise}: expected none, unit, patch, or MEAN,STD of grey levels from 0 to 1, "
            "such as 0.443728,0.203"
        )
    return 255.0, mean, deviation


class TorchScript:
    """The network in `path`, on the device that `to` names; picklable until its first `describe`."""

    distance = "L2"
    version = 1
    uses_gpu = True

    def __init__(self, path: str, input_size: int | None = None, normalise: str = "none") -> None:
        self.name = pathlib.PurePath(path).stem
        self._path = path
        self._input_size = input_size
        self._scale = _scale(normalise)
        self._device = "cpu"
        self._model: Any = None

    def to(self, device: str) -> None:
        """Compute on this device from the next `describe` on."""
        self._device = device
        self._model = None

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The patches at the input size, normalised, (n, 1, side, side)."""
        values = patches.astype(np.float32)
        if self._input_size is not None:
            values = resized(values, self._input_size)
        if self._scale is None:
            return standardised(values)[:, np.newaxis]
        divisor, mean, deviation = (np.float32(number) for number in self._scale)
        return ((values / divisor - mean) / deviation)[:, np.newaxis]

    def describe(self, prepared: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows (n, dim); the engine brings batches of at most `--batch-size`."""
        if self._model is None:
            self._model = self._load()
        if len(prepared) == 0:  # the dimension is known to the network alone: ask it about a black patch
            return self._rows(np.zeros((1, *prepared.shape[1:]), np.float32))[:0]
        return self._rows(prepared)

    def _rows(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        import torch

        with torch.inference_mode():
            output = self._model(torch.tensor(batch, device=self._device))
        if not isinstance(output, torch.Tensor):
            raise DataError(f"{self._path}: expected one tensor from the model, found {type(output).__name__}")
        if output.ndim != 2 or len(output) != len(batch):
            raise DataError(
                f"{self._path}: expected ({len(batch)}, dim) from a batch of shape {batch.shape}, "
                f"found {tuple(output.shape)}; flatten the model's output before exporting it"
            )
        rows: NDArray[np.float32] = output.float().cpu().numpy()
        if not np.isfinite(rows).all():
            broken = int((~np.isfinite(rows)).any(axis=1).sum())
            raise DataError(
                f"{self._path}: {broken} of {len(rows)} descriptors are not finite; check the weights, and "
                "whether normalise is what the model was trained with"
            )
        return rows

    def _load(self) -> torch.jit.ScriptModule:
        import torch

        # Else the last bits, and with TF32 the last ten, depend on the GPU's model and on what ran before.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        if not pathlib.Path(self._path).is_file():
            raise DataError(f"{self._path}: no such file; expected a TorchScript model")
        try:
            jit: Any = torch.jit  # torch leaves `load` without types
            model: torch.jit.ScriptModule = jit.load(self._path, map_location=self._device)
        except (RuntimeError, ValueError) as cause:
            raise DataError(
                f"{self._path}: can't be loaded as TorchScript on {self._device} ({str(cause).splitlines()[0]}); "
                "a state_dict or a pickled model must be exported first: torch.jit.trace(model, patches).save(path)"
            ) from cause
        return model.eval()
