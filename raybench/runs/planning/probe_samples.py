"""What a probe samples of a stage, and how long: small samples first, more of what will take longer."""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Iterator, Sequence

from raybench.engine.shards import Shard
from raybench.engine.stages import Stage
from raybench.runs.planning.measured import Measure, Part, first_part

PROBE_SECONDS = 30.0  # in which samples grow; beyond it a stage gets the smallest that will do
LAST_SECONDS = 45.0  # beyond which only what reads little is sampled
END_SECONDS = 55.0  # beyond which nothing is
LITTLE_BYTES = 32 * 2**20
# For the samples of one stage: a share of what the whole stage will take, within these.
SHARE, LEAST_SECONDS, MOST_SECONDS = 0.1, 0.4, 4.0
FIGURES_SECONDS = 2.0  # the least for figures of a few tasks, which the driver then has as they are
NEXT_SHARE = 0.1  # of the time that is left, which the next sample may take
SAMPLE_SIZES = (1, 1, 8, 64, 512, 4096)  # items of a stage that reads data; the first pays for opening a model
# Of a sample of a search. The first warms up; of few references each costs more, as thresholds have yet to settle.
QUERIES, REFERENCES = 2_048, (512, 8_192, 32_768)
LEAST_SAMPLES, LEAST_OF_SEARCH = 2, 3  # one that pays for what is done once, and of a search two sizes
MOST_SAMPLES = 64  # of one stage, while they take no time


class ProbeTime:
    """The time that a probe has."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def is_over_for(self, input_bytes: float) -> bool:
        """Whether there is no time left for a stage that reads so much of others."""
        return self._left + (END_SECONDS if input_bytes < LITTLE_BYTES else LAST_SECONDS) - PROBE_SECONDS < 0

    def allows(self, work: float, measures: Sequence[Measure], whole: float, is_figure: bool, least: int) -> bool:
        """Whether another sample, of so much work, is worth its time and has it; `whole` is the work of the stage."""
        if not measures:
            return True
        if len(measures) < least:
            return self._left > 0 or least > LEAST_SAMPLES
        if self._left < 0:
            return False
        last, taken = measures[-1], sum(one.seconds for one in measures)
        rate = last.seconds / last.work if last.work else 0.0
        enough = FIGURES_SECONDS if is_figure else LEAST_SECONDS
        return taken < min(max(SHARE * rate * whole, enough), MOST_SECONDS) and rate * work < NEXT_SHARE * self._left

    @property
    def _left(self) -> float:
        return self._started + PROBE_SECONDS - time.monotonic()


def choices(
    stage: Stage, missing: Sequence[Shard], reads_data: bool, chance: random.Random
) -> Iterator[tuple[Shard, Part | None]]:
    """What to sample, smallest first: items of random shards, parts of a search, or whole shards."""
    if first_part(stage, missing[0], QUERIES, REFERENCES[0]) is not None:
        sampled = _parts_of_search(stage, missing, chance)
    elif reads_data and max(map(len, missing)) > 1:
        sampled = _items(missing, chance)
    else:
        sampled = _whole_shards(missing, chance)
    return itertools.islice(sampled, MOST_SAMPLES)


def _parts_of_search(
    stage: Stage, missing: Sequence[Shard], chance: random.Random
) -> Iterator[tuple[Shard, Part | None]]:
    for references in itertools.chain(REFERENCES, itertools.repeat(REFERENCES[-1])):
        shard = chance.choice(missing)
        yield shard, first_part(stage, shard, QUERIES, references)


def _items(missing: Sequence[Shard], chance: random.Random) -> Iterator[tuple[Shard, None]]:
    largest = max(map(len, missing))
    sizes = [size for size in SAMPLE_SIZES if size < largest]
    for size in itertools.chain(sizes, itertools.repeat(largest)):
        shard = chance.choice([one for one in missing if len(one) >= size])
        start = chance.randint(shard.start, shard.stop - size)
        yield dataclasses.replace(shard, start=start, stop=start + size), None


def _whole_shards(missing: Sequence[Shard], chance: random.Random) -> Iterator[tuple[Shard, None]]:
    for shard in chance.sample(missing, min(len(missing), MOST_SAMPLES - 1)):
        yield shard, None
    yield missing[-1], None  # once more, without what the first had to import
