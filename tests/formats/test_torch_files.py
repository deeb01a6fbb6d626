import io
import zipfile

import pytest
import torch
from fuzz import seeds

from raybench.descriptors.sscd import read_state
from raybench.descriptors.torch_models import load_torchscript
from raybench.errors import DataError


def flipped(data: bytes) -> bytes:
    """The same file with one bit of its first tensor flipped."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        tensor = next(archive.read(info) for info in archive.infolist() if "/data/" in info.filename)
    damaged = bytearray(data)
    damaged[data.index(tensor) + len(tensor) // 2] ^= 0x40
    return bytes(damaged)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("made", "read"),
    [(seeds.torchscript, lambda path: load_torchscript(path, "cpu")), (seeds.weights, read_state)],
    ids=["TorchScript", "weights"],
)
def test_a_flipped_bit_in_a_weight_is_an_error_where_torch_would_compute_with_it(made, read, tmp_path):
    file = tmp_path / "model.pt"
    file.write_bytes(made()[0])
    read(str(file))
    file.write_bytes(flipped(made()[0]))
    (torch.jit.load if made is seeds.torchscript else torch.load)(str(file))
    with pytest.raises(DataError, match="is not what its checksum says"):
        read(str(file))
