"""Nothing waits for the device between two launches: on a device that has shapes only, and on a GPU where there is one.

A tensor of torch's "meta" device has no values, so whatever needs them on the host (`.cpu()`, `.item()`, `nonzero`)
fails there; a copy the other way is seen by its operation, which has tensors of two devices.
"""

import numpy as np
import pytest
import torch
from image_models import torchscript_file, weight_file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from raybench.descriptors import device_batches
from raybench.descriptors.device_batches import DEVICES, Cpu, rows_of_each
from raybench.descriptors.image_networks import ImageTorchScript
from raybench.descriptors.sscd import Sscd
from raybench.descriptors.torchscript import TorchScript

OVERLAPPED = [
    *("upload 0", "launch 0", "download 0"),
    *("upload 1", "launch 1", "download 1", "wait 0"),
    *("upload 2", "launch 2", "download 2", "wait 1"),
    "wait 2",
]


class Shapes:
    """The recording device."""

    def __init__(self, order):
        self.order, self.uploads = order, 0

    def upload(self, batch):
        self.order.append(f"upload {self.uploads}")
        self.uploads += 1
        return torch.empty(batch.shape, dtype=torch.from_numpy(batch[:0].copy()).dtype, device="meta")

    def download(self, rows):
        assert (rows.device.type, rows.dtype) == ("meta", torch.float32)
        number = self.uploads - 1
        self.order.append(f"download {number}")
        return number, rows.shape

    def wait(self, coming):
        self.order.append(f"wait {coming[0]}")
        return np.zeros(coming[1], np.float32)


class Operations(TorchDispatchMode):
    """Notes the first operation after an upload as the launch, and each one that copies between devices."""

    def __init__(self, order):
        super().__init__()
        self.order = order

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)]
        if len({tensor.device.type for tensor in tensors}) > 1:
            self.order.append(f"blocking copy by {function}")
        elif self.order[-1].startswith("upload") and tensors[:-1]:  # the upload's own makes one of none
            self.order.append(self.order[-1].replace("upload", "launch"))
        return result


class Patches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(1, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).mean(dim=2).flatten(1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Weights, the same network as TorchScript, and a TorchScript of patches."""
    base = tmp_path_factory.mktemp("networks")
    weights = weight_file(base / "weights.pt")
    torch.jit.script(Patches()).save(str(base / "patches.pt"))
    return {"weights": weights, "script": torchscript_file(base / "script.pt", weights), "patches": base / "patches.pt"}


def network(kind, files, **precision):
    if kind == "sscd":
        return Sscd(str(files["weights"]), 40, "square", backbone="CV_RESNET18", dims=32, **precision)
    if kind == "torchscript":
        return ImageTorchScript(str(files["script"]), 40, "square", **precision)
    return TorchScript(str(files["patches"]), **precision)


def batches(kind, counts=(3, 2, 1)):
    """Three batches, of two shapes."""
    rng = np.random.default_rng(0)
    if kind == "patches":
        return [rng.random((count, 1, 32, 32), np.float32) for count in counts]
    return [rng.integers(0, 256, (count, 40, 40 + 8 * (count % 2), 3), np.uint8) for count in counts]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["sscd", "torchscript", "patches"])
def test_the_next_batch_is_queued_before_rows_are_waited_for_and_nothing_else_waits(kind, dtype, files, monkeypatch):
    order = []
    monkeypatch.setitem(DEVICES, "meta", lambda: Shapes(order))
    descriptor = network(kind, files, dtype=dtype)
    descriptor.to("meta")
    given = batches(kind)
    list(descriptor.describe_each(given[:1]))  # loads the model and its constants
    order.clear()
    with Operations(order):
        rows = list(descriptor.describe_each(given))
    assert order == OVERLAPPED
    assert [len(part) for part in rows] == [3, 2, 1]


def launched(batch):
    return batch.mean(dim=(1, 2))


@pytest.mark.parametrize(
    "launch",
    [
        lambda batch: launched(batch).cpu(),
        lambda batch: launched(batch) / batch.max().item(),
        lambda batch: launched(batch)[torch.nonzero(batch.sum(dim=(1, 2, 3)))],
        lambda batch: launched(batch) / torch.from_numpy(np.ones(3, np.float32)).to(batch.device),
    ],
    ids=["rows fetched at once", "a value asked for", "a count asked for", "constants sent with each batch"],
)
def test_what_waits_for_the_device_inside_the_loop_is_found_out(launch):
    order = []
    given = [part.astype(np.float32) for part in batches("sscd")]
    try:
        with Operations(order):
            list(rows_of_each(given, Shapes(order), launch))
    except (NotImplementedError, RuntimeError) as error:
        assert "meta" in str(error)  # there are no values to fetch
    else:
        assert any(step.startswith("blocking copy") for step in order)


def test_a_loop_that_queues_nothing_ahead_is_found_out(monkeypatch):
    monkeypatch.setattr(device_batches, "QUEUED", 1)
    order = []
    with Operations(order):
        list(rows_of_each([part.astype(np.float32) for part in batches("sscd")], Shapes(order), launched))
    assert order[:4] == ["upload 0", "launch 0", "download 0", "wait 0"]


def test_batches_are_asked_for_one_at_a_time_and_rows_come_as_they_are_ready():
    taken = []
    given = [np.full((2, 3), number, np.float32) for number in range(4)]
    rows = rows_of_each((taken.append(len(taken)) or part for part in given), Cpu(), lambda batch: batch + 1)
    assert next(rows).tolist() == [[1.0] * 3] * 2
    assert len(taken) == device_batches.QUEUED
    assert [part[0, 0] for part in rows] == [2.0, 3.0, 4.0]


def test_the_loop_leaves_the_thread_as_it_was():
    rows = rows_of_each([np.zeros((1, 2), np.float32)] * 3, Cpu(), lambda batch: batch)
    next(rows)
    assert not torch.is_inference_mode_enabled()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch sees")
@pytest.mark.parametrize("kind", ["sscd", "torchscript", "patches"])
def test_on_a_gpu_no_operation_of_the_loop_synchronises_and_rows_are_those_of_the_cpu(kind, files):
    descriptor = network(kind, files)
    given = batches(kind, counts=(3, 2, 1, 64, 5, 64, 7))  # buffers grow and are used again
    expected = list(descriptor.describe_each(given))
    descriptor.to("cuda")
    list(descriptor.describe_each(given[:1]))  # loads the model, makes handles and buffers
    torch.cuda.set_sync_debug_mode("error")
    try:
        found = list(descriptor.describe_each(given))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)
