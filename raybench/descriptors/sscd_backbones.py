"""The six backbones of the SSCD family by name, and the names of their weights in published files.

`CV_*` files use the key names of Classy Vision, `TV_*` files those of torchvision. No torch here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Backbone:
    """Blocks in each stage; bottlenecks or pairs of 3 x 3; groups and their width in the first stage's bottlenecks."""

    blocks: tuple[int, int, int, int]
    bottleneck: bool
    groups: int = 1
    width: int = 64

    @property
    def channels(self) -> int:
        """Of the trunk's output."""
        return 2048 if self.bottleneck else 512


RESNET18 = Backbone((2, 2, 2, 2), bottleneck=False)
RESNET50 = Backbone((3, 4, 6, 3), bottleneck=True)
BACKBONES = {
    "CV_RESNET18": RESNET18,
    "CV_RESNET50": RESNET50,
    "CV_RESNEXT101": Backbone((3, 4, 23, 3), bottleneck=True, groups=32, width=4),
    "TV_RESNET18": RESNET18,
    "TV_RESNET50": RESNET50,
    "TV_RESNEXT101": Backbone((3, 4, 23, 3), bottleneck=True, groups=32, width=8),
}


def file_key(backbone: str, key: str) -> str:
    """The key in a weight file for a key of `Network`.

    >>> file_key("TV_RESNET50", "stages.2.5.norms.2.bias"), file_key("CV_RESNET50", "stages.2.5.norms.2.bias")
    ('backbone.layer3.5.bn3.bias', 'backbone.blocks.2.block2-5.bn.bias')
    """
    module, kind = key.rsplit(".", 1)
    named = _torchvision(module) if backbone.startswith("TV_") else _classy(module, BACKBONES[backbone])
    return f"{named}.{kind}"


def _torchvision(module: str) -> str:
    if module == "head":
        return "backbone.fc"
    if module.startswith("stem."):
        return "backbone.conv1" if module == "stem.0" else "backbone.bn1"
    stage, block, part, number = _place(module)
    names = {"convolutions": f"conv{number + 1}", "norms": f"bn{number + 1}", "shortcut": f"downsample.{number}"}
    return f"backbone.layer{stage + 1}.{block}.{names[part]}"


def _classy(module: str, backbone: Backbone) -> str:
    if module == "head":
        return "embeddings.1"
    if module.startswith("stem."):
        return f"backbone.initial_block._module.{module.removeprefix('stem.')}"
    stage, block, part, number = _place(module)
    last = number == (2 if backbone.bottleneck else 1)
    names = {  # convolution, norm and ReLU stand in one sequence, without the last norm
        "convolutions": f"convolutional_block.{3 * number}",
        "norms": "bn" if last else f"convolutional_block.{3 * number + 1}",
        "shortcut": f"downsample.{number}",
    }
    return f"backbone.blocks.{stage}.block{stage}-{block}.{names[part]}"


def _place(module: str) -> tuple[int, int, str, int]:
    found = re.fullmatch(r"stages\.(\d+)\.(\d+)\.(convolutions|norms|shortcut)\.(\d+)", module)
    assert found is not None, module
    return int(found[1]), int(found[2]), found[3], int(found[4])
