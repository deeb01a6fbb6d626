"""What a run keeps so that its figures can be drawn again: `samples/*.npz`, one file per sample, and means."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.formats.shardfile import Arrays
from raybench.metrics.samples import MeanOf

PATTERN = "samples/{name}.npz"


@dataclass(frozen=True)
class RunSamples:
    """The samples of a run, each the arrays of an item of a stage; `kind` is queries, sequences or pairs."""

    kind: str
    stages: tuple[PerItem, ...]
    means: tuple[MeanOf, ...] = ()


def write_samples(run: Run, items: Sequence[Any], samples: PerItem) -> None:
    """A file for each item of `run.each(…)` whose arrays are those of `Sample.to_arrays`."""
    run.write(PATTERN, sample_file, items, samples)


def sample_file(_: Any, arrays: Arrays) -> bytes:
    """A sample as `.npz`."""
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)  # deflating a million pairs would take 0.1 s, for a third
    return written.getvalue()
