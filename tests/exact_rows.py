"""Rows that are hard to search, and what exact arithmetic says of them: no routine of the package is asked.

Of ROUND rows float64 holds every sum exactly, so distances must be equal to the bit. Of RUGGED ones it rounds: there a
distance must be exact but for that rounding.
"""

import math
from fractions import Fraction

import numpy as np

ALL_DISTANCES = ("L2", "squared_L2", "ip", "L1", "hamming", "masked_L1")
PRODUCT_DISTANCES = ("squared_L2", "ip")  # those that every proposer knows
FLOAT64_ROUNDING = Fraction(1, 2**52)


def _integers(rng, shape):
    return rng.integers(-2, 3, shape).astype(np.float32)


ROUND = {
    "small integers": _integers,
    "one ulp apart": lambda rng, shape: (1 + rng.integers(0, 3, shape) * 2.0**-23).astype(np.float32),
    "few ulps in the last value": lambda rng, shape: np.where(
        np.arange(shape[1]) == shape[1] - 1, 1 + rng.integers(0, 9, shape) * 2.0**-23, 1
    ).astype(np.float32),
    "duplicates": lambda rng, shape: _integers(rng, (2, shape[1]))[rng.integers(0, 2, shape[0])],
    "all equal": lambda rng, shape: np.full(shape, 0.75, np.float32),
    "nearly all zeros": lambda rng, shape: (rng.integers(0, 6, shape) == 0).astype(np.float32),
    "denormals": lambda rng, shape: _integers(rng, shape) * np.float32(2.0**-149),
    "tiny": lambda rng, shape: _integers(rng, shape) * np.float32(2.0**-100),
    "huge": lambda rng, shape: _integers(rng, shape) * np.float32(2.0**120),
    "far from the origin": lambda rng, shape: (2.0**20 + rng.integers(0, 3, shape) / 8).astype(np.float32),
}
ROUND_DOUBLES = {  # beyond float32
    "tiny doubles": lambda rng, shape: np.float64(2.0**-500) * _integers(rng, shape),
    "huge doubles": lambda rng, shape: np.float64(2.0**500) * _integers(rng, shape),
    "apart below float32": lambda rng, shape: 1 + rng.integers(0, 3, shape) * 2.0**-24,
}
RUGGED = {
    "floats": lambda rng, shape: rng.standard_normal(shape).astype(np.float32),
    "mixed scales": lambda rng, shape: (_integers(rng, shape) * 2.0 ** rng.integers(-60, 61, shape)).astype(np.float32),
    "rows of mixed scales": lambda rng, shape: (
        rng.standard_normal(shape) * 2.0 ** rng.integers(-120, 121, (shape[0], 1))
    ).astype(np.float32),
    "one huge row": lambda rng, shape: (
        rng.standard_normal(shape) * np.where(np.arange(shape[0]) == shape[0] // 2, 1e15, 1)[:, None]
    ).astype(np.float32),
    "far tiny floats": lambda rng, shape: RUGGED["far floats"](rng, shape) * np.float32(2.0**-100),
    "far huge floats": lambda rng, shape: RUGGED["far floats"](rng, shape) * np.float32(2.0**100),
    "far floats": lambda rng, shape: (100 + rng.standard_normal(shape) * 1e-4).astype(np.float32),
}


def made(rng, kind, shape, distance):
    """Rows of a kind, as a distance takes them."""
    if distance == "hamming":
        bits = {"small integers": 2, "duplicates": 2, "all equal": 1}.get(kind, 256)
        return rng.integers(0, bits, shape, dtype=np.uint8)
    return (ROUND | ROUND_DOUBLES | RUGGED)[kind](rng, shape)


TERMS = {"ip": lambda x, y: -x * y, "L2": lambda x, y: (x - y) ** 2, "squared_L2": lambda x, y: (x - y) ** 2}


def exact(query, reference, distance):
    """The distance of two rows as a fraction (squared for L2), and the sum of its terms' sizes."""
    (fraction,), (size,) = (row for (row,) in every_exact(query[None], reference[None], distance))
    return fraction, size


def every_exact(queries, references, distance):
    """Fractions and sizes of every pair, (queries, references) lists; in whole numbers over one power of two."""
    if distance == "hamming":
        terms, unit = _pairs(queries.tolist(), references.tolist(), lambda x, y: (x ^ y).bit_count()), 1
    else:
        ratios = [[value.as_integer_ratio() for value in row] for row in (*queries.tolist(), *references.tolist())]
        unit = max((below for row in ratios for _, below in row), default=1)
        rows = [[above * (unit // below) for above, below in row] for row in ratios]
        if distance == "masked_L1":
            rows = [[value * mask for value, mask in zip(row, row[len(row) // 2 :], strict=False)] for row in rows]
        terms = _pairs(rows[: len(queries)], rows[len(queries) :], TERMS.get(distance, lambda x, y: abs(x - y)))
        unit = unit if distance == "L1" else unit**2
    fractions = [[Fraction(sum(own), unit) for own in row] for row in terms]
    return fractions, [[Fraction(sum(map(abs, own)), unit) for own in row] for row in terms]


def _pairs(queries, references, term):
    return [[list(map(term, query, reference)) for reference in references] for query in queries]


def decided(fraction, distance):
    """The float64 distance that stands for a fraction which float64 holds."""
    return math.sqrt(float(fraction)) if distance == "L2" else float(fraction)


def every_decided(queries, references, distance):
    """The distances of every pair of ROUND rows, to the bit."""
    fractions, _ = every_exact(queries, references, distance)
    return np.array([[decided(value, distance) for value in row] for row in fractions]).reshape(
        len(queries), len(references)
    )


def is_rounded(found, fraction, size, dimension, distance):
    """Whether a distance is exact but for float64's rounding of its terms and their sum."""
    slack = (dimension + 4) * FLOAT64_ROUNDING * size
    if distance == "L2":
        square = Fraction(found) ** 2
        return abs(square - fraction) <= slack + 4 * FLOAT64_ROUNDING * square
    return abs(Fraction(found) - fraction) <= slack
