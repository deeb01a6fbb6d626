"""The one loop that brings batches to a device and rows back, for every network in torch.

On CUDA nothing in it waits for the device but the host's wait for rows, and before that the next batch is queued. What
a device does is behind `Device`, so that a test can put a recording one in its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

QUEUED = 2  # batches that are with the device at once: one at work, one behind it


class Device(Protocol):
    """Where batches go. On a GPU `upload` and `download` return before the copy is done; only `wait` waits."""

    def upload(self, batch: NDArray[Any]) -> torch.Tensor:
        """The batch as a tensor on the device."""
        ...

    def download(self, rows: torch.Tensor) -> Any:
        """Begin to bring rows back; what `wait` takes."""
        ...

    def wait(self, coming: Any) -> NDArray[np.float32]:
        """The rows, once they are here."""
        ...


def rows_of_each(
    batches: Iterable[NDArray[Any]], device: Device, launch: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[NDArray[np.float32]]:
    """The rows of each batch, in order. `launch` maps a batch on the device to float32 rows there, without waiting."""
    import torch

    queued: deque[Any] = deque()
    for batch in batches:
        with torch.inference_mode():  # left before each `yield`: the mode is the thread's, not the generator's
            queued.append(device.download(launch(device.upload(batch))))
        if len(queued) == QUEUED:
            yield device.wait(queued.popleft())
    while queued:
        yield device.wait(queued.popleft())


class Cpu:
    """This process itself: everything is done at once."""

    def upload(self, batch: NDArray[Any]) -> torch.Tensor:
        import torch

        host = torch.empty(batch.shape, dtype=_dtype(batch))
        host.numpy()[...] = batch  # what comes from Ray's object store is read-only, of which from_numpy warns
        return host

    def download(self, rows: torch.Tensor) -> torch.Tensor:
        return rows

    def wait(self, coming: torch.Tensor) -> NDArray[np.float32]:
        rows: NDArray[np.float32] = coming.numpy()
        return rows


class Cuda:
    """The GPU that torch sees first. Uploads have a stream of their own, so that they pass while kernels run.

    Both ways lead through pinned memory: a copy from or to any other makes the host wait for the whole stream.
    """

    def __init__(self) -> None:
        import torch

        cuda: Any = torch.cuda  # torch leaves its streams and events without types
        self._kernels, self._copies = cuda.current_stream(), cuda.Stream()
        self._up, self._down = (cycle([Pinned() for _ in range(QUEUED)]) for _ in range(2))

    def upload(self, batch: NDArray[Any]) -> torch.Tensor:
        import torch

        pinned = next(self._up)
        host = pinned.of(batch.shape, _dtype(batch))
        host.numpy()[...] = batch
        with torch.cuda.stream(self._copies):
            there = host.to("cuda", non_blocking=True)
            pinned.used_until_now(self._copies)
        self._kernels.wait_event(pinned.event)
        there.record_stream(self._kernels)  # its memory goes to a later upload only once the kernels have read it
        return there

    def download(self, rows: torch.Tensor) -> tuple[Pinned, torch.Tensor]:
        pinned = next(self._down)
        host = pinned.of(tuple(rows.shape), rows.dtype)
        host.copy_(rows, non_blocking=True)
        pinned.used_until_now(self._kernels)
        return pinned, host

    def wait(self, coming: tuple[Pinned, torch.Tensor]) -> NDArray[np.float32]:
        pinned, host = coming
        pinned.event.synchronize()
        rows: NDArray[np.float32] = host.numpy().copy()  # the buffer is used again
        return rows


class Pinned:
    """A buffer of pinned memory that is used again and again, and the event of the last copy from or into it."""

    def __init__(self) -> None:
        import torch

        cuda: Any = torch.cuda
        self.event = cuda.Event(blocking=True)  # whoever waits leaves the core to others
        self._bytes = torch.empty(0, dtype=torch.uint8)

    def of(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The buffer as a tensor, once the last copy is done; larger than before if need be."""
        import torch

        self.event.synchronize()
        size = int(np.prod(shape)) * dtype.itemsize
        if size > len(self._bytes):
            self._bytes = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return self._bytes[:size].view(dtype).reshape(shape)

    def used_until_now(self, stream: Any) -> None:
        """A copy was queued on the stream."""
        self.event.record(stream)


DEVICES: dict[str, Callable[[], Device]] = {"cpu": Cpu, "cuda": Cuda}


def _dtype(batch: NDArray[Any]) -> torch.dtype:
    import torch

    return torch.from_numpy(np.empty(0, batch.dtype)).dtype
