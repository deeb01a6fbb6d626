"""Copydays with distractors (CD10K): is an edited image's original among its nearest, and before everything else?

Follows the SSCD evaluation (Pizzi et al. 2022): database of originals, then distractors; every image of every block is
a query, the originals too; the 100 nearest by L2 after the codec; trapezoid AP by query, by block, and over all
results in one pool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.copies import sets as image_sets
from raybench.benchmarks.copies.copydays_figures import overall_micro_ap, query_ap, relevant_results
from raybench.benchmarks.copies.mistakes import MissedOriginals, draw_mistakes, gallery
from raybench.benchmarks.copies.sets import CopyOptions, ImageSet
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.picture import Picture
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError, ProblemList
from raybench.extract.vector_set import VectorSet, take_rows
from raybench.formats.copydays import BLOCKS, STRONG, CopydaysLayout
from raybench.formats.names import strings
from raybench.formats.shardfile import Arrays
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import TopK
from raybench.search.codecs import FailedCodec, default_codecs, project_sets, trains
from raybench.search.tiles import search_sets
from raybench.search.vector_facts import VectorFacts, are_normalised, leakage_notes, vector_facts
from raybench.sources.image_folders import list_images
from raybench.sources.named_vectors import find_vectors
from raybench.sources.sscd_features import SSCD_SUFFIX
from raybench.table import Cell, Table

COLUMNS = ("codec", "strong_mAP", "overall_uAP")
BLOCK_COLUMNS = ("codec", "block", "mAP")
FRACTIONS = frozenset(("strong_mAP", "overall_uAP", "mAP"))
K = 100
BLOCKS_ROLE = "copydays"
STEMS = {BLOCKS_ROLE: ("copydays",), "distractors": ("distractors",), "training": ("training", "train", "codec_train")}


@dataclass(frozen=True)
class Options(CopyOptions):
    """Those of copy detection, and of Copydays: its distractors."""

    distractors: str | None = option(None, "folder of distractor images", "input", is_uri=True)
    k: int = option(K, "neighbours per query", "protocol")


NOTES = (
    "strong_mAP: mean trapezoid AP of the queries of block strong; overall_uAP: trapezoid AP over all results of all "
    "queries in one pool (the originals are queries, too), wrong ones first at equal distance; the published tool "
    "calls it macro AP.",
)


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
        places = np.unique(np.concatenate([layout.true_query[mine], layout.originals[:limit]]))
        images = self.images.limited(places)
        problems = ProblemList()
        smaller = CopydaysLayout.of(images.names, "the first originals", problems)
        problems.check()
        assert smaller is not None
        distractors, training = (
            one and one.limited(np.arange(min(limit, len(one)))) for one in (self.distractors, self.training)
        )
        return CopydaysSets(images, smaller, distractors, training)


@dataclass(frozen=True)
class Plan:
    """A job whose images or vectors were found and make up blocks."""

    job: Job[Options]
    inputs: dict[str, str]
    sets: CopydaysSets
    descriptor: ImageSpec | None
    codecs: tuple[str, ...]  # none: the published list, once dimension and lengths are known
    k: int
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        blocks = f"{len(self.sets.images):,} images in {len(self.sets.layout.blocks)} blocks"
        others = [f", {len(images):,} {images.what}" for images in self.sets.all[1:]]
        return blocks + "".join(others)

    def execute(self, run: Run) -> Outcome:
        """From images or vectors to the tables, in one line of steps."""
        found = image_sets.described(run, self.job, self.descriptor, self.sets.all)
        vectors = {what: one.vectors for what, one in found.items()}
        queries, truth, skipped = self._readable(found[BLOCKS_ROLE].skipped)
        facts = {what: vector_facts(run, one) for what, one in vectors.items()}
        codecs = self.codecs or _default_codecs(facts)
        rows: list[tuple[Cell, ...]] = []
        blocks: list[tuple[Cell, ...]] = []
        failed: list[str] = []
        drawn: tuple[list[str], list[Picture]] = ([], [])
        for codec in codecs:
            nearest = self._nearest(run, codec, vectors)
            if isinstance(nearest, FailedCodec):
                run.say(f"warning: {nearest.reason}; the other codecs go on")
                failed.append(f"FAILED: {nearest.reason}.")
                figures = np.full(1 + len(self.sets.layout.blocks), np.nan)
            else:
                stage = ScoreBlocks(nearest, truth, tuple(queries.values()))
                figures = run.read(run.map(stage, 1, 1), 0)["figures"]
                if not rows and self.sets.images.has_pictures and STRONG in queries:
                    drawn = self._draw(run, nearest, truth, queries[STRONG])
            by_block = dict(zip(queries, figures[1:].tolist(), strict=True))
            rows.append((codec, by_block.get(STRONG), float(figures[0]), *self._metadata))
            blocks += [(codec, block, value) for block, value in by_block.items()]
        lost = [
            f"{one.what}: {one.names[place]}: can't be read"
            for one in self.sets.all
            for place in found[one.what].skipped.tolist()
        ]
        leaks = leakage_notes(run, facts)
        notes = (*NOTES, *self.notes, *leaks, *failed, *_skip_notes(len(lost), skipped))
        columns = (*COLUMNS, *(("metadata",) if self._metadata else ()))
        image_sets.exported(run, self.job, self.sets.all, vectors)
        return Outcome(
            Table("copydays_metrics", columns, tuple(rows), FRACTIONS, notes),
            (Table("blocks", BLOCK_COLUMNS, tuple(blocks), FRACTIONS),),
            tuple(lost),
            {
                "queries": len(self.sets.images),
                "distractors": len(self.sets.distractors or ()),
                "codecs": set(codecs),
            },
            tuple(drawn[1]),
        )

    def _draw(
        self, run: Run, nearest: Mapped, truth: TruePairs, block: NDArray[np.int64]
    ) -> tuple[list[str], list[Picture]]:
        """The strong copies whose originals stand furthest down."""
        images, distractors = self.sets.images, self.sets.distractors
        database = [(images, tuple(self.sets.layout.originals.tolist()))]
        database += [] if distractors is None else [(distractors, tuple(range(len(distractors))))]
        stage = MissedOriginals(nearest, truth, tuple(block.tolist()), images, tuple(database))
        return draw_mistakes(run, stage, ["pictures/missed.jpg"])

    @property
    def _metadata(self) -> tuple[str, ...]:
        metadata = self.job.options.metadata
        return () if metadata is None else (metadata,)

    def _nearest(self, run: Run, codec: str, vectors: dict[str, VectorSet]) -> Mapped | FailedCodec:
        """The nearest of every image among originals, then distractors."""
        kept = {what: one for what, one in vectors.items() if what != "training"}
        projected = project_sets(run, codec, vectors.get("training"), list(kept.values()), self.job.seed)
        if isinstance(projected, FailedCodec):
            return projected
        images, *distractors = projected
        originals = take_rows(run, images, self.sets.layout.originals, "originals")
        device = "gpu" if run.gpus else "cpu"
        database = [originals, *distractors]
        shard_size = self.job.shard_size
        return search_sets(run, images, database, self.k, "L2", device=device, shard_size=shard_size).nearest

    def _readable(self, skipped: NDArray[np.int64]) -> tuple[dict[str, NDArray[np.int64]], TruePairs, int]:
        """Queries of each block and true pairs without what could not be read; and how many queries were lost."""
        layout = self.sets.layout
        lost_originals = np.flatnonzero(np.isin(layout.originals, skipped))
        good = ~np.isin(layout.true_query, skipped) & ~np.isin(layout.true_original, lost_originals)
        truth = TruePairs.of(layout.true_query[good], layout.true_original[good])
        if not len(truth):
            raise DataError(f"{self.job.options.data}: no copy can be read whose original can; mend the images")
        queries = {block: np.intersect1d(places, truth.query) for block, places in layout.blocks.items()}
        lost = sum(len(places) for places in layout.blocks.values()) - sum(len(places) for places in queries.values())
        return queries, truth, lost


@dataclass(frozen=True)
class ScoreBlocks:
    """The stage, of one shard, that measures all results: overall uAP, then the mAP of each block."""

    nearest: Mapped
    truth: TruePairs
    blocks: tuple[NDArray[np.int64], ...]  # places of the queries of each

    name = "score-blocks"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        truth = (self.truth.query, self.truth.reference)
        return digest_of(self.name, self.version, self.nearest.digest, *truth, self.blocks)

    def load(self, shard: Shard) -> TopK:
        return TopK.from_arrays(self.nearest.read(0))

    def compute(self, payload: TopK) -> Arrays:
        asked = np.isin(payload.query, self.truth.query)
        query, distance, reference = payload.query[asked], payload.distance[asked], payload.reference[asked]
        relevant = relevant_results(self.truth, query, reference)
        positives = np.bincount(self.truth.query, minlength=int(query[-1]) + 1)[query]
        each = query_ap(relevant, positives)
        overall = overall_micro_ap(relevant, distance, reference, len(query))
        maps = [each[np.searchsorted(query, places)].mean() if len(places) else np.nan for places in self.blocks]
        return {"figures": np.array([overall, *maps])}

    def keys(self, shard: Shard) -> str:
        return "results of all blocks"


def _default_codecs(facts: dict[str, VectorFacts]) -> tuple[str, ...]:
    known = default_codecs(facts[BLOCKS_ROLE].dimension, are_normalised(list(facts.values())))
    return tuple(codec for codec in known if "training" in facts or not trains(codec))


def _skip_notes(images: int, queries: int) -> Iterable[str]:
    if images:
        yield f"SKIPPED: {images:,} images could not be read; {queries:,} queries are left out of the figures."


def prepare(job: Job[Options]) -> Plan:
    """Find and check everything that the job rests on; raises all problems together."""
    image_sets.check_inputs(job, None)
    problems = ProblemList()
    descriptor, layout, k = None, None, job.options.k
    with problems.noting():
        image_sets.check_k(k)
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    images, distractors, training = _find_sets(job, problems)
    if images is not None:
        layout = CopydaysLayout.of(images.names, job.options.data or job.options.features or "", problems)
    codecs = image_sets.asked_codecs(job)
    image_sets.check_codecs(codecs, image_sets.known_dimension(images), training, problems)
    problems.check()
    assert images is not None and layout is not None
    sets = CopydaysSets(images, layout, distractors, training)
    notes = [*image_sets.preprocessing_notes(job), *_layout_notes(sets)]
    if job.limit is not None:
        sets = sets.limited(job.limit)
        notes.append(f"LIMITED: the first {job.limit:,} originals with their copies, and as many others, were used.")
    return Plan(job, image_sets.digests(sets.all, descriptor), sets, descriptor, codecs, k, tuple(notes))


def _find_sets(job: Job[Options], problems: ProblemList) -> tuple[ImageSet | None, ImageSet | None, ImageSet | None]:
    if job.options.features:
        uris = {
            role: find_vectors(job.options.features, stems, problems, role == BLOCKS_ROLE)
            for role, stems in STEMS.items()
        }
        found = {
            role: image_sets.vectors_on_disk(role, files, problems, **_naming(job, role, files, problems))
            for role, files in uris.items()
        }
        image_sets.note_other_dimensions(found.values(), problems)
        return found[BLOCKS_ROLE], found["distractors"], found["training"]
    if job.options.data is None:
        problems.add("copydays: no --data; give the Copydays root (original/, strong/, jpegqual/, crops/)")
        return None, None, None
    images = image_sets.pictures(BLOCKS_ROLE, job.options.data, job, problems, named_by="path")
    distractors, training = (
        image_sets.pictures(role, uri, job, problems) if (uri := getattr(job.options, role)) else None
        for role in ("distractors", "training")
    )
    return images, distractors, training


def _naming(job: Job[Options], role: str, uris: list[str], problems: ProblemList) -> dict[str, Any]:
    """How a file's images are named; those of an SSCD file are numbered through the published order of blocks."""
    if role != BLOCKS_ROLE:
        return {}
    if not uris or not uris[0].endswith(SSCD_SUFFIX):
        return {"named_by": "path"}
    if job.options.data is None:
        problems.add(f"{uris[0]}: has numbers for names; give --data too, the Copydays root that they count through")
        return {"named_by": "path"}
    listed = [entry.name for entry in list_images(job.options.data, recursive=True)]
    ordered = [name for block in BLOCKS for name in listed if name.rpartition("/")[0] == block]
    return {"named_by": "path", "names": strings(ordered)}


def _layout_notes(sets: CopydaysSets) -> Iterable[str]:
    if sets.layout.missing:
        yield f"Blocks that are not there: {', '.join(sets.layout.missing)}; overall_uAP is without them."
    if sets.distractors is None:
        yield "No distractors: the database has the originals only, which is easier than published figures."
    if sets.training is None:
        yield "No training set: codecs that need one are left out."


BENCHMARK = Benchmark(
    name="copydays",
    summary="Copydays with distractors: mAP of strong copies, pooled uAP, mAP of every block",
    needs="--data (Copydays root), --distractors and --descriptor, or --features (vectors)",
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
    can_skip=True,
    main_table="copydays_metrics",
    gallery=gallery,
)
