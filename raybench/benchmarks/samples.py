"""What a run keeps so that its figures can be drawn again: `samples/NAME.npz` for each sample, and `samples.json`."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.errors import reason_of
from raybench.formats.shardfile import Arrays
from raybench.metrics.samples import FigureOf, MeanOf, Sample, sample_of

FOLDER, SUFFIX = "samples/", ".npz"
PATTERN = f"{FOLDER}{{name}}{SUFFIX}"
INDEX = f"{FOLDER}samples.json"


@dataclass(frozen=True)
class RunSamples:
    """The samples of a run, each the arrays of an item of a stage; `kind` is queries, sequences or pairs.

    `data` are digests of what is measured on (names of references), which runs that are compared must share.
    """

    kind: str
    stages: tuple[PerItem, ...]
    means: tuple[MeanOf, ...] = ()
    data: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SamplesIndex:
    """What `samples.json` says: what the units are, figures that are means of others, digests of the data."""

    kind: str
    means: tuple[MeanOf, ...]
    data: dict[str, str]

    @classmethod
    def of(cls, samples: RunSamples) -> SamplesIndex:
        return cls(samples.kind, samples.means, dict(samples.data))

    def to_json(self) -> bytes:
        means = [{"figure": _names(one.figure), "parts": [_names(part) for part in one.parts]} for one in self.means]
        return json.dumps({"kind": self.kind, "means": means, "data": self.data}, indent=1).encode()

    @classmethod
    def from_json(cls, text: bytes) -> SamplesIndex:
        """What `to_json` wrote; another text is a ValueError."""
        try:
            said = json.loads(text)
            means = [
                MeanOf(FigureOf(*one["figure"]), tuple(FigureOf(*part) for part in one["parts"]))
                for one in said["means"]
            ]
            return cls(str(said["kind"]), tuple(means), {str(key): str(value) for key, value in said["data"].items()})
        except (TypeError, LookupError, AttributeError, RecursionError) as error:
            raise ValueError(reason_of(error)) from None


def write_samples(run: Run, items: Sequence[Any], samples: PerItem) -> None:
    """A file for each item of `run.each(…)` whose arrays are those of `Sample.to_arrays`."""
    run.write(PATTERN, sample_file, items, samples)


def sample_file(_: Any, arrays: Arrays) -> bytes:
    """A sample as `.npz`."""
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)  # deflating a million pairs would take 0.1 s, for a third
    return written.getvalue()


def read_sample(data: bytes) -> Sample:
    """A sample that `sample_file` wrote; other bytes are a ValueError."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            sample = sample_of({name: file[name] for name in file.files})
        replace(sample).draw(np.ones(len(sample.units), np.int64))  # arrays that do not fit each other show in any draw
    except (OSError, EOFError, zipfile.BadZipFile, LookupError, TypeError, AttributeError) as error:
        raise ValueError(reason_of(error)) from None
    return sample


def _names(figure: FigureOf) -> tuple[str, str]:
    return figure.row, figure.figure
