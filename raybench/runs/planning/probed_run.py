"""A run that computes a few items of each stage and stands in for the rest: what `plan` rests on.

The benchmark's own walk is walked over the whole job, so shards and items are those of the real run. Of each stage a
small random sample goes through the real stage code into a scratch store: what reads the user's data or wants a device
on the real executor, the rest in this process. What later stages and the driver read is what is in the job's store
already, else a stand-in made from the sample.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from raybench import storage
from raybench.digests import digest_of
from raybench.engine.inline import InlineExecutor
from raybench.engine.items import Write, name_of
from raybench.engine.run import Executor, Run, output_name
from raybench.engine.shards import Shard, Shards
from raybench.engine.stages import FILE_BYTES, Mapped, Receipt, Stage
from raybench.errors import CorruptShard, RaybenchError
from raybench.formats import shardfile
from raybench.formats.shardfile import Arrays
from raybench.runs.planning.measured import TAKEN, Measure, Measured, Part, SampleFile
from raybench.runs.planning.probe_samples import LEAST_OF_SEARCH, LEAST_SAMPLES, MOST_SAMPLES, ProbeTime, choices
from raybench.runs.planning.stand_ins import Sample, rows_of, settled, stand_in
from raybench.runs.sessions import Session
from raybench.search.set_search import SearchRuns

MOST_STAND_IN_BYTES = 3 * 2**30
MOST_AHEAD = 64  # stand-ins that are made at once
FEW = 256  # members of a tuple that may be inputs


class WalkEnded(RaybenchError):
    """The driver needs what can't be known without running the job; says what."""


class Unprobed(RaybenchError):
    """A stage can't be sampled; says why."""


@dataclass(frozen=True)
class PlannedStage:
    """A stage of the job: its shards and those found in the store, and over the missing ones what time grows with."""

    name: str
    on_device: bool
    shards: int
    found: int
    items: int
    work: float
    base: float
    largest: tuple[float, float]  # work and base of the largest missing shard
    reads_data: bool  # files of the user's, not other stages
    input_bytes: float  # of other stages, each counted once
    measures: tuple[Measure, ...]
    reason: str  # why nothing was measured


class ProbedRun(Run):
    """Walks jobs over one store, in a scratch folder; `planned` has their stages. A job finds what others left."""

    def __init__(self, store: str, scratch: str, session: Session, seed: int) -> None:
        super().__init__(
            storage.join(scratch, "out"), storage.join(scratch, "stages"), session.executor, session.observer
        )
        self.planned: list[PlannedStage] = []
        self.overheads: list[float] = []  # seconds of a map beside those of its shard
        self.has_guessed = False  # whether the driver read a stand-in
        self.probing_seconds = 0.0
        self._real_store, self._scratch = store, scratch
        self._here = InlineExecutor(session.observer)
        self._done: dict[str, set[str]] = {}  # by digest, file names of shards that are planned
        self._random, self._noise = random.Random(seed), np.random.default_rng(seed)
        self._samples: dict[str, Sample] = {}  # by digest
        self._of_kin: dict[str, Sample] = {}  # for a stage that has no sample of its own
        self._searches: dict[str, list[Measure]] = {}  # of which the first of its kin is measured
        self._there: dict[str, set[str]] = {}  # by digest, file names in the job's store
        self._bytes: dict[str, float] = {}  # by digest, what the whole stage publishes
        self._ahead: Counter[str] = Counter()
        self._stand_in_bytes = self._files_made = 0
        self._time = ProbeTime()

    def map(self, stage: Stage, count: int, size: int, wanted: Iterable[int] | None = None) -> Mapped:
        """Plan the stage's shards; compute a few items of those that are missing."""
        digest = digest_of(shardfile.VERSION, stage.digest, count, size)
        shards = Shards(stage.name, count, size)
        mapped = Mapped(self.store, stage.name, digest, shards)
        self._known[digest] = (stage, mapped)
        numbers = range(len(shards)) if wanted is None else sorted({item // size for item in wanted})
        stored = storage.list_files(storage.join(self._real_store, digest)) if self._real_store else []
        self._there[digest] = {entry.name for entry in stored}
        found = self._there[digest] | self._done.get(digest, set())
        missing = [number for number in numbers if shards[number].file_name not in found]
        self._plan(stage, digest, [shards[number] for number in numbers], [shards[number] for number in missing])
        self._done.setdefault(digest, set()).update(shards[number].file_name for number in missing)
        self._bytes[digest] = max(self._bytes.get(digest, 0.0), float(sum(entry.size_bytes for entry in stored)))
        return mapped

    def write(self, pattern: str, function: Callable[..., Any], items: Sequence[Any], *inputs: Any) -> None:
        """Plan the output files; make a few of them."""
        stage = Write(function, items, inputs, version=0)
        shards = list(Shards(stage.name, len(items), 1))
        digest = f"{pattern} {stage.digest}"
        self._plan(stage, digest, shards, shards)
        for item in items[:1] if digest in self._samples else ():  # the driver may look at a picture
            name = output_name(pattern.format(name=name_of(item), item=item))
            storage.publish(storage.join(self.out, name), self._samples[digest].arrays[FILE_BYTES].tobytes())

    def read(self, mapped: Mapped, index: int) -> Arrays:
        """A shard for the driver: from the job's store, else a stand-in."""
        shard = mapped.shards[index]
        if shard.file_name in self._there[mapped.digest]:
            return super().read(dataclasses.replace(mapped, store=self._real_store), index)
        self.has_guessed = True
        with self._probing():
            stage, _ = self._known[mapped.digest]
            return self._stand_in(stage, mapped.digest, shard)

    def _plan(self, stage: Stage, digest: str, shards: Sequence[Shard], missing: Sequence[Shard]) -> None:
        measures: list[Measure] = []
        reason = ""
        inputs = list(inputs_of(stage))
        input_bytes = sum(self._bytes.get(one, 0.0) for one in {one.digest for one in inputs})
        if missing:
            with self._probing():
                try:
                    measures = self._measured(stage, digest, missing, input_bytes)
                except Unprobed as error:
                    reason = str(error)
                except (RaybenchError, ValueError, LookupError) as error:
                    if not inputs:  # no stand-in is to blame: the job itself would fail so
                        raise
                    reason = str(error).splitlines()[0]
        worked = [(work_of(stage, shard), base_of(stage, shard)) for shard in missing]
        planned = PlannedStage(
            name=stage.name,
            on_device=stage.on_device,
            shards=len(shards),
            found=len(shards) - len(missing),
            items=sum(map(len, shards)),
            work=sum(work for work, _ in worked),
            base=sum(base for _, base in worked),
            largest=max(worked, default=(0.0, 0.0)),
            reads_data=not inputs,
            input_bytes=input_bytes,
            measures=tuple(measures),
            reason=reason,
        )
        self.planned.append(planned)
        if measures:
            whole = sum(work_of(stage, shard) for shard in shards)
            self._bytes[digest] = measures[-1].bytes_written / max(measures[-1].work, 1.0) * whole

    def _measured(self, stage: Stage, digest: str, missing: Sequence[Shard], input_bytes: float) -> list[Measure]:
        """Samples of a stage in the order in which they were taken."""
        reads_data = not any(inputs_of(stage))
        measures: list[Measure] = []
        whole = sum(work_of(stage, shard) for shard in missing)
        executor = self._executor if reads_data or stage.on_device else self._here
        for shard, part in choices(stage, missing, reads_data, self._random):
            is_figure = part is None and not reads_data and len(missing) <= MOST_SAMPLES
            work = work_of(stage, shard) if part is None else part.work
            least = LEAST_SAMPLES if part is None else LEAST_OF_SEARCH
            if not self._time.allows(work, measures, whole, is_figure, least):
                break
            if self._time.is_over_for(input_bytes):
                raise Unprobed("the probe's time is over")
            measures.append(self._sample(stage, digest, shard, part, executor))
            if part is not None and kin_of(stage) in self._searches:
                return self._searches[kin_of(stage)]
        if isinstance(stage, SearchRuns):
            self._searches[kin_of(stage)] = measures
        return measures

    def _sample(self, stage: Stage, digest: str, shard: Shard, part: Part | None, executor: Executor) -> Measure:
        self._files_made += 1
        file = SampleFile(storage.join(self._scratch, f"samples/{self._files_made}"))
        while True:
            begun = time.monotonic()
            try:
                with np.errstate(all="ignore"):  # figures of stand-ins may make no sense, which nobody will see
                    (receipt,) = executor.map(Measured(stage, part), [shard], file)
                break
            except CorruptShard as broken:
                self._supply(broken)
        if executor is self._executor:
            self.overheads.append(max(time.monotonic() - begun - sum(_parts(receipt)), 0.0))
        arrays = file.read()
        own = {name: array for name, array in arrays.items() if name != TAKEN}
        rows = rows_of(stage, shard) if part is None else np.arange(part.queries.start, part.queries.stop)
        self._keep(stage, digest, Sample(len(shard), rows, own), shard, is_whole=part is None)
        if part is not None:
            return Measure.of(part.work, len(part.queries), receipt, arrays)
        return Measure.of(work_of(stage, shard), base_of(stage, shard), receipt, arrays)

    def _keep(self, stage: Stage, digest: str, sample: Sample, shard: Shard, is_whole: bool) -> None:
        """Keep the larger sample for stand-ins, if its arrays can be told apart by item; and a shard that is whole."""
        divisible = all(
            not len(array) % max(sample.items, 1) or "counts" in sample.arrays for array in sample.arrays.values()
        )
        if digest not in self._samples or divisible:
            self._samples[digest] = self._of_kin[kin_of(stage)] = sample
        if is_whole and digest in self._known:
            _, mapped = self._known[digest]
            if shard == mapped.shards[shard.index]:
                mapped.publish(shard, settled(stage, sample.arrays, shard))  # as the others will be

    def _supply(self, broken: CorruptShard) -> None:
        """Put what a sample needs into the scratch store: a copy of what is in the job's store, or stand-ins."""
        if self._time.is_over_for(0) or self._stand_in_bytes > MOST_STAND_IN_BYTES:
            raise Unprobed("its inputs are too large for a probe")
        stage, mapped = self._known[broken.digest]
        self._ahead[broken.digest] = min(2 * self._ahead[broken.digest] + 1, MOST_AHEAD)
        there = self._there[broken.digest]
        last = min(broken.index + self._ahead[broken.digest], len(mapped.shards))
        for shard in mapped.shards[broken.index : last]:
            if shard.file_name in there:
                data: bytes = storage.read(storage.join(self._real_store, broken.digest, shard.file_name))
                storage.publish(mapped.uri(shard.index), data)
                self._stand_in_bytes += len(data)
            elif shard.index == broken.index or not storage.exists(mapped.uri(shard.index)):
                self._stand_in_bytes += mapped.publish(shard, self._stand_in(stage, broken.digest, shard))

    def _stand_in(self, stage: Stage, digest: str, shard: Shard) -> Arrays:
        _, mapped = self._known[digest]
        try:
            return mapped.read(shard.index)
        except CorruptShard:
            pass
        sample = self._samples.get(digest) or self._of_kin.get(kin_of(stage))
        if sample is None:
            raise WalkEnded(f"{stage.name}: could not be probed")
        return stand_in(stage, sample, shard, self._noise)

    @contextmanager
    def _probing(self) -> Iterator[None]:
        """The block's seconds are the probe's and not the driver's."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self.probing_seconds += time.monotonic() - begun


def _parts(receipt: Receipt) -> tuple[float, float, float]:
    return receipt.load_seconds, receipt.compute_seconds, receipt.publish_seconds


def kin_of(stage: Stage) -> str:
    """What stages have in common whose samples may stand for each other: codecs are searched alike."""
    return f"{stage.name} {getattr(stage, 'distances', '')}"


def work_of(stage: Stage, shard: Shard) -> float:
    """What a shard's time grows with: its items, where the stage does not say otherwise."""
    work = getattr(stage, "work", None)
    return float(len(shard)) if work is None else float(work(shard))


def base_of(stage: Stage, shard: Shard) -> float:
    """What the rest of a shard's time grows with: it is the same for each, where the stage does not say otherwise."""
    base = getattr(stage, "base", None)
    return 1.0 if base is None else float(base(shard))


def inputs_of(value: Any) -> Iterator[Mapped]:
    """The stages that a stage reads."""
    if isinstance(value, Mapped):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from inputs_of(getattr(value, field.name))
    elif isinstance(value, Mapping | tuple | list) and len(value) <= FEW:
        members: Collection[Any] = value.values() if isinstance(value, Mapping) else value
        for one in members:
            yield from inputs_of(one)
