"""Vectors that are hard for a float32 product, and the distances of every pair of them by the row-wise routine."""

import numpy as np

from raybench.search.distances import row_distances

KINDS = ("small integers", "floats", "float32", "far from the origin", "tiny", "huge", "all equal")


def made(rng, kind, shape, distance):
    """Vectors that are hard for a product: ties, large offsets, sizes at the ends of float32."""
    if distance == "hamming":
        return rng.integers(0, 2 if kind == "small integers" else 256, shape, dtype=np.uint8)
    values = {
        "small integers": lambda: rng.integers(0, 3, shape).astype(np.float32),
        "floats": lambda: rng.standard_normal(shape),
        "float32": lambda: rng.standard_normal(shape).astype(np.float32),
        "far from the origin": lambda: 1e6 + rng.integers(0, 3, shape) / 64,
        "tiny": lambda: rng.standard_normal(shape) * 1e-30,
        "huge": lambda: rng.standard_normal(shape) * 1e30,
        "all equal": lambda: np.full(shape, 0.1, np.float32),
    }
    return values[kind]()


def every_distance(queries, references, distance):
    rows = [row_distances(np.broadcast_to(query, references.shape), references, distance) for query in queries]
    return np.array(rows).reshape(len(queries), len(references))
