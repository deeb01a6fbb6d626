"""What a run keeps so that its figures can be drawn again: `samples/NAME.npz` for each sample, and `samples.json`."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raybench.engine.items import PerItem
from raybench.engine.run import Run
from raybench.errors import blamed_on_file
from raybench.formats.npy import member_header, open_npz, read_member
from raybench.formats.shardfile import Arrays
from raybench.metrics.samples import FigureOf, MeanOf, Sample, check_arrays, sample_of

FOLDER, SUFFIX = "samples/", ".npz"
PATTERN = f"{FOLDER}{{name}}{SUFFIX}"
INDEX = f"{FOLDER}samples.json"
ADVICE = "run again with --overwrite"


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
    def from_json(cls, text: bytes, name: str) -> SamplesIndex:
        """What `to_json` wrote; another text is a DataError."""
        with blamed_on_file(f"{name}: does not say what samples there are", ADVICE):
            said = json.loads(text)
            means = tuple(MeanOf(_figure(one["figure"]), tuple(map(_figure, one["parts"]))) for one in said["means"])
            if not all(one.parts for one in means):
                raise ValueError("a mean of nothing")
            return cls(str(said["kind"]), means, {str(key): str(value) for key, value in said["data"].items()})


def write_samples(run: Run, items: Sequence[Any], samples: PerItem) -> None:
    """A file for each item of `run.each(…)` whose arrays are those of `Sample.to_arrays`."""
    run.write(PATTERN, sample_file, items, samples)


def sample_file(_: Any, arrays: Arrays) -> bytes:
    """A sample as `.npz`."""
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **arrays)  # deflating a million pairs would take 0.1 s, for a third
    return written.getvalue()


def read_sample(data: bytes, name: str) -> Sample:
    """A sample that `sample_file` wrote; other bytes are a DataError. A run's folder may come from anywhere."""
    with blamed_on_file(f"{name}: no sample of a run", ADVICE):
        archive, members = open_npz(io.BytesIO(data), name, ADVICE)
        sizes = [member_header(archive, member, name).body_bytes for member in members.values()]
        if sum(sizes) > len(data):
            raise ValueError("it is packed")  # which no run does, and a small file may hold any size
        arrays = {key: read_member(archive, member, name) for key, member in members.items()}
        check_arrays(arrays)
        return sample_of(arrays)


def _names(figure: FigureOf) -> tuple[str, str]:
    return figure.row, figure.figure


def _figure(names: Any) -> FigureOf:
    row, figure = names
    if not (isinstance(row, str) and isinstance(figure, str)):
        raise TypeError("a figure is named by a row and a column")
    return FigureOf(row, figure)
