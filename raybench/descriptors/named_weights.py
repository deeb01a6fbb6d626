"""Weights of an architecture that `timm:` or `torchvision:` names: `--weights URI`, or a file in a local cache.

Read as safetensors, or as what torch saves without code; nothing is downloaded.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from raybench import storage
from raybench.descriptors.sscd import read_state
from raybench.errors import ConfigError, DataError, blamed_on_file

SAFE, SAVED = ".safetensors", (".pth", ".pt", ".bin")


def given_weights(uri: str) -> dict[str, str]:
    """The file of `--weights`, under a name that tells how to read it."""
    whole, suffix = storage.checked(uri), PurePosixPath(uri).suffix.lower()
    if suffix not in (SAFE, *SAVED):
        raise ConfigError(f"--weights {uri}: expected a file that ends in {', '.join((SAFE, *SAVED))}")
    if not storage.exists(whole):
        raise DataError(f"--weights {uri}: does not exist; expected weights")
    return {f"weights{suffix}": whole}


def state_in(folder: Path) -> dict[str, Any]:
    """The tensors of the one file in a folder of links, by key."""
    (path,) = folder.iterdir()
    if path.suffix != SAFE:
        return read_state(str(path))
    from safetensors.torch import load_file

    with blamed_on_file(f"{path}: can't be read as safetensors"):
        return load_file(path)


def load_exactly(model: Any, state: dict[str, Any], name: str) -> None:
    """Fill a model with tensors that must be its own, neither more nor fewer nor of another shape."""
    own = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    given = {key: tuple(value.shape) for key, value in state.items()}
    if own.keys() != given.keys():
        odd = sorted(own.keys() - given.keys()), sorted(given.keys() - own.keys())
        said = [
            f"{what} {len(keys)}, such as {keys[0]}"
            for what, keys in zip(("lack", "hold as more"), odd, strict=True)
            if keys
        ]
        raise DataError(f"{name}: the weights {' and '.join(said)}; give those of this architecture")
    wrong = [key for key in own if own[key] != given[key]]
    if wrong:
        key = wrong[0]
        raise DataError(
            f"{name}: {len(wrong)} tensors of the weights have another shape, such as {key}: {given[key]}, expected "
            f"{own[key]}; give those of this architecture"
        )
    model.load_state_dict(state)
