"""Copydays with distractors (CD10K): is an edited image's original among its nearest, and before everything else?

Follows the SSCD evaluation (Pizzi et al. 2022): database of originals, then distractors; every image of every block is
a query, the originals too; the 100 nearest by L2 after the codec; trapezoid AP by query, by block, and over all
results in one pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.asked_cases import PREDICTIONS, copydays_cases
from raybench.benchmarks.images.figures import (
    COPYDAYS_FIGURES,
    COPYDAYS_FRACTIONS,
    CodecResults,
    blocks_table,
    copydays_table,
    score_blocks,
)
from raybench.benchmarks.images.image_options import ImageOptions, check_ways_in
from raybench.benchmarks.images.mistakes import Database, draw_missed
from raybench.benchmarks.images.preprocessing import preprocessing_notes
from raybench.benchmarks.images.samples import copydays_samples
from raybench.benchmarks.images.sets import ImageSet, StoredVectors
from raybench.benchmarks.images.ties import copydays_ties, note_constant_sets
from raybench.benchmarks.job import Benchmark, Job, Outcome, ReportPicture
from raybench.benchmarks.options import option
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.engine.run import Run
from raybench.engine.stages import Mapped
from raybench.errors import DataError, ProblemList, Problems
from raybench.extract.trials import Trial
from raybench.extract.vector_set import VectorSet, take_rows
from raybench.formats.copydays import BLOCKS, STRONG, CopydaysLayout
from raybench.formats.disc import write_predictions
from raybench.formats.names import Strings, strings
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import NO_REFERENCE
from raybench.search.set_search import search_sets
from raybench.search.vector_facts import leakage_notes, vector_facts
from raybench.sources.image_files import list_images
from raybench.sources.named_vectors import find_vectors
from raybench.sources.vector_files import SSCD_SUFFIX
from raybench.table import columns_of, note_of

BLOCKS_ROLE = "copydays"
NEAREST_WRITTEN = 10  # of each query, by the first codec
COPYDAYS_STEMS = {
    BLOCKS_ROLE: ("copydays",),
    "distractors": ("distractors",),
    "training": ("training", "train", "codec_train"),
}


@dataclass(frozen=True)
class CopydaysOptions(ImageOptions):
    """Those of copy detection, and of Copydays: its distractors."""

    distractors: str | None = option(
        None, "distractor images: folder, archives (.tar, .zip, name-{000..009}.tar) or list", "input", is_uri=True
    )
    k: int = option(100, "neighbours per query", "protocol")


def prepare(job: Job[CopydaysOptions]) -> CopydaysPlan:
    """Find and check everything that the job rests on; raises all problems together."""
    check_ways_in(job, ("descriptor", "features"))
    options, problems = job.options, ProblemList()
    descriptor = layout = None
    image_sets.check_k(options.k, problems)
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    found = _find_stored(job, options.features, problems) if options.features else _find_pictures(job, problems)
    images, distractors, training = found[BLOCKS_ROLE], found["distractors"], found["training"]
    if images is not None:
        layout = CopydaysLayout.of(images.names, options.data or options.features or "", problems)
    codecs = image_sets.asked_codecs(options)
    image_sets.check_codecs(codecs, images, training, problems)
    if problems.lines or images is None or layout is None:
        raise Problems(problems.lines)
    sets = CopydaysSets(images, layout, distractors, training)
    inputs = image_sets.digests(sets.all, descriptor)
    notes = [*preprocessing_notes(options, descriptor), *_layout_notes(sets)]
    if job.limit is not None:
        sets = sets.limited(job.limit)
        notes.append(f"LIMITED: the first {job.limit:,} originals with their copies, and as many others, were used.")
    return CopydaysPlan(job, inputs, sets, descriptor, codecs, tuple(notes))


def _find_stored(job: Job[CopydaysOptions], root: str, problems: ProblemList) -> Mapping[str, ImageSet | None]:
    found = {}
    for role, stems in COPYDAYS_STEMS.items():
        uris = find_vectors(root, stems, problems, role == BLOCKS_ROLE)
        if role == BLOCKS_ROLE:
            names = _numbered_names(job.options.data, uris, problems)
            found[role] = image_sets.vectors_on_disk(role, uris, problems, "path", names=names, limits=job.limits)
        else:
            found[role] = image_sets.vectors_on_disk(role, uris, problems, limits=job.limits)
    image_sets.note_other_dimensions(found.values(), problems)
    return found


def _numbered_names(data: str | None, uris: list[str], problems: ProblemList) -> Strings | None:
    """Names by number for an SSCD file, which counts images through the published order of blocks, and has no names."""
    if not uris or not uris[0].endswith(SSCD_SUFFIX):
        return None
    if data is None:
        problems.add(f"{uris[0]}: has numbers for names; give --data too, the Copydays root that they count through")
        return None
    listed = [entry.name for entry in list_images(data, recursive=True)]
    return strings([name for block in BLOCKS for name in listed if name.rpartition("/")[0] == block])


def _find_pictures(job: Job[CopydaysOptions], problems: ProblemList) -> Mapping[str, ImageSet | None]:
    options = job.options
    if options.data is None:
        problems.add("copydays: no --data; give the Copydays root (original/, strong/, jpegqual/, crops/)")
        return dict.fromkeys(COPYDAYS_STEMS)
    how: dict[str, Any] = {"limits": job.limits, "store": job.store}
    others = {"distractors": options.distractors, "training": options.training}
    return {
        BLOCKS_ROLE: image_sets.pictures(BLOCKS_ROLE, options.data, job.verify_inputs, problems, "path", **how),
        **{
            role: image_sets.pictures(role, uri, job.verify_inputs, problems, **how) if uri else None
            for role, uri in others.items()
        },
    }


@dataclass(frozen=True)
class CopydaysSets:
    """Images of the blocks with their layout, distractors, and what codecs are trained on."""

    images: ImageSet
    layout: CopydaysLayout
    distractors: ImageSet | None
    training: ImageSet | None

    @property
    def all(self) -> tuple[ImageSet, ...]:
        found = (self.images, self.distractors, self.training)
        return tuple(images for images in found if images is not None)

    def limited(self, limit: int) -> CopydaysSets:
        """The first originals with their copies, and as many distractors and training images."""
        layout = self.layout
        mine = layout.true_original < limit
        images = self.images.limited(np.union1d(layout.true_query[mine], layout.originals[:limit]))
        problems = ProblemList()
        smaller = CopydaysLayout.of(images.names, "the first originals", problems)
        if smaller is None:
            raise Problems(problems.lines)
        distractors, training = (
            one and one.limited(np.arange(min(limit, len(one)))) for one in (self.distractors, self.training)
        )
        return CopydaysSets(images, smaller, distractors, training)


def _layout_notes(sets: CopydaysSets) -> Iterable[str]:
    if sets.layout.missing:
        yield f"Blocks that are not there: {', '.join(sets.layout.missing)}; overall_uAP is without them."
    if sets.distractors is None:
        yield "No distractors: the database has the originals only, which is easier than published figures."
    if sets.training is None:
        yield "No training set: codecs that need one are left out."


@dataclass(frozen=True)
class CopydaysPlan:
    """A job whose images or vectors were found and make up blocks."""

    job: Job[CopydaysOptions]
    inputs: dict[str, str]
    sets: CopydaysSets
    descriptor: ImageSpec | None
    codecs: tuple[str, ...]  # none: the published list, once dimension and lengths are known
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        blocks = f"{len(self.sets.images):,} images in {len(self.sets.layout.blocks)} blocks"
        others = [f", {len(images):,} {images.role}" for images in self.sets.all[1:]]
        return blocks + "".join(others)

    @property
    def trial(self) -> Trial:
        return image_sets.trial(self.job, self.sets.all, self.descriptor, self.notes)

    def execute(self, run: Run) -> Outcome:
        job, options, sets = self.job, self.job.options, self.sets
        described = image_sets.describe(run, job, sets.all, self.descriptor)
        vectors = {role: one.vectors for role, one in described.items()}
        note_constant_sets(run, vectors)
        facts = {role: vector_facts(run, one) for role, one in vectors.items()}
        codecs = self.codecs or image_sets.published_codecs(facts)

        truth = self._readable_truth(described[BLOCKS_ROLE].skipped)
        queries = {block: np.intersect1d(index, truth.query) for block, index in sets.layout.blocks.items()}
        searched = {role: one for role, one in vectors.items() if role != "training"}
        by_codec, failed = image_sets.project(run, codecs, searched, vectors.get("training"), job.seed)
        found = [CodecResults(codec, self._nearest(run, projected)) for codec, projected in by_codec.items()]
        scores = run.read_each(run.each(score_blocks, found, truth, queries, version=1))
        scored = dict(zip([one.name for one in found], scores, strict=True))

        skipped = image_sets.skipped_images(sets.all, described)
        lost = _skip_notes(len(skipped), len(sets.images) - sum(map(len, queries.values())))
        notes = (note_of(COPYDAYS_FIGURES), *self.notes, *leakage_notes(run, facts), *failed, *lost)
        main = copydays_table(codecs, scored, list(queries), options.metadata, notes)
        if options.export_descriptors:
            image_sets.export_descriptors(run, sets.all, vectors)
        run.write(PREDICTIONS, nearest_file, found[:1], sets)
        pictures = self._draw(run, found, truth, queries)
        comparable = {"queries": len(sets.images), "distractors": len(sets.distractors or ()), "codecs": set(codecs)}
        strong = queries.get(STRONG, np.zeros(0, np.int64))
        distractors = None if sets.distractors is None else sets.distractors.names
        samples = copydays_samples(run, found, truth, strong, sets.images.names, distractors)
        ties = copydays_ties(run, found, truth, strong, main)
        further = (blocks_table(codecs, scored, list(queries)), *ties)
        return Outcome(main, further, skipped, comparable, tuple(pictures), samples)

    def _readable_truth(self, skipped: NDArray[np.int64]) -> TruePairs:
        """The true pairs of which both images could be read."""
        layout = self.sets.layout
        lost_originals = np.flatnonzero(np.isin(layout.originals, skipped))
        good = ~np.isin(layout.true_query, skipped) & ~np.isin(layout.true_original, lost_originals)
        if not good.any():
            raise DataError(f"{self.job.options.data}: no copy can be read whose original can; mend the images")
        return TruePairs.of(layout.true_query[good], layout.true_original[good])

    def _nearest(self, run: Run, projected: Mapping[str, VectorSet]) -> Mapped:
        """The nearest of every image among originals, then distractors."""
        images, *distractors = projected.values()
        originals = take_rows(run, images, self.sets.layout.originals, "originals")
        database, k = [originals, *distractors], self.job.options.k
        device, shard_size = "gpu" if run.gpus else "cpu", self.job.shard_size
        return search_sets(run, images, database, k, "squared_L2", device=device, shard_size=shard_size).nearest

    def _draw(
        self, run: Run, found: list[CodecResults], truth: TruePairs, queries: Mapping[str, NDArray[np.int64]]
    ) -> list[ReportPicture]:
        """The strong copies that were missed by the first codec, where there are pictures."""
        images, distractors = self.sets.images, self.sets.distractors
        if isinstance(images, StoredVectors) or isinstance(distractors, StoredVectors) or STRONG not in queries:
            return []
        database = Database(images, self.sets.layout.originals, distractors)
        return draw_missed(run, found[:1], truth, queries[STRONG], database)


def nearest_file(results: CodecResults, sets: CopydaysSets) -> bytes:
    """The first few of every query's nearest in the ISC format; the score is minus the squared distance."""
    top, names = results.read(), sets.images.names
    database = [names.take(sets.layout.originals), *([sets.distractors.names.array] if sets.distractors else [])]
    reference, distance = top.reference[:, :NEAREST_WRITTEN], top.distance[:, :NEAREST_WRITTEN]
    there = reference != NO_REFERENCE
    query = names.take(np.repeat(top.query, there.sum(axis=1)))
    return write_predictions(query, pa.concat_arrays(database).take(pa.array(reference[there])), 0.0 - distance[there])


def _skip_notes(images: int, queries: int) -> Iterable[str]:
    if images:
        yield f"SKIPPED: {images:,} images could not be read; {queries:,} queries are left out of the figures."


BENCHMARK = Benchmark(
    name="copydays",
    options=CopydaysOptions,
    prepare=prepare,
    keys=("codec",),
    figures=columns_of(COPYDAYS_FIGURES),
    fractions=COPYDAYS_FRACTIONS,
    can_skip=True,
    main_table="copydays_metrics",
    gallery=stored_cases,
    cases=copydays_cases,
)
