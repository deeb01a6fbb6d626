"""A vision model of transformers as one torch module: pictures in, rows out."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from raybench.descriptors.token_pooling import pooled
from raybench.errors import ConfigError


class VisionRows(nn.Module):
    """`tower`, and what is taken of its answer: a pooling of its tokens, or else what the model publishes.

    `usual_size` is the height and width that its positions are for; `any_size`: whether it can bring them to others.
    """

    def __init__(
        self,
        path: str,
        tower: nn.Module,
        projection: nn.Module | None,
        pooling: str | None,
        power: float,
        before: int,
        any_size: bool,
        usual_size: tuple[int, ...],
    ) -> None:
        super().__init__()
        self.path, self.tower, self.projection = path, tower, projection
        self.pooling, self.power, self.before = pooling, power, before
        self.any_size, self.usual_size = any_size, usual_size

    def forward(self, x: torch.Tensor) -> Any:
        """The rows."""
        answer = self.tower(pixel_values=x, return_dict=True, **self._options(tuple(x.shape[2:])))
        if self.pooling is not None:
            return pooled(answer.last_hidden_state, self.pooling, self.power, self.before)
        row = getattr(answer, "pooler_output", None)
        if row is None:
            poolings = "cls, avg or gem" if self.before else "avg or gem"
            raise ConfigError(f"{self.path}: publishes no row for a picture; give --pooling {poolings}")
        row = row.flatten(1)
        return row if self.projection is None else self.projection(row)

    def _options(self, size: tuple[int, ...]) -> dict[str, bool]:
        """Towers that know it bring their positions to another size, but always as if these were of a square."""
        if not self.any_size or size == self.usual_size:
            return {}
        if len(set(self.usual_size)) > 1:
            made_for, given = (f"{height} x {width} px" for height, width in (self.usual_size, size))
            raise ConfigError(f"{self.path}: takes pictures of {made_for} (height x width) only, not {given}")
        return {"interpolate_pos_encoding": True}
