"""Models of timm and torchvision as torch modules that give rows: of their features, or of what a layer sees."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from raybench.descriptors.token_pooling import pooled
from raybench.errors import ConfigError


class FeatureRows(nn.Module):
    """A pooling of what timm calls `forward_features`: tokens, or a map with channels first or last."""

    def __init__(self, path: str, model: Any, pooling: str, power: float, before: int) -> None:
        super().__init__()
        self.path, self.model, self.pooling, self.power, self.before = path, model, pooling, power, before

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The rows."""
        values = self.model.forward_features(x)
        # CrossViT has two sets of tokens, of two scales; of PiT's the head sees those of the class alone.
        before = 0 if self.pooling == "cls" else self.before
        if not isinstance(values, torch.Tensor) or (values.ndim == 3 and values.shape[1] <= before):
            raise ConfigError(f"{self.path}: gives no patches that could be pooled; leave --pooling out")
        channels = self.model.num_features
        if values.ndim == 4 and values.shape[1] != channels and values.shape[3] == channels:
            values = values.permute(0, 3, 1, 2)
        return pooled(values, self.pooling, self.power, self.before)


class SeenRows(nn.Module):
    """A pooling of tokens that a model's `encoder` gives, or of the map that its `avgpool` is given."""

    def __init__(self, model: nn.Module, place: str, pooling: str, power: float, before: int) -> None:
        super().__init__()
        self.model, self.pooling, self.power, self.before = model, pooling, power, before
        self.seen: torch.Tensor | None = None
        layer = model.get_submodule(place)
        if place == "encoder":
            layer.register_forward_hook(lambda _, given, answer: self._see(answer))
        else:
            layer.register_forward_pre_hook(lambda _, given: self._see(given[0]))

    def _see(self, values: torch.Tensor) -> None:
        self.seen = values

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The rows."""
        self.model(x)
        values, self.seen = self.seen, None
        assert values is not None, "the layer was not called"
        return pooled(values, self.pooling, self.power, self.before)


def without_last_linear(model: nn.Module) -> bool:
    """Put nothing in the place of a model's last linear layer; whether it has one."""
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        return False
    parent, _, last = names[-1].rpartition(".")
    setattr(model.get_submodule(parent), last, nn.Identity())
    return True
