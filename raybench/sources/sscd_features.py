"""Feature files of the SSCD tools: a dictionary of tensors in a `.pt` file, of all images that one run has seen.

`disc_eval` leaves `predictions.pt` with `embeddings`, `split` (0 references, 1 queries, 2 training), `image_num` and
`instance_id`; `copydays_eval` leaves `copydays.pt`, `distractors.pt` and `codec_train.pt` with `embeddings` and
`instance_id`, the image's index in its data set. An instance may stand there twice, since distributed samplers fill up
their last round; the first counts. Read with `weights_only`, so that nothing in a file is executed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.errors import DataError, reason_of
from raybench.formats.names import Strings, strings
from raybench.formats.torch_files import check_pickles
from raybench.formats.vector_columns import pick

SPLITS = {"references": (0, "R", 6), "queries": (1, "Q", 5), "training": (2, "T", 6)}  # number, letter, digits
DIGITS = 9  # of the number that stands for a name where the file has none


class SscdFeatures:
    """An open file, or one part of it; tensors are mapped, so rows are read when they are asked for."""

    def __init__(self, path: Path, name: str, part: str = "") -> None:
        tensors = _load(path, name)
        self._vectors = tensors[pick(tensors, ("embeddings",), name)]
        instance = self._column(tensors, "instance_id", name)
        if self._vectors.ndim != 2 or not self._vectors.dtype.is_floating_point or not len(self._vectors):
            raise DataError(
                f"{name}: embeddings are {self._vectors.dtype} of shape {tuple(self._vectors.shape)}, "
                "expected float32 (images, dimension)"
            )
        rows = np.unique(instance, return_index=True)[1]
        self._name, self._part = name, part
        self._number = instance
        if part:
            split, self._number = (self._column(tensors, key, name) for key in ("split", "image_num"))
            rows = rows[split[rows] == SPLITS[part][0]]
            if not len(rows):
                raise DataError(f"{name}: no image of split {SPLITS[part][0]} ({part})")
        self._rows = rows
        self.count, self.dimension = len(rows), int(self._vectors.shape[1])

    def names(self) -> Strings:
        letter, digits = SPLITS[self._part][1:] if self._part else ("", DIGITS)
        return strings([f"{letter}{number:0{digits}d}" for number in self._number[self._rows].tolist()])

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        chosen = self._rows[start:stop]
        first, last = int(chosen.min()), int(chosen.max()) + 1
        if last - first == len(chosen) and np.all(np.diff(chosen) == 1):
            return np.array(self._vectors[first:last].float().numpy(), np.float32)
        return np.array(self._vectors[chosen].float().numpy(), np.float32)

    def _column(self, tensors: dict[str, Any], key: str, name: str) -> NDArray[np.int64]:
        column = tensors[pick(tensors, (key,), name)]
        if column.ndim != 1 or len(column) != len(self._vectors) or column.dtype.is_floating_point:
            raise DataError(
                f"{name}: {key} is {column.dtype} of shape {tuple(column.shape)}, "
                f"expected {len(self._vectors):,} whole numbers"
            )
        return np.asarray(column.numpy(), np.int64)


def _load(path: Path, name: str) -> dict[str, Any]:
    import torch

    check_pickles(
        str(path), f"{name}: no file of tensors, or it holds more than those", "expected one of the SSCD tools"
    )
    try:
        try:
            loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        except RuntimeError:  # the format before torch 1.6 can't be mapped
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 (unpickling raises whatever the bytes make it raise)
        raise DataError(f"{name}: no file of tensors, or it holds more than those ({reason_of(error)})") from None
    if not isinstance(loaded, dict) or not all(isinstance(value, torch.Tensor) for value in loaded.values()):
        raise DataError(f"{name}: expected a dictionary of tensors, found {type(loaded).__name__}")
    return loaded
