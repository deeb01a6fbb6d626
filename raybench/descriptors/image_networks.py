"""Networks in files as image descriptors: pictures resized on a CPU, normalised and described on the device.

A picture travels as whole grey levels, a quarter of the bytes of the network's input. The normalisation's steps
are the published ones in float32, so that every device makes the same input bit for bit.
"""

from __future__ import annotations

import pathlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.device_batches import DEVICES, rows_of_each
from raybench.descriptors.model_preprocessing import Steps
from raybench.descriptors.precision import COMPILED, Precision
from raybench.descriptors.torch_models import checked_output, load_torchscript, run_as_it_is, settle_torch
from raybench.errors import ConfigError, reason_of
from raybench.formats.images import Preprocess

if TYPE_CHECKING:
    import torch


class ImageNetwork(ABC):
    """What networks in files share, whatever runs them. Picklable until its first `describe`."""

    distance = "L2"
    version = 1
    uses_gpu = True

    def __init__(self, path: str, preprocess: Steps) -> None:
        self.name = pathlib.PurePath(path).stem
        self._path, self._device = path, "cpu"
        self.preprocess = preprocess  # a spec may put another in its place: see ImageSpec.open
        self._model: Any = None

    @abstractmethod
    def load(self, device: str) -> Any:
        """The network on the device, ready to describe."""

    def check(self) -> None:
        """Find what is wrong with the file, before any compute."""
        self.load("cpu")

    def to(self, device: str) -> None:
        """Compute on this device from the next `describe` on."""
        self._device, self._model = device, None

    def shape(self, width: int, height: int) -> tuple[int, int]:
        """Height and width of what `prepare` makes of a picture."""
        return self.preprocess.shape(width, height)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture (h, w, 3) at the network's size."""
        return self.preprocess.resized(image)


class TorchNetwork(ImageNetwork):
    """What the networks in torch share: everything but how one is loaded."""

    def __init__(self, path: str, preprocess: Steps, precision: Precision) -> None:
        self._precision = precision
        self._precision.check()
        super().__init__(path, preprocess)
        self._constants: Any = None

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, dim) of pictures of one size, (n, h, w, 3)."""
        return next(self.describe_each([batch]))

    def describe_each(self, batches: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """Rows of each batch; on CUDA the next one is copied and queued while the device is still at this one."""
        settle_torch(self._precision.tf32)
        if self._model is None:
            self._model, self._constants = self._placed(), normalisation(self._device, self.preprocess)
        yield from rows_of_each(batches, DEVICES[self._device](), self._launch)

    def _placed(self) -> Any:
        """The network on the device, in its precision."""
        import torch

        dtype = getattr(torch, self._precision.dtype)
        network = self.load(self._device).to(dtype=dtype).to(memory_format=torch.channels_last)
        # Dynamic from the first batch: one program for all shapes, beside one for batches of a single picture.
        return torch.compile(network, dynamic=True) if self._precision.compile else network

    def _launch(self, pictures: torch.Tensor) -> torch.Tensor:
        import torch

        values = normalised_on_device(pictures, *self._constants).to(getattr(torch, self._precision.dtype))
        try:
            output = run_as_it_is(self._model, values, self._path)
        except RuntimeError as cause:
            if self._precision.compile and type(cause).__module__.startswith("torch._"):  # dynamo's and inductor's own
                raise ConfigError(
                    f"--compile: torch can't compile {self._path} here ({reason_of(cause)}); "
                    "it needs a C++ compiler, on a GPU also triton; or leave it out"
                ) from cause
            raise
        return checked_output(output, len(pictures), tuple(pictures.shape), self._path).float()


class ImageTorchScript(TorchNetwork):
    """A TorchScript file that maps float32 (n, 3, h, w) to (n, dim)."""

    def __init__(
        self, path: str, size: int, mode: str, dtype: str = "float32", tf32: bool = False, compile: bool = False
    ) -> None:
        if compile:
            raise ConfigError(f"--compile: goes with {COMPILED}; a TorchScript file runs as it was exported")
        super().__init__(path, Preprocess(size, mode), Precision(dtype, tf32))

    def load(self, device: str) -> torch.nn.Module:
        """The network in the file."""
        return load_torchscript(self._path, device)


def normalisation(device: str, preprocess: Steps) -> list[torch.Tensor]:
    """Scale, mean and deviation on the device: once per model, since such a copy waits for all that is queued there."""
    import torch

    return [
        torch.from_numpy(np.array(values, np.float32)).to(device)
        for values in (preprocess.divisor, preprocess.mean, preprocess.std)
    ]


def normalised_on_device(
    pictures: torch.Tensor, scale: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor
) -> torch.Tensor:
    """The network's input, (n, 3, h, w) in channels-last order, from pictures (n, h, w, 3).

    Divisors are tensors on the device: by a plain number CUDA would multiply by its rounded inverse.
    """
    return ((pictures.to(scale.dtype) / scale - mean) / deviation).permute(0, 3, 1, 2)
