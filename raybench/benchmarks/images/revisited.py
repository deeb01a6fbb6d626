"""Revisited Oxford and Paris (rOxford5k, rParis6k), also with the distractors of R1M: easy, medium and hard.

Follows `compute_map` of filipradenovic/revisitop (Radenović et al., CVPR 2018): queries are cropped to their box, every
reference is ranked by the inner product of vectors as stored, equal scores by position in `imlist`, references before
distractors. What is junk under a setup is taken out of the ranking. Figures are in `revisited_figures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.image_options import ImageOptions, check_ways_in
from raybench.benchmarks.images.preprocessing import preprocessing_notes
from raybench.benchmarks.images.revisited_cases import draw_worst
from raybench.benchmarks.images.revisited_figures import (
    FIGURES,
    FRACTIONS,
    KEYS,
    RankedSet,
    codec_table,
    main_table,
    per_query_file,
    revisited_samples,
    revisited_ties,
    score_set,
    set_rows,
    set_ties,
)
from raybench.benchmarks.images.revisited_inputs import find_sets
from raybench.benchmarks.images.revisited_pictures import Way
from raybench.benchmarks.images.revisited_sets import RevisitedSet, RevisitedSets
from raybench.benchmarks.images.sets import StoredVectors
from raybench.benchmarks.images.ties import note_constant_sets
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.benchmarks.ties import tie_tables
from raybench.descriptors.image_descriptors import ImageSpec
from raybench.digests import digest_of_bytes
from raybench.engine.run import Run
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.extract.images import Described
from raybench.extract.trials import Trial
from raybench.extract.vector_set import VectorSet, as_floats
from raybench.formats.shardfile import Arrays
from raybench.search.codecs import FLAT_CODEC, project_sets, trains
from raybench.search.distances import row_sums
from raybench.search.set_standings import pair_standings
from raybench.search.vector_facts import NORMALISED_WITHIN
from raybench.table import Cell, columns_of, note_of

WITH_R1M = "+r1m"
UNIT_LENGTH = "L2norm,Flat"  # the codec that does nothing else
SHOWN = 5  # images in a note


@dataclass(frozen=True)
class RevisitedOptions(ImageOptions):
    """Those of sets of images, and which sets."""

    data: str | None = option(
        None, "root of the sets: SET/jpg (or jpg.tar), SET/gnd_SET.json; perhaps revisitop1m", "input", is_uri=True
    )
    features: str | None = option(
        None,
        "root of vectors instead: SET/queries and SET/references (.h5, .npz, .parquet), SET/gnd_SET.json; perhaps "
        "revisitop1m/distractors, training",
        "input",
        is_uri=True,
    )
    training: str | None = option(None, "folder of the images that codecs are trained on", "input", is_uri=True)
    codecs: str | None = option(
        None,
        "FAISS index_factory strings ending in Flat, separated by ;: the main table is by the first",
        "protocol",
        default_words=FLAT_CODEC,
        separator=";",
    )
    set: tuple[str, ...] = option(
        (), "sets, with commas or given several times", "protocol", default_words="every one that is there"
    )


def prepare(job: Job[RevisitedOptions]) -> RevisitedPlan:
    """Read and check every file that the job rests on; raises all problems together."""
    check_ways_in(job, ("descriptor", "features"))
    options, problems = job.options, ProblemList()
    root = options.features or options.data
    if root is None:
        raise ConfigError("revisited: no --data; give the folder that holds SET/jpg and SET/gnd_SET.json")
    if options.features and options.data:
        raise ConfigError("revisited: --data would do nothing with --features, where truth is, too; leave it out")
    descriptor = None
    with problems.noting():
        descriptor = image_sets.descriptor_of(job)
    if options.exif_rotate:
        problems.add("--exif-rotate: boxes of queries are of images as they are stored; leave it out")
    sets = RevisitedSets((), None, None)
    with problems.noting():
        way = Way(root, bool(options.features), job.verify_inputs, job.limits, job.store)
        sets = find_sets(way, _asked_sets(options), options.training, problems)
    codecs = image_sets.asked_codecs(options) or (FLAT_CODEC,)
    for one in sets.sets:
        image_sets.check_codecs(codecs, one.references, sets.training, problems)
    _check_training(sets, codecs, problems)
    if problems.lines:
        raise Problems(problems.lines)
    inputs = image_sets.digests(sets.all, descriptor)
    inputs |= {f"{one.name}/truth": digest_of_bytes(one.truth) for one in sets.sets}
    notes = [*preprocessing_notes(options, descriptor), *sets.unlisted_notes(), *sets.distractor_notes()]
    if job.limit is not None:
        sets = sets.limited(job.limit)
        notes.append(f"LIMITED: the first {job.limit:,} queries, their references and the first others were used.")
    return RevisitedPlan(job, inputs, sets, descriptor, codecs, tuple(notes))


def _check_training(sets: RevisitedSets, codecs: tuple[str, ...], problems: ProblemList) -> None:
    """Note sets whose vectors are not as long as those that codecs are trained on."""
    training = sets.training
    if isinstance(training, StoredVectors) and not problems.lines and any(trains(codec) for codec in codecs):
        for one in sets.sets:
            if isinstance(one.references, StoredVectors):
                image_sets.note_other_dimensions((one.references, training), problems)


def _asked_sets(options: RevisitedOptions) -> tuple[str, ...]:
    names = [name.strip() for given in options.set for name in given.split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass(frozen=True)
class RevisitedPlan:
    """A job whose sets were found and agree with their truth."""

    job: Job[RevisitedOptions]
    inputs: dict[str, str]
    sets: RevisitedSets
    descriptor: ImageSpec | None
    codecs: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def summary(self) -> str:
        return self.sets.summary

    @property
    def truths(self) -> dict[str, bytes]:
        """What the truth files hold, by their digests in the inputs: `rescore` needs no data folder."""
        return {digest_of_bytes(one.truth): one.truth for one in self.sets.sets}

    @property
    def trial(self) -> Trial:
        return image_sets.trial(self.job, self.sets.all, self.descriptor, self.notes)

    def execute(self, run: Run) -> Outcome:
        job, options, sets = self.job, self.job.options, self.sets
        described = image_sets.describe(run, job, sets.all, self.descriptor)
        vectors = self._as_ranked(run, {role: one.vectors for role, one in described.items()})
        note_constant_sets(run, vectors)
        by_codec, ranked, failed = self._ranked(run, described, vectors)
        scores = run.each(score_set, ranked, version=1)
        scored = dict(zip([(one.codec, one.set_name) for one in ranked], run.read_each(scores), strict=True))

        first = [one for one in ranked if one.codec == self.codecs[0]]
        skipped = image_sets.skipped_images(sets.all, described)
        notes = (note_of(FIGURES), *self.notes, *failed, *self._lost_notes(described, len(skipped)))
        rows = {codec: list(self._rows(codec, scored)) for codec in self.codecs}
        if len(self.codecs) > 1:
            notes += (f"By codec {self.codecs[0]}, the first of --codecs; tables/by_codec.csv has all.",)
        main = main_table(rows[self.codecs[0]], options.metadata, notes)
        for row in main.rows:
            if row[2] == 0:
                run.note(f"WARNING: {row[0]}, {row[1]}: no query has a positive, so there are no figures.")
        if first:
            of_first = run.each(score_set, first, version=1).whole
            run.write("tables/{name}.parquet", per_query_file, ["per_query"], first, of_first)
        if options.export_descriptors:
            image_sets.export_descriptors(run, sets.all, vectors)
            whole = sets.sets if job.limit is None else ()
            run.write("results/{name}", truth_file, [TruthFile(one.truth_name, one.truth) for one in whole])
        samples = revisited_samples(run, first, self._data())
        ties = run.read_each(run.each(set_ties, first, version=1))
        first_scores = [scored[one.codec, one.set_name] for one in first]
        further = tie_tables(run, revisited_ties(first, first_scores, ties))
        if len(self.codecs) > 1:
            further = (codec_table((codec, *row) for codec in self.codecs for row in rows[codec]), *further)
        facts = {"sets": {one.name: (len(one.queries), len(one.references)) for one in sets.sets}}
        projected = by_codec.get(self.codecs[0], {})
        pictures = draw_worst(run, first, sets.sets, projected, job.shard_size)
        return Outcome(main, further, skipped, facts, pictures, samples)

    def _as_ranked(self, run: Run, vectors: dict[str, VectorSet]) -> dict[str, VectorSet]:
        """Vectors of length 1 where they are extracted here; those of files as they are, which is said."""
        if self.descriptor is not None:
            normalised = project_sets(run, UNIT_LENGTH, None, list(vectors.values()))
            return dict(zip(vectors, normalised, strict=True))
        words = length_words(run, {role: one for role, one in vectors.items() if role != "training"})
        if words:
            run.note(words)
        return vectors

    def _ranked(
        self, run: Run, described: Mapping[str, Described], vectors: Mapping[str, VectorSet]
    ) -> tuple[dict[str, dict[str, VectorSet]], list[RankedSet], list[str]]:
        """Vectors by codec and role; where labelled references stand in each set; a note for each codec that failed."""
        vectors_by: dict[str, dict[str, VectorSet]] = {codec: {} for codec in self.codecs}
        found, failed = list[RankedSet](), list[str]()
        for one in self.sets.sets:
            distractors = self.sets.distractors_of(one)
            roles = [one.queries.role, one.references.role]
            roles = roles if distractors is None else [distractors.role, *roles]
            own = {role: vectors[role] for role in roles}
            by_codec, failures = image_sets.project(run, self.codecs, own, vectors.get("training"), self.job.seed)
            failed += failures
            for codec, projected in by_codec.items():
                found += self._ranked_by(run, codec, one, described, projected)
                vectors_by[codec] |= projected
        return vectors_by, sorted(found, key=lambda one: self.codecs.index(one.codec)), list(dict.fromkeys(failed))

    def _ranked_by(
        self,
        run: Run,
        codec: str,
        one: RevisitedSet,
        described: Mapping[str, Described],
        vectors: Mapping[str, VectorSet],
    ) -> Iterator[RankedSet]:
        """One set without distractors, and with them."""
        labelled = one.readable(described)
        references = [vectors[one.references.role]]
        distractors = self.sets.distractors_of(one)
        among = {one.name: references}
        if distractors is not None:
            among[f"{one.name}{WITH_R1M}"] = [*references, vectors[distractors.role]]
        for name, searched in among.items():
            standings = None
            if len(labelled.pairs):
                queries = vectors[one.queries.role]
                standings = pair_standings(run, queries, searched, labelled.pairs, "ip", self.job.shard_size)
            yield RankedSet(codec, name, labelled, standings)

    def _rows(self, codec: str, scored: Mapping[tuple[str, str], Arrays]) -> Iterator[tuple[Cell, ...]]:
        """The rows of the main table by one codec."""
        for one in self.sets.sets:
            names = [one.name] if self.sets.distractors_of(one) is None else [one.name, f"{one.name}{WITH_R1M}"]
            for name in names:
                yield from set_rows(name, scored.get((codec, name)))

    def _data(self) -> dict[str, str]:
        """What runs must share to be compared: the names that are searched."""
        searched = [one.references for one in self.sets.sets]
        searched += [self.sets.distractors] if self.sets.distractors is not None else []
        return {images.role: images.names.digest for images in searched}

    def _lost_notes(self, described: Mapping[str, Described], skipped: int) -> Iterable[str]:
        if skipped:
            yield f"SKIPPED: {skipped:,} images could not be read; they are left out, with the labels that name them."
        cut = [(images, described[images.role].cut_short) for images in self.sets.all]
        count = sum(len(index) for _, index in cut)
        if count:
            names = [f"{images.role}/{images.names[number]}" for images, index in cut for number in index[:SHOWN]]
            shown = ", ".join(names[:SHOWN]) + (" …" if count > SHOWN else "")
            yield f"CUT SHORT: {count:,} image files end early and were read as far as they go: {shown}."


@dataclass(frozen=True)
class TruthFile:
    """The truth of a set as its file has it, by the file's place in the tree."""

    name: str
    content: bytes


def truth_file(truth: TruthFile) -> bytes:
    """The truth beside exported descriptors, so that both are read back together."""
    return truth.content


def length_words(run: Run, sets: Mapping[str, VectorSet]) -> str:
    """A line on vectors that are not of length 1, which figures then depend on; nothing if all are about so."""
    lines = []
    for role, vectors in sets.items():
        words = [f"{role} {shard.start:,}..{shard.stop - 1:,}" for shard in vectors.mapped.shards]
        parts = run.read_each(run.each(length_deviation, words, vectors.by_shard, version=1))
        total, count = (sum(float(part[name][0]) for part in parts) for name in ("deviation", "count"))
        if count and total / count >= NORMALISED_WITHIN:
            lines.append(f"{role} {total / count:.3g}")
    if not lines:
        return ""
    return f"Vectors are taken as stored and are not of length 1: mean | |x| - 1 | of {', '.join(lines)}."


def length_deviation(_: str, arrays: Arrays) -> Arrays:
    """The sum over the rows of a shard of | |x| - 1 |, and their number."""
    rows = as_floats(arrays["vectors"]).astype(np.float64, order="C")
    deviation = np.abs(np.sqrt(row_sums(rows, rows)) - 1).sum()
    return {"deviation": np.array([deviation]), "count": np.array([len(rows)])}


BENCHMARK = Benchmark(
    name="revisited",
    options=RevisitedOptions,
    prepare=prepare,
    keys=KEYS,
    figures=columns_of(FIGURES),
    fractions=FRACTIONS,
    can_skip=True,
    gallery=stored_cases,
)
