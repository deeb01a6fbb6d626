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

from raybench.descriptors.torch_models import checked_output, load_torchscript, uploaded
from raybench.errors import ConfigError
from raybench.formats.images import DEVIATION, MEAN, Preprocess

if TYPE_CHECKING:
    import torch

DTYPES = ("float32", "float16", "bfloat16")


class ImageNetwork(ABC):
    """What networks in files share, whatever runs them. Picklable until its first `describe`."""

    distance = "L2"
    version = 1
    uses_gpu = True

    def __init__(self, path: str, size: int, mode: str) -> None:
        self.name = pathlib.PurePath(path).stem
        self._path, self._device = path, "cpu"
        self._preprocess = Preprocess(size, mode)
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
        return self._preprocess.shape(width, height)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture (h, w, 3) at the network's size."""
        return self._preprocess.resized(image)


class TorchNetwork(ImageNetwork):
    """What the networks in torch share: everything but how one is loaded."""

    def __init__(self, path: str, size: int, mode: str, dtype: str = "float32") -> None:
        if dtype not in DTYPES:
            raise ConfigError(f"--dtype {dtype}: unknown; expected one of {', '.join(DTYPES)}")
        super().__init__(path, size, mode)
        self._dtype = dtype

    def describe(self, batch: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Rows (n, dim) of pictures of one size, (n, h, w, 3)."""
        return next(self.describe_each([batch]))

    def describe_each(self, batches: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.float32]]:
        """Rows of each batch; on CUDA the next one is copied and queued while the device is still at this one."""
        queued: torch.Tensor | None = None
        for batch in batches:
            output = self._start(batch)
            if queued is not None:
                yield queued.cpu().numpy()
            queued = output
        if queued is not None:
            yield queued.cpu().numpy()

    def _start(self, batch: NDArray[np.uint8]) -> torch.Tensor:
        import torch

        jit: Any = torch.jit  # torch leaves `optimized_execution` without types
        dtype = getattr(torch, self._dtype)
        if self._model is None:
            self._model = self.load(self._device).to(dtype=dtype).to(memory_format=torch.channels_last)
        with torch.inference_mode(), jit.optimized_execution(False):
            output = self._model(_normalised(uploaded(batch, self._device)).to(dtype))
            return checked_output(output, len(batch), batch.shape, self._path).float()


class ImageTorchScript(TorchNetwork):
    """A TorchScript file that maps float32 (n, 3, h, w) to (n, dim)."""

    def load(self, device: str) -> torch.nn.Module:
        """The network in the file."""
        return load_torchscript(self._path, device)


def _normalised(pictures: torch.Tensor) -> torch.Tensor:
    """The network's input, (n, 3, h, w) in channels-last order, from pictures (n, h, w, 3).

    Divisors are tensors on the device: by a plain number CUDA would multiply by its rounded inverse.
    """
    import torch

    scale, mean, deviation = (
        torch.from_numpy(np.array(values, np.float32)).to(pictures.device) for values in (255, MEAN, DEVIATION)
    )
    return ((pictures.to(torch.float32) / scale - mean) / deviation).permute(0, 3, 1, 2)
