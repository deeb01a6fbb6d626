"""A TorchScript file as a patch descriptor: grey patches in, one row per patch out.

The file must hold a module that maps float32 (n, 1, side, side) to (n, dim). Where it came from, how it was
trained and what its digest is are not known here. torch is imported on first use, since that takes seconds.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.device_batches import DEVICES, rows_of_each
from raybench.descriptors.pixels import resized_patches, standardised
from raybench.descriptors.precision import Precision
from raybench.descriptors.torch_models import checked_output, load_torchscript, run_as_it_is, settle_torch
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

    def __init__(
        self,
        path: str,
        input_size: int | None = None,
        normalise: str = "none",
        dtype: str = "float32",
        tf32: bool = False,
    ) -> None:
        self._precision = Precision(dtype, tf32)
        self._precision.check()
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
            values = resized_patches(values, self._input_size)
        if self._scale is None:
            return standardised(values)[:, np.newaxis]
        divisor, mean, deviation = (np.float32(number) for number in self._scale)
        return ((values / divisor - mean) / deviation)[:, np.newaxis]

    def describe(self, prepared: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows (n, dim); the engine brings batches of at most `--batch-size`."""
        return next(self.describe_each([prepared]))

    def describe_each(self, batches: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        """Rows of each batch; on CUDA the next one is copied and queued while the device is still at this one."""
        import torch

        settle_torch(self._precision.tf32)
        if self._model is None:
            self._model = load_torchscript(self._path, self._device).to(getattr(torch, self._precision.dtype))
        yield from map(self._finite, rows_of_each(batches, DEVICES[self._device](), self._launch))

    def _launch(self, patches: torch.Tensor) -> torch.Tensor:
        import torch

        # The dimension of no rows is known to the network alone: ask it about a black patch.
        asked = patches if len(patches) else patches.new_zeros(1, *patches.shape[1:])
        output = run_as_it_is(self._model, asked.to(getattr(torch, self._precision.dtype)), self._path)
        return checked_output(output, len(asked), tuple(asked.shape), self._path).float()[: len(patches)]

    def _finite(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        if not np.isfinite(rows).all():
            broken = int((~np.isfinite(rows)).any(axis=1).sum())
            raise DataError(
                f"{self._path}: {broken} of {len(rows)} descriptors are not finite; check the weights, and "
                "whether normalise is what the model was trained with"
            )
        return rows
