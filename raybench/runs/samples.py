"""The samples of a finished run, read back from its folder; stages and data may be gone."""

from __future__ import annotations

from dataclasses import dataclass

from raybench import storage
from raybench.benchmarks.samples import FOLDER, INDEX, SUFFIX, SamplesIndex, read_sample
from raybench.errors import ConfigError, DataError
from raybench.metrics.samples import FigureOf, MeanOf, Sample
from raybench.parallel import in_parallel
from raybench.runs.manifest import Manifest


@dataclass(frozen=True)
class StoredSamples:
    """What the figures of a run are made of; `kind` is what its units are: queries, sequences, pairs."""

    kind: str
    samples: tuple[Sample, ...]
    means: tuple[MeanOf, ...]
    data: dict[str, str]

    @property
    def by_figure(self) -> dict[FigureOf, Sample]:
        return {figure: sample for sample in self.samples for figure in sample.figures}


def read_samples(out: str, manifest: Manifest) -> StoredSamples:
    """The samples that the manifest names; a run of an older raybench has none, which is the user's to mend."""
    if INDEX not in manifest.files:
        raise ConfigError(
            f"{out}: has no samples, which runs of an older raybench did not keep; run again with --overwrite to get "
            "samples (its stages are reused, so that is quick)"
        )
    names = [name for name in manifest.files if name.startswith(FOLDER) and name.endswith(SUFFIX)]
    index, *files = in_parallel(lambda name: _read(out, name), [INDEX, *names])
    about = SamplesIndex.from_json(index, storage.join(out, INDEX))
    samples = tuple(read_sample(data, storage.join(out, name)) for name, data in zip(names, files, strict=True))
    return StoredSamples(about.kind, samples, about.means, about.data)


def _read(out: str, name: str) -> bytes:
    try:
        return storage.read(storage.join(out, name))
    except FileNotFoundError:
        raise DataError(f"{out}: {name} is missing; run again with --overwrite") from None
