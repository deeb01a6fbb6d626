"""A vision model of transformers as one torch module: pictures in, rows out."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from raybench.descriptors.token_pooling import pooled
from raybench.errors import ConfigError


class VisionRows(nn.Module):
    """`tower`, and what is taken of its answer: a pooling of its tokens, or else what the model publishes."""

    def __init__(
        self,
        path: str,
        tower: nn.Module,
        projection: nn.Module | None,
        pooling: str | None,
        power: float,
        before: int,
        any_size: bool,
    ) -> None:
        super().__init__()
        self.path, self.tower, self.projection = path, tower, projection
        self.pooling, self.power, self.before = pooling, power, before
        # Towers that know it bring their positions to any size; those with the usual size are left as they are.
        self.options = {"interpolate_pos_encoding": True} if any_size else {}

    def forward(self, x: torch.Tensor) -> Any:
        """The rows."""
        answer = self.tower(pixel_values=x, return_dict=True, **self.options)
        if self.pooling is not None:
            return pooled(answer.last_hidden_state, self.pooling, self.power, self.before)
        row = getattr(answer, "pooler_output", None)
        if row is None:
            raise ConfigError(f"{self.path}: publishes no row for a picture; give --pooling cls, avg or gem")
        row = row.flatten(1)
        return row if self.projection is None else self.projection(row)
