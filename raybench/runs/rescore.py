"""The same features by other codecs, norms, k, distance, split or tasks: the job that `raybench rescore` runs.

Everything that says how images become vectors stays as the finished run has it, so that its stages are found in the
store. Where the images are still there they are used for pictures; where they are gone, the run's listings stand for
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from raybench import storage
from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Benchmark, Job
from raybench.digests import digest_of
from raybench.engine.shards import Shards
from raybench.engine.stages import Mapped
from raybench.errors import ConfigError, CorruptShard, InputError
from raybench.extract.patches import IMAGES_PER_SHARD
from raybench.runs.finished import finished_manifest
from raybench.runs.jobs import Settings, make_job, options_for
from raybench.runs.manifest import Manifest
from raybench.runs.remembered import PART_SUFFIX, TRUTH, TRUTH_SUFFIXES
from raybench.sources.listings import SUFFIX, TREE_SUFFIX, UNKNOWN, listing_uri, publish_tree, read_listing

FEATURE_STAGES = ("describe-images", "extract", "read-set", "read-vectors", "dense-flow")
# Where the manifest's inputs go if a listing stands for their folder.
OPTIONS = {
    "queries": "queries",
    "references": "references",
    "training": "training",
    "copydays": "data",
    "distractors": "distractors",
    "patches": "data",
    "images": "data",
}
# Of those that every run has: what changes neither vectors nor how they are cut. Of a benchmark's own, the protocol.
OFFERED = ("out", "ground_truth", "seed", "ray", "cpus", "patience", "progress", "overwrite", "max_unpacked_bytes")
KEPT = ("gpus", "accelerator_type", "verify_inputs", "max_image_pixels", "max_unpacked_bytes")  # of the execution


def finished_run(run: str) -> tuple[Manifest, Benchmark]:
    """A finished run and its benchmark; raises ConfigError if there is none."""
    manifest = finished_manifest(run)
    if manifest.benchmark not in BENCHMARKS:
        raise ConfigError(f"{run}: its benchmark {manifest.benchmark!r} is none of {', '.join(BENCHMARKS)}")
    return manifest, BENCHMARKS[manifest.benchmark].open()


def offered(benchmark: Benchmark) -> list[str]:
    """Keys of the options that may be given: they need no image again."""
    return [one.key for one in options_for(benchmark) if one.key in OFFERED or one.group == "protocol"]


def store_of(run: str, manifest: Manifest) -> str:
    """The run's store; its own moves with its folder."""
    out, store = (str(manifest.execution.get(key) or "") for key in ("out", "store"))
    own = storage.join(run, "stages")
    return own if not store or store == storage.join(out, "stages") else store


def job_again(run: str, manifest: Manifest, given: Mapping[str, Any]) -> tuple[Job[Any], Settings]:
    """The job of a finished run, with what is given instead of what it had."""
    benchmark = BENCHMARKS[manifest.benchmark].open()
    known = {one.key for one in options_for(benchmark)}
    kept = {key: value for key, value in manifest.execution.items() if key in KEPT}
    had = {key: value for key, value in {**manifest.arguments, **kept}.items() if key in known}
    return make_job(benchmark, {**had, "store": store_of(run, manifest), **given})


def rescoring(run: str, given: Mapping[str, Any]) -> tuple[Job[Any], Settings]:
    """The job that scores a finished run's features again; raises ConfigError where it has none to offer."""
    manifest, benchmark = finished_run(run)
    wrong = sorted(set(given) - set(offered(benchmark)))
    if wrong:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in wrong)
        raise ConfigError(f"rescore: {names} would need the images again; use `raybench run`")
    if manifest.arguments.get("results"):
        raise ConfigError(f"{run}: began from finished results, which have no features to score again")
    if not given.get("out"):
        raise ConfigError("rescore: --out is missing, the folder for the new tables")
    _check_features(run, manifest)
    job, settings = job_again(run, manifest, given)
    if job.out == run:
        raise ConfigError(f"--out {job.out}: is the finished run itself; name another folder")
    if manifest.arguments.get("features") or _images_are_there(job, manifest):
        return job, settings
    instead = _remembered_inputs(manifest, job.store)
    return job_again(run, manifest, {**instead, **given}) if instead else (job, settings)


def _check_features(run: str, manifest: Manifest) -> None:
    """That the vectors are still in the store."""
    store = store_of(run, manifest)
    stages = [stage for stage in manifest.stages if stage["name"] in FEATURE_STAGES]
    gone = [stage for stage in stages if not storage.list_files(storage.join(store, str(stage["digest"])))]
    if gone or not stages:
        reason = "--keep-stages no" if manifest.execution.get("keep_stages") is False else "they were deleted"
        raise ConfigError(
            f"{run}: its features are not in the store {store} any more ({reason}); use `raybench run` with the images"
        )


def _images_are_there(job: Job[Any], manifest: Manifest) -> bool:
    """Whether the images are found as the run found them. What else is wrong is said when the job is run."""
    try:
        plan = BENCHMARKS[job.benchmark].open().prepare(dataclasses.replace(job, out=""))
    except InputError:
        return False
    known = {name: digest for name, digest in manifest.inputs.items() if name in OPTIONS or _is_part(name)}
    return all(plan.inputs.get(name) == digest for name, digest in known.items())


def _is_part(name: str) -> bool:
    """Whether an input is a part of a data set in several folders."""
    return "/" in name


def _remembered_inputs(manifest: Manifest, store: str) -> dict[str, str | None]:
    """Options by which listings stand for the images of a run; empty if it remembers none."""
    found: dict[str, str | None] = {}
    for name, digest in manifest.inputs.items():
        if name == TRUTH:
            known = [listing_uri(store, digest, suffix) for suffix in TRUTH_SUFFIXES]
            there = [uri for uri in known if storage.exists(uri)]
            if there:
                found["ground_truth"] = there[0]
            continue
        uri = listing_uri(store, digest, SUFFIX)
        if name == "patches" and storage.exists(uri):
            found["data"] = _with_counts(uri, manifest, store)
        elif name in OPTIONS and storage.exists(uri):
            found[OPTIONS[name]] = uri
    if "queries" in found:
        found["data"] = None
    return found | _remembered_tree(manifest, store)


def _remembered_tree(manifest: Manifest, store: str) -> dict[str, str | None]:
    """The same for data in several folders: a file that says where the listing, or the truth, of each part is."""
    parts = {name: digest for name, digest in manifest.inputs.items() if _is_part(name)}
    suffixes = {name: PART_SUFFIX if name.endswith("/truth") else SUFFIX for name in parts}
    files = {name: listing_uri(store, digest, suffixes[name]) for name, digest in parts.items()}
    if not files or not all(storage.exists(uri) for uri in files.values()):
        return {}
    uri = listing_uri(store, digest_of(parts), TREE_SUFFIX)
    publish_tree(uri, files)
    return {"data": uri}


def _with_counts(uri: str, manifest: Manifest, store: str) -> str:
    """The listing of strips with the number of patches of each, as the stored features have it."""
    listing = read_listing(uri)
    size = manifest.arguments.get("shard_size") or IMAGES_PER_SHARD
    counts = np.full(len(listing.keys), UNKNOWN, np.int64)
    for digest in [stage["digest"] for stage in manifest.stages if stage["name"] == "extract"]:
        features = Mapped(store, "extract", digest, Shards("extract", len(listing.keys), size))
        there = {entry.name for entry in storage.list_files(features.folder)}
        for shard in [shard for shard in features.shards if shard.file_name in there]:
            try:
                counts[shard.start : shard.stop] = features.read(shard.index)["counts"]
            except (CorruptShard, InputError):
                continue  # as good as not there
    counted = uri.removesuffix(SUFFIX) + f"-counted{SUFFIX}"
    dataclasses.replace(listing, counts=counts).publish(counted)
    return counted
