"""Image descriptors of a user's own, for tests: some good ones, and some that are wrong in various ways."""

import numpy as np


class ChannelMeans:
    """Fed with the published preprocessing: it has no `prepare`."""

    uses_gpu = False

    def describe(self, batch):
        assert batch.dtype == np.float32 and batch.shape[1] == 3
        return batch.mean(axis=(2, 3))


class Quarters:
    """Its own `prepare`, which halves a picture, and no `shape`; counts its batches in `seen`."""

    name = "quarters"
    uses_gpu = True

    def __init__(self, scale=1.0):
        self.scale = scale
        self.seen = []

    def prepare(self, image):
        return image[::2, ::2].astype(np.float32) * self.scale

    def describe(self, batch):
        self.seen.append(batch.shape)
        return np.stack([batch.mean(axis=(1, 2, 3)), batch.max(axis=(1, 2, 3)), batch[:, 0, 0, 0]], axis=1)


class ByCosine(Quarters):
    """Asks for a distance that images are not compared by."""

    distance = "cosine"


class NanForDark(Quarters):
    """NaN for a black picture."""

    def describe(self, batch):
        means = batch.mean(axis=(1, 2, 3))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([means / means, means], axis=1)


class ByWidth(Quarters):
    """As many values as the picture is wide."""

    def describe(self, batch):
        return batch.mean(axis=(1, 3))


class OneRow(Quarters):
    """One row for a whole batch."""

    def describe(self, batch):
        return batch.mean(axis=(0, 1, 2))[np.newaxis]


class Bits(Quarters):
    """Packed bits that it calls L2."""

    def describe(self, batch):
        return np.zeros((len(batch), 4), np.uint8)


class NoDescribe:
    def prepare(self, image):
        return image
