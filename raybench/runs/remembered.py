"""What a run remembers of its inputs beside the digests: listings of its images, in the store with their vectors.

With them `rescore` finds the vectors again where the images are gone. A listing is named by its source's digest, so
runs over the same images share one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from raybench import storage
from raybench.benchmarks.job import Job, Plan
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles
from raybench.sources.listings import Listing, listing_uri
from raybench.sources.strips import Strips

FEW = 16  # members of a tuple or dict that may be sources
TRUTH, TRUTH_SUFFIXES = "ground truth", (".csv", ".parquet")
PART_SUFFIX = ".json"  # of the truth of one of several sets


def remember(job: Job[Any], plan: Plan) -> None:
    """Keep the listings of a plan's images in its store, where they are not there already."""
    for source in _sources(plan):
        uri = listing_uri(job.store, source.digest)
        if source.digest in plan.inputs.values() and not storage.exists(uri):
            _listing(source).publish(uri)
    for digest, content in getattr(plan, "truths", {}).items():
        uri = listing_uri(job.store, digest, PART_SUFFIX)
        if not storage.exists(uri):
            storage.publish(uri, content)
    if TRUTH in plan.inputs and getattr(job.options, "descriptor", None):
        truth = _truth_of(job)
        suffix = next((one for one in TRUTH_SUFFIXES if truth.lower().endswith(one)), TRUTH_SUFFIXES[0])
        uri = listing_uri(job.store, plan.inputs[TRUTH], suffix)
        if not storage.exists(uri):
            storage.publish(uri, storage.read(truth))


def _listing(source: ImageFiles | Strips) -> Listing:
    """What is kept of a source: files of a folder by their names in it, others each with its own place."""
    is_folder = isinstance(source, Strips) or isinstance(source.files, FolderFiles)
    uris = None if is_folder else tuple(source.uri(item) for item in range(len(source.keys)))
    return Listing(source.root, source.digest, tuple(source.keys), uris=uris)


def _truth_of(job: Job[Any]) -> str:
    """Where the truth is; the benchmark's module, which knows, is imported already."""
    if job.benchmark == "image-retrieval":
        from raybench.benchmarks.images.own_labels import truth_uri

        return truth_uri(job.options.ground_truth, job.options.data)
    from raybench.benchmarks.images.disc_sets import truth_file

    return truth_file(job.options.ground_truth, [job.options.data])


def _sources(value: Any) -> Iterator[ImageFiles | Strips]:
    """The sources of images in a plan."""
    if isinstance(value, ImageFiles | Strips):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _sources(getattr(value, field.name))
    elif isinstance(value, tuple | dict) and len(value) <= FEW:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _sources(one)
