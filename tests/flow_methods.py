"""Flow methods for tests, found by workers through PYTHONPATH."""

import numpy as np


class Shift:
    """Everything moves by the same vector."""

    name = "shift"
    uses_gpu = False

    def __init__(self, u=3.0, v=-2.0):
        self.u, self.v = u, v

    def flow(self, image1, image2):
        return np.broadcast_to(np.array([self.u, self.v], np.float32), (*image1.shape[:2], 2)).copy()


class Batched:
    """Says by its flow how many pairs stood in the batch and on which device; `flow` alone is never called."""

    name = "batched"

    def to(self, device):
        self.device = device

    def flow(self, image1, image2):
        raise AssertionError("flows is there")

    def flows(self, pairs):
        assert self.device == "cpu"  # a logical GPU of Ray's is no CUDA device
        return [np.full((*image1.shape[:2], 2), len(pairs), np.float32) for image1, _ in pairs]


class HalfSize:
    """A field of half the image's size, which is allowed: it is resampled as a result file would be."""

    name = "half"
    uses_gpu = False

    def flow(self, image1, image2):
        return np.ones((image1.shape[0] // 2, image1.shape[1] // 2, 2))


class NotANumber(Shift):
    name = "nan"

    def flow(self, image1, image2):
        flow = super().flow(image1, image2)
        flow[1, 1] = np.nan
        return flow


class WrongShape(Shift):
    name = "wrong"

    def flow(self, image1, image2):
        return super().flow(image1, image2)[:, :, 0]


class NoFlow:
    name = "none"
