"""One row from what a network makes of a picture: tokens (n, t, c), or a feature map (n, c, h, w).

What stands before the tokens of patches (a class token, registers) is told by the caller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from raybench.errors import ConfigError, suggestion

if TYPE_CHECKING:
    import torch

POOLINGS = ("cls", "avg", "gem")
WORDS = {
    "cls": "the class token of the last layer",
    "avg": "the mean over the {of} of the last layer",
    "gem": "the generalised mean (power {power}, of values from 1e-6 up) over the {of} of the last layer",
}
GEM_POWER = 3.0


def check_pooling(pooling: str | None, power: float | None) -> None:
    """Refuse a pooling that is none, and a power that nothing would use."""
    if pooling is not None and pooling not in POOLINGS:
        raise ConfigError(
            f"--pooling {pooling}: unknown{suggestion(pooling, POOLINGS)}; there are {', '.join(POOLINGS)}"
        )
    if power is not None and pooling != "gem":
        raise ConfigError("--pool-param: goes with --pooling gem, or with sscd:URI; leave it out")
    if power is not None and not power > 0:
        raise ConfigError(f"--pool-param {power}: must be above 0")


def check_class_token(pooling: str | None, has_one: bool, model: str) -> None:
    """Refuse `cls` of a network that has no class token."""
    if pooling == "cls" and not has_one:
        raise ConfigError(f"--pooling cls: {model} has no class token; give avg or gem, or leave it out")


def pooling_words(pooling: str, power: float, of: str) -> str:
    """What a table says of the rows; `of` is what is pooled over, such as `patches`."""
    return WORDS[pooling].format(of=of, power=power)


def pooled(values: torch.Tensor, pooling: str, power: float, before: int = 0) -> torch.Tensor:
    """Rows (n, c); `before` tokens are no patches, and the first of them is the class token."""
    from raybench.descriptors.sscd_network import generalised_mean

    if pooling == "cls":
        return values[:, 0]
    plane = values if values.ndim == 4 else values[:, before:].transpose(1, 2).unsqueeze(-1)  # (n, c, h, w)
    return generalised_mean(plane, power) if pooling == "gem" else plane.float().mean((2, 3)).to(plane.dtype)
