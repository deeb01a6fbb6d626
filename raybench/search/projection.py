"""A trained codec as a chain of frozen steps, applied so that a row's result does not depend on the rows beside it.

Linear maps go by one float64 product, which proposes: its last bits vary with the block's shape, the BLAS and the
threads. Where they could change the rounding to float32, a row-wise float64 sum decides. Each step's result is rounded
to float32, as in FAISS, whose own results differ from these by no more than rounding in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raybench.formats.shardfile import Arrays
from raybench.search.distances import row_sums

FLOAT64_UNIT = 2.0**-52  # twice float64's rounding error
PROJECTED_AT_ONCE = 1 << 20  # values of input or output at once


@dataclass(frozen=True)
class Linear:
    """A x + b."""

    matrix: NDArray[np.float32]  # (out, in)
    offset: NDArray[np.float32]  # (out,)

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        with np.errstate(over="ignore", invalid="ignore"):  # callers look for values that are not finite
            matrix, offset = self.matrix.astype(np.float64), self.offset.astype(np.float64)
            exact = rows.astype(np.float64, order="C")
            proposed = exact @ matrix.T + offset
            reach = np.sqrt(row_sums(exact, exact))[:, None] * np.sqrt((matrix * matrix).sum(axis=1))
            error = (rows.shape[1] + 16) * FLOAT64_UNIT * (reach + np.abs(offset))
            result: NDArray[np.float32] = (proposed - error).astype(np.float32)
            row, column = np.nonzero(result != (proposed + error).astype(np.float32))
            step = max(PROJECTED_AT_ONCE // rows.shape[1], 1)
            for start in range(0, len(row), step):
                i, j = row[start : start + step], column[start : start + step]
                result[i, j] = row_sums(exact[i], matrix[j]) + offset[j]
            return result


@dataclass(frozen=True)
class Normalise:
    """Rows of length 1; a row of zeros stays."""

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        exact = rows.astype(np.float64, order="C")
        length = np.sqrt(row_sums(exact, exact))
        return np.divide(exact, np.where(length > 0, length, 1.0)[:, None]).astype(np.float32)


@dataclass(frozen=True)
class Centre:
    """x - mean."""

    mean: NDArray[np.float32]

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return rows - self.mean


@dataclass(frozen=True)
class Remap:
    """Columns in another order; -1 gives zeros."""

    source: NDArray[np.int64]

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.where(self.source >= 0, rows[:, np.maximum(self.source, 0)], np.float32(0))


Step = Linear | Normalise | Centre | Remap
STEP_KINDS: dict[str, type[Step]] = {
    "linear": Linear,
    "normalise": Normalise,
    "centre": Centre,
    "remap": Remap,
}


@dataclass(frozen=True)
class Projection:
    """The steps of a codec, in their order.

    >>> Projection((Centre(np.float32([1, 1])), Normalise())).apply(np.float32([[4, 5]])).round(3).tolist()
    [[0.6000000238418579, 0.800000011920929]]
    """

    steps: tuple[Step, ...]

    @property
    def is_finite(self) -> bool:
        return all(bool(np.isfinite(array).all()) for step in self.steps for array in vars(step).values())

    def apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """The projected rows, some at a time."""
        width = max([rows.shape[1], *(len(array) for step in self.steps for array in vars(step).values())])
        height = max(PROJECTED_AT_ONCE // width, 1)
        return np.concatenate([self._apply(rows[at : at + height]) for at in range(0, max(len(rows), 1), height)])

    def _apply(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        for step in self.steps:
            rows = step.apply(rows)
        return rows

    def to_arrays(self) -> Arrays:
        kinds = [kind for step in self.steps for kind, known in STEP_KINDS.items() if type(step) is known]
        arrays = {f"{n}.{name}": array for n, step in enumerate(self.steps) for name, array in vars(step).items()}
        return {"steps": np.array(kinds, "U16"), **arrays}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Projection:
        return cls(tuple(_step(kind, arrays, number) for number, kind in enumerate(arrays["steps"].tolist())))


def _step(kind: str, arrays: Arrays, number: int) -> Step:
    own = {name.partition(".")[2]: array for name, array in arrays.items() if name.startswith(f"{number}.")}
    return STEP_KINDS[kind](**own)
