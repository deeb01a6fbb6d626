"""Weight files of the SSCD family (Pizzi et al., CVPR 2022) as image descriptors.

A file must hold exactly the weights of the backbone that was named; where it holds those of another, that is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from raybench.descriptors.image_networks import TorchNetwork
from raybench.descriptors.model_files import holds_code
from raybench.descriptors.precision import Precision
from raybench.descriptors.sscd_backbones import BACKBONES, file_key
from raybench.errors import ConfigError, DataError, Problems, reason_of, suggestion
from raybench.formats.images import Preprocess
from raybench.formats.torch_files import check_archive, check_pickles

if TYPE_CHECKING:
    import torch

COUNTER = ".num_batches_tracked"  # of a batch norm's training; older files lack it, and no figure needs it
MOST_KEYS_SHOWN = 20


class Sscd(TorchNetwork):
    """A trunk with generalised mean, linear layer and length 1, filled with the weights in a file."""

    def __init__(
        self,
        path: str,
        size: int,
        mode: str,
        dtype: str = "float32",
        tf32: bool = False,
        compile: bool = False,
        backbone: str = "CV_RESNET50",
        dims: int = 512,
        pool_param: float = 3.0,
    ) -> None:
        super().__init__(path, Preprocess(size, mode), Precision(dtype, tf32, compile))
        if backbone not in BACKBONES:
            known = ", ".join(BACKBONES)
            raise ConfigError(f"--backbone {backbone}: unknown{suggestion(backbone, BACKBONES)}; there are {known}")
        if dims < 1:
            raise ConfigError(f"--dims {dims}: must be at least 1")
        if not pool_param > 0:
            raise ConfigError(f"--pool_param {pool_param}: must be above 0")
        self._backbone, self._dims, self._pool_param = backbone, dims, pool_param

    def load(self, device: str) -> torch.nn.Module:
        """The network with the file's weights."""
        import torch

        from raybench.descriptors.sscd_network import Network

        state = read_state(self._path)
        check_state(state, self._path, self._backbone, self._dims)
        with torch.device("meta"):
            network = Network(self._backbone, self._dims, self._pool_param)
        zero = torch.zeros((), dtype=torch.int64)
        keys = {key: file_key(self._backbone, key) for key in network.state_dict()}
        network.load_state_dict({key: state.get(named, zero) for key, named in keys.items()}, assign=True)
        return network.to(device).eval()


def read_state(path: str) -> dict[str, Any]:
    """The tensors in a weight file; nothing in it is executed."""
    import torch

    words = f"{path}: can't be read as weights"
    advice = "expected what torch.save(state_dict) writes; a TorchScript model is torchscript:URI"
    try:
        check_pickles(path, words, advice)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; expected a weight file") from None
    if holds_code(path):
        raise DataError(f"{path}: is a TorchScript model, no weights; give it as torchscript:{path}")
    try:
        check_archive(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as cause:  # unpickling raises whatever the bytes make it raise
        raise DataError(f"{words} ({reason_of(cause)}); {advice}") from cause
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        found = (
            f"a dict with {', '.join(' '.join(str(key).split())[:80] for key in list(state)[:4])} …"
            if isinstance(state, dict)
            else type(state)
        )
        raise DataError(f"{path}: expected a dict of tensors by key, found {found}; save the model's state_dict alone")
    return state


def check_state(state: dict[str, Any], path: str, backbone: str, dims: int) -> None:
    """Raise everything that keeps the weights from fitting, at once."""
    shapes = {key: tuple(value.shape) for key, value in state.items()}
    lines = _differences(shapes, backbone, dims, path)
    if not lines:
        return
    for other in BACKBONES:
        if other != backbone and _fits(shapes, other):
            raise DataError(f"{path}: holds weights of {other}, not of {backbone}; give --backbone {other}")
    raise Problems(lines)


def _fits(shapes: dict[str, tuple[int, ...]], backbone: str) -> bool:
    """Whether these are the weights of a backbone, whatever its number of dimensions."""
    head = shapes.get(_head(backbone), (0, 0))
    return head[0] > 0 and not _differences(shapes, backbone, head[0], "")


def _differences(shapes: dict[str, tuple[int, ...]], backbone: str, dims: int, path: str) -> list[str]:
    from raybench.descriptors.sscd_network import file_shapes

    expected = file_shapes(backbone, dims)
    missing = [key for key in expected if key not in shapes and not key.endswith(COUNTER)]
    unexpected = [key for key in shapes if key not in expected]
    wrong = [key for key in expected if key in shapes and shapes[key] != expected[key]]
    head = _head(backbone)
    if not missing and not unexpected and wrong and set(wrong) <= {head, head.replace("weight", "bias")}:
        found = shapes[head]
        if len(found) == 2 and found[1] == expected[head][1]:
            return [
                f"{path}: holds weights of {backbone} with {found[0]} dimensions, not {dims}; give --dims {found[0]}"
            ]
    shown = [f"{key} is {shapes[key]}, expected {expected[key]}" for key in wrong]
    kinds = {"missing": missing, "unexpected": unexpected, "of another shape": shown}
    return [f"{path}: {backbone} with {dims} dimensions: {_listed(keys, kind)}" for kind, keys in kinds.items() if keys]


def _listed(keys: list[str], kind: str) -> str:
    more = f" … and {len(keys) - MOST_KEYS_SHOWN} more" if len(keys) > MOST_KEYS_SHOWN else ""
    noun = "key" if len(keys) == 1 else "keys"
    return f"{len(keys)} {noun} {kind}: {', '.join(' '.join(key.split()) for key in keys[:MOST_KEYS_SHOWN])}{more}"


def _head(backbone: str) -> str:
    return file_key(backbone, "head.weight")
