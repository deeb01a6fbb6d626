"""`python -m tests.perf.plan_disc BENCH.json`: DISC2021 on eight GPUs on paper, a line per step, as Markdown.

Rates of one core are those that the bench measured into the file (`ceilings`, `shares`, `names`). What could not be
measured here stands below as an assumption with its source. Steps follow one another; within extraction fetching,
loading and the network overlap, so the slowest of the three counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REFERENCES = TRAINING = 1_000_000
QUERIES, DIMENSION = 50_000, 512
IMAGES = REFERENCES + TRAINING + QUERIES
IMAGE_BYTES = 192_000  # assumed: as `ceilings.jpeg`, a photo of 1,024 x 768 px
ROW_BYTES = 4 * DIMENSION
CODECS = 2  # Flat and PCAW512; each searched by distance, by inner product, and among training for the score norm
PUBLISHED_SECONDS = 2 * 3_600  # "~2 hours (on an 8 GPU machine)", the page on reproducing results in SSCD's repository

# Assumed. R50 in float32 at 224 x 224 on one V100, batches of 128 (NVIDIA DeepLearningExamples, PyTorch resnet50v1.5);
# convolutions grow with the area.
V100_IMAGES_PER_SECOND = 1_229 * (224 * 224) / (288 * 384)
V100_SEARCH_FLOPS = 7e12  # assumed: half of its float32 peak
NETWORK_BYTES_PER_SECOND = 25e9 / 8 * 0.8  # assumed: a 25 Gbit/s node, four fifths of it
LISTED_PER_SECOND = 1_000 / 0.1  # assumed: a page of 1,000 names in 0.1 s, one after the other
REQUESTS_PER_SECOND = 5_500  # GETs below one prefix that Amazon S3 documents
SECONDS_PER_NAME = 6.8 / 1.05e6  # measured by `million-names`, one core
RAY_SECONDS, REST_SECONDS = 15.0, 30.0  # assumed: Ray, actors and weights up; figures, curves, files, page


@dataclass(frozen=True)
class Cluster:
    """What the plan is for: CPU cores (of the kind that the bench ran on) that load for the GPUs."""

    gpus: int = 8
    cores: int = 32


@dataclass(frozen=True)
class Step:
    """Seconds with data on a local disk, and in object storage."""

    what: str
    reckoned: str
    on_disk: float
    in_store: float


@dataclass(frozen=True)
class Rates:
    """Of one core, from a file of the bench."""

    loaded_per_second: float
    header_seconds: float
    search_flops: float

    @classmethod
    def of(cls, bench: Mapping[str, Any]) -> Rates:
        found = {(one["bench"], one["name"]): one["median"] for one in bench["figures"] if "median" in one}

        def named(of: str, *words: str) -> float:
            """The best figure of a bench with these words in its name."""
            fitting = [value for key, value in found.items() if key[0] == of and all(word in key[1] for word in words)]
            if not fitting:
                raise SystemExit(f"no figure {' … '.join(words)!r} of {of}: run `bench ceilings shares names`")
            return max(fitting)

        loaded = named("ceilings", "JPEG", "resized") * named("shares", "loading pictures")
        product = named("ceilings", "512-d, numpy")
        search = product * named("shares", "search", "512-d") * 1e9
        return cls(loaded, named("names", "reading a header") / 1e6, search)


def steps(rates: Rates, cluster: Cluster) -> Iterator[Step]:
    """In the order in which a run takes them."""
    gpus, cores = cluster.gpus, cluster.cores
    local, listed = IMAGES * SECONDS_PER_NAME, IMAGES / LISTED_PER_SECOND
    yield Step("list names, digest, order", f"{IMAGES / 1e6:.2f} M names", local, local + listed)
    yield Step("start Ray, actors, weights", "assumed", RAY_SECONDS, RAY_SECONDS)
    headers, requests = IMAGES * rates.header_seconds / cores, IMAGES / REQUESTS_PER_SECOND
    each = f"{1e6 * rates.header_seconds:.0f} µs per image and core; {REQUESTS_PER_SECOND:,} requests/s"
    yield Step("read headers", each, headers, max(headers, requests))
    network = IMAGES / (gpus * V100_IMAGES_PER_SECOND)
    loading = IMAGES / (cores * rates.loaded_per_second)
    fetching = _moved(IMAGES * IMAGE_BYTES)
    gigabytes = IMAGES * IMAGE_BYTES / 1e9
    each = f"network {network:.0f} s, loading {loading:.0f} s, fetching {gigabytes:.0f} GB {fetching:.0f} s"
    yield Step("extraction: the slowest of", each, max(network, loading), max(network, loading, fetching))
    trained = TRAINING * 2 * DIMENSION**2 / rates.search_flops
    projected = IMAGES * 2 * DIMENSION**2 / (cores * rates.search_flops)
    moved = _moved(2 * IMAGES * ROW_BYTES)
    reckoned = "PCAW512 trained on one core, all rows projected on all"
    yield Step("codecs", reckoned, trained + projected, trained + projected + moved)
    flops = 2 * QUERIES * (2 * REFERENCES + TRAINING) * DIMENSION * CODECS
    on_gpus, on_cores = flops / (gpus * V100_SEARCH_FLOPS), flops / (cores * rates.search_flops)
    moved = _moved(CODECS * (2 * REFERENCES + TRAINING) * ROW_BYTES)
    reckoned = f"{flops / 1e12:.0f} TFLOP, {CODECS} codecs x 3 searches; without GPUs {on_cores:.0f} s"
    yield Step("search", reckoned, on_gpus, on_gpus + moved)
    yield Step("figures, curves, files, page", "assumed", REST_SECONDS, REST_SECONDS)


def _moved(size_bytes: float) -> float:
    return size_bytes / NETWORK_BYTES_PER_SECOND


def lines(rates: Rates, cluster: Cluster) -> Iterator[str]:
    """The table, its sum, and how many cores a GPU needs."""
    planned = list(steps(rates, cluster))
    yield "| step | reckoned by | on disk | in object storage |"
    yield "|---|---|---|---|"
    for step in planned:
        yield f"| {step.what} | {step.reckoned} | {step.on_disk:,.0f} s | {step.in_store:,.0f} s |"
    totals = [sum(step.on_disk for step in planned), sum(step.in_store for step in planned)]
    shown = " | ".join(f"**{total / 60:.0f} min**" for total in totals)
    yield f"| **sum** | published: {PUBLISHED_SECONDS / 60:.0f} min | {shown} |"
    yield ""
    needed = V100_IMAGES_PER_SECOND / rates.loaded_per_second
    yield (
        f"A GPU takes {V100_IMAGES_PER_SECOND:.0f} images/s, a core loads {rates.loaded_per_second:.0f}: "
        f"{needed:.1f} cores per GPU keep it busy (at 11 ms an image {V100_IMAGES_PER_SECOND * 0.011:.1f})."
    )


def main() -> None:
    """Print the plan."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.plan_disc", description=__doc__)
    parser.add_argument("bench", type=Path, metavar="BENCH.json", help="a file of `make bench`")
    parser.add_argument("--gpus", type=int, default=Cluster.gpus)
    parser.add_argument("--cores", type=int, default=Cluster.cores)
    given = parser.parse_args()
    for line in lines(Rates.of(json.loads(given.bench.read_text())), Cluster(given.gpus, given.cores)):
        print(line)


if __name__ == "__main__":
    main()
