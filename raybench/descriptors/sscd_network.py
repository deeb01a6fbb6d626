"""The networks of the SSCD family in plain torch: a residual trunk, generalised mean, linear, length 1.

He et al. 2016 and Xie et al. 2017, with the stride of a bottleneck on its 3 x 3, as both published libraries have it.
"""

from __future__ import annotations

import torch
from torch import nn

from raybench.descriptors.sscd_backbones import BACKBONES, Backbone, file_key

CLAMP = 1e-6  # the generalised mean takes values from here up


class Block(nn.Module):
    """Convolutions with their batch norms, and the input added to what they give: as it is, or in the new shape."""

    def __init__(self, before: int, planes: int, stride: int, backbone: Backbone) -> None:
        super().__init__()
        if backbone.bottleneck:
            inner = planes * backbone.width // 64 * backbone.groups
            self.after = planes * 4
            middle = nn.Conv2d(inner, inner, 3, stride, padding=1, groups=backbone.groups, bias=False)
            convolutions = [_pointwise(before, inner), middle, _pointwise(inner, self.after)]
        else:
            self.after = planes
            first = nn.Conv2d(before, planes, 3, stride, padding=1, bias=False)
            convolutions = [first, nn.Conv2d(planes, planes, 3, padding=1, bias=False)]
        self.convolutions = nn.ModuleList(convolutions)
        self.norms = nn.ModuleList(nn.BatchNorm2d(convolution.out_channels) for convolution in convolutions)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != self.after:
            self.shortcut = nn.Sequential(_pointwise(before, self.after, stride), nn.BatchNorm2d(self.after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The block's output."""
        out = x
        last = len(self.convolutions) - 1
        for number, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            out = norm(convolution(out))
            if number < last:
                out = torch.relu_(out)
        return torch.relu_(out + self.shortcut(x))


class Network(nn.Module):
    """Pictures (n, 3, h, w) to rows (n, dims) of length 1."""

    def __init__(self, backbone: str, dims: int, pool_param: float) -> None:
        super().__init__()
        shape = BACKBONES[backbone]
        self.power = pool_param
        self.generalised = backbone.startswith("CV_") or pool_param > 1  # TV_* else keep their plain mean
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, padding=3, bias=False), nn.BatchNorm2d(64))
        stages = []
        before = 64
        for number, count in enumerate(shape.blocks):
            blocks = []
            for position in range(count):
                stride = 2 if number and not position else 1
                blocks.append(Block(before, 64 * 2**number, stride, shape))
                before = blocks[-1].after
            stages.append(nn.Sequential(*blocks))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(shape.channels, dims)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The rows."""
        x = nn.functional.max_pool2d(torch.relu_(self.stem(x)), 3, 2, padding=1)
        x = self.stages(x)
        pooled = generalised_mean(x, self.power) if self.generalised else x.mean((2, 3))
        return nn.functional.normalize(self.head(pooled).float())


def generalised_mean(x: torch.Tensor, power: float) -> torch.Tensor:
    """The mean of powers over the plane, (n, channels); worked out in float32, since a cube of 41 overflows float16."""
    return x.float().clamp(min=CLAMP).pow(power).mean((2, 3)).pow(1 / power).to(x.dtype)


def _pointwise(before: int, after: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(before, after, 1, stride, bias=False)


def file_shapes(backbone: str, dims: int) -> dict[str, tuple[int, ...]]:
    """Keys and shapes of a weight file, in order; without memory for the weights."""
    with torch.device("meta"):
        network = Network(backbone, dims, 3.0)
    return {file_key(backbone, key): tuple(value.shape) for key, value in network.state_dict().items()}
