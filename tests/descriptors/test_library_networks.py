"""Models that stand for those of timm, which gives tokens, maps, or several of either."""

import numpy as np
import pytest
import torch

from raybench.descriptors.library_networks import FeatureRows
from raybench.errors import ConfigError


class Features(torch.nn.Module):
    """A model of timm with four channels, whose features are known."""

    num_features = 4

    def __init__(self, features):
        super().__init__()
        self.features = features

    def forward_features(self, x):
        return self.features


def rows(features, before=0, pooling="avg"):
    return FeatureRows("timm:m", Features(features), pooling, 3.0, before)(torch.zeros(2, 3, 8, 8)).numpy()


def test_maps_with_channels_first_and_last_and_tokens_give_the_same_mean():
    first = torch.arange(2 * 4 * 6, dtype=torch.float32).reshape(2, 4, 2, 3)
    expected = first.numpy().mean(axis=(2, 3))
    tokens = first.flatten(2).transpose(1, 2)
    for features, before in ((first, 0), (first.permute(0, 2, 3, 1), 0), (torch.cat([tokens[:, :1], tokens], 1), 1)):
        np.testing.assert_allclose(rows(features, before), expected)


@pytest.mark.parametrize(
    ("features", "before"),
    [([torch.zeros(2, 5, 4), torch.zeros(2, 9, 4)], 0), (torch.zeros(2, 1, 4), 1), (torch.zeros(2, 2, 4), 2)],
)
def test_a_model_that_gives_several_sets_of_features_or_no_patches_is_said_to(features, before):
    with pytest.raises(ConfigError, match=r"^timm:m: gives no patches that could be pooled; leave --pooling out"):
        rows(features, before)


def test_a_model_whose_features_are_class_tokens_alone_has_one():
    np.testing.assert_array_equal(rows(torch.ones(2, 1, 4), 1, "cls"), np.ones((2, 4)))
