"""TSS: dense flow and cosegmentation of image pairs (Taniai, Sinha, Sato, CVPR 2016), in groups FG3DCar, JODS, PASCAL.

Each pair has true flows and masks in both directions, 1→2 and 2→1. Result flows and masks come from a Results tree,
or flows from a method; masks that are absent are estimated from the flows. Both are brought to the truth's size.
SegIUR is the overlap of masks, intersection over union. T1..T50 are shares of pixels with known true flow whose error
is at most that percentage of the longer side of the other image; T5 is the headline, the same as PCK at alpha = 0.05.
Scores follow the kit's C++ tool, from which its published `scores.csv` come, to the last digit; `--compat matlab`
follows its other tool. Means of a group are over rows, two per pair; the last row of the table is over groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.job import (
    Benchmark,
    DescribedOptions,
    Job,
    Outcome,
    check_one_given,
    device_for,
    limit_notes,
    note_digest,
    trial_device,
)
from raybench.benchmarks.options import option
from raybench.benchmarks.tss.cases import case_pictures, draw_cases
from raybench.benchmarks.tss.flow_trial import FlowTrial
from raybench.benchmarks.tss.inputs import ChosenPairs, choose_pairs, first_few
from raybench.benchmarks.tss.methods import ComputedFlows, DenseFlow, compute_flows, resolve_flow, write_flows
from raybench.benchmarks.tss.pictures import write_pictures
from raybench.benchmarks.tss.samples import group_samples
from raybench.benchmarks.tss.scoring import (
    ABSENT,
    ESTIMATED,
    STATES,
    PairResults,
    PairScores,
    Rules,
    ScoredGroup,
    exact_mean,
    score_pairs,
    scored_groups,
)
from raybench.descriptors.specs import DescriptorSpec
from raybench.engine.run import Run
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.extract.trials import NoTrial, Trial
from raybench.formats.tss import SCORE_COLUMNS, write_scores
from raybench.table import Cell, Figure, Table, columns_of, fractions_of

SHOWN_SCORES = (0, 1, 3, 5, 10)  # of a row's 51: SegIUR and these thresholds
SCORE_FIGURES = tuple(Figure(name) for name in ("SegIUR", "T1", "T3", "T5", "T10"))
FIGURES = (*SCORE_FIGURES, Figure("SegIUR_no_flip"), Figure("T5_no_flip"))
FIGURES_NOTE = (
    "T1..T50: share of pixels with known true flow whose error is at most that percentage of the longer side of "
    "the other image. T5 is PCK@0.05 (alpha = 0.05). no_flip: without mirrored pairs. mean: over groups."
)
KIT_ENDINGS = ("_1to2", "_1to2")  # of names of rows: the C++ tool names both directions alike
OUR_ENDINGS = ("_1to2", "_2to1")
KIT_DECIMALS = 6


@dataclass(frozen=True)
class TssOptions(DescribedOptions):
    """The data, flows by a method or finished results, and which tool's rules hold."""

    results: str | None = option(None, "Results folder: GROUP/PAIR/flow1.flo, mask1.png, …", "input", is_uri=True)
    compat: str | None = option(
        None,
        "vc: names and decimals of the kit's C++ tool; matlab: rules of its other tool",
        "protocol",
        default_words="rules of the C++ tool, full precision",
        choices=("vc", "matlab"),
    )
    auto_flip: bool = option(False, "score masks or their complements, whichever fit better", "protocol")
    use_prec: bool = option(False, "share of equal mask pixels instead of intersection over union", "protocol")
    allow_missing: bool = option(False, "leave out pairs without a result; the table counts them", "protocol")
    missing_flow: str = option(
        "zero",
        "rows without flow: their zeros averaged in, as the tools do, or left out",
        "protocol",
        choices=("zero", "skip"),
    )
    visualize: bool = option(
        False, "draw every pair into pictures/ (the report shows the worst and best in any case)", "protocol"
    )

    @property
    def rules(self) -> Rules:
        return Rules("matlab" if self.compat == "matlab" else "vc", self.auto_flip, self.use_prec)


def prepare(job: Job[TssOptions]) -> TssPlan:
    """List both trees and read every header; raises all problems together, or leaves their pairs out."""
    _check_options(job)
    problems = ProblemList()
    method = None
    with problems.noting():
        if job.options.descriptor:
            method = resolve_flow(job.options.descriptor, job.options.descriptor_args)
    with problems.noting():
        chosen = choose_pairs(job, problems)
    problems.check()
    found = {"truth": chosen.truth, "results": chosen.results, "images": chosen.images, "descriptor": method}
    return TssPlan(job, chosen, method, {name: value.digest for name, value in found.items() if value is not None})


def _check_options(job: Job[TssOptions]) -> None:
    check_one_given(job, ("descriptor", "results"))
    if not job.options.data:
        raise ConfigError(f"{job.benchmark}: --data is missing, the Dataset folder with GROUP/PAIR/flow1.flo, …")
    if job.options.descriptor and job.options.allow_missing:
        raise ConfigError("--allow-missing: goes with --results; a flow method computes every pair")


@dataclass(frozen=True)
class TssPlan:
    """A job whose trees were listed and whose headers agree."""

    job: Job[TssOptions]
    chosen: ChosenPairs
    method: DescriptorSpec | None
    inputs: dict[str, str]

    @property
    def summary(self) -> str:
        return f"{len(self.chosen.truth.pairs):,} pairs of {', '.join(self.chosen.groups)}"

    @property
    def trial(self) -> Trial:
        if self.method is None:
            return NoTrial(self.chosen.notes)
        device = trial_device(self.job, self.method.uses_gpu)
        return FlowTrial(self._stage(self.method, device), (*self.chosen.notes, *self.method.digest_notes))

    def execute(self, run: Run) -> Outcome:
        chosen, options = self.chosen, self.job.options
        flows = self._flows(run) if self.method else None
        results: PairResults | None = flows or chosen.results
        assert results is not None
        scores = score_pairs(run, chosen.truth, results, options.rules)
        broken = self._broken(scores)
        groups = scored_groups(chosen.truth.pairs, scores, chosen.groups, options.missing_flow == "skip")
        run.write("{name}/scores.csv", scores_file, groups, options.compat == "vc")
        if flows is not None:
            write_flows(run, flows, [pair for group in groups for pair in group.pairs])
        if options.visualize and chosen.images:
            write_pictures(run, chosen.truth, chosen.images, results, options.rules, groups)
        pictures = draw_cases(run, chosen.truth, chosen.images, results, options.rules, groups)
        notes = (*_rule_notes(self.job), *chosen.notes, *_broken_notes(scores), *_state_notes(groups))
        counts = {group.name: len(group.pairs) for group in groups}
        left_out = (*chosen.left_out, *broken)
        samples = group_samples(run, groups, columns_of(FIGURES), SHOWN_SCORES)
        main, further = group_table(groups, notes), (pair_table(groups),)
        return Outcome(main, further, left_out, {"pairs": counts}, pictures, samples)

    def _flows(self, run: Run) -> ComputedFlows:
        assert self.method is not None
        note_digest(run, self.method)
        device = device_for(self.job, run, self.method.uses_gpu)
        return compute_flows(run, self._stage(self.method, device), self.job.shard_size)

    def _stage(self, method: DescriptorSpec, device: str) -> DenseFlow:
        assert self.chosen.images is not None
        parts = (self.chosen.truth.pairs, self.chosen.images, method, device)
        return DenseFlow(*parts, self.job.batch_size, self.job.skip_bad_input)

    def _broken(self, scores: PairScores) -> list[str]:
        """What was found wrong with pairs only when they were scored; raised, unless such pairs are skipped."""
        broken = [line for problem in scores.problems.tolist() for line in problem.split("\n") if line]
        if broken and (not self.job.skip_bad_input or all(scores.problems.tolist())):
            raise Problems(broken)
        return broken


def scores_file(group: ScoredGroup, compat_vc: bool) -> bytes:
    """`scores.csv` of a group: full precision, or as the C++ tool prints it."""
    endings = KIT_ENDINGS if compat_vc else OUR_ENDINGS
    rows: list[list[Cell]] = []
    for pair, side, (seg, *accuracies) in group.rows():
        sources = (pair.sources[side], pair.sources[1 - side])
        rows.append([f"{pair.folder}{endings[side]}", *sources, seg, pair.flip, *accuracies])
    for name, mirrored in (("Average", True), ("w/o flip", False)):
        seg, *accuracies = group.means(mirrored)
        rows.append([name, "-", "-", seg, int(mirrored), *accuracies])
    assert all(len(row) == len(SCORE_COLUMNS) for row in rows)
    return write_scores(rows, KIT_DECIMALS if compat_vc else None)


def group_table(groups: Sequence[ScoredGroup], notes: tuple[str, ...]) -> Table:
    """One row per group, and the mean over groups."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        every, straight = group.means(), group.means(mirrored=False)
        shown = [every[column] for column in SHOWN_SCORES]
        rows.append((group.name, len(group.pairs), *shown, straight[0], straight[5]))
    columns = ("group", "pairs", *columns_of(FIGURES))
    over = [exact_mean(np.array([row[i] for row in rows if row[i] is not None])) for i in range(2, len(columns))]
    rows.append(("mean", sum(len(group.pairs) for group in groups), *over))
    return Table("tss", columns, tuple(rows), fractions_of(FIGURES), notes)


def pair_table(groups: Sequence[ScoredGroup]) -> Table:
    """One row per pair and direction, and where its flow and mask came from."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        states = [states for states in group.states for _ in (1, 2)]
        for (pair, side, figures), (flow, mask) in zip(group.rows(), states, strict=True):
            named = (group.name, pair.folder, ("1to2", "2to1")[side], pair.sources[side], pair.sources[1 - side])
            shown = [figures[column] for column in SHOWN_SCORES]
            rows.append((*named, pair.flip, *shown, STATES[flow], STATES[mask]))
    columns = ("group", "pair", "direction", "src", "ref", "flip", *columns_of(SCORE_FIGURES), "flow", "mask")
    return Table("per_pair", columns, tuple(rows), fractions_of(FIGURES))


def _rule_notes(job: Job[TssOptions]) -> list[str]:
    rules = job.options.rules
    notes = [FIGURES_NOTE]
    if rules.use_prec:
        notes.append(
            "SegIUR is the share of pixels whose mask bytes are equal (--use-prec), no intersection over union."
        )
    if rules.auto_flip:
        notes.append("Masks or their complements, whichever score higher per pair (--auto-flip).")
    if rules.tool == "matlab":
        notes.append("Rules of the kit's MATLAB tool; the published scores.csv follow its C++ tool (up to 3e-3 apart).")
    return [*notes, *limit_notes(job, "pairs of each group")]


def _broken_notes(scores: PairScores) -> list[str]:
    count = int(np.count_nonzero(scores.problems != ""))
    return [f"SKIPPED: {count} pairs whose content can't be scored; the manifest lists them."] if count else []


def _state_notes(groups: Sequence[ScoredGroup]) -> list[str]:
    """What the figures rest on where results were incomplete."""
    notes = []
    for group in groups:
        absent = [pair.folder for pair, there in zip(group.pairs, group.has_flow, strict=True) if not there]
        if absent:
            treated = "left out of T1..T50" if group.skip_absent else "their zeros are averaged in, as the tools do"
            notes.append(
                f"NO FLOW: {len(absent)} of {len(group.pairs)} pairs of {group.name} ({first_few(absent)}); {treated}."
            )
        for state, words in ((ESTIMATED, "estimated from the flows"), (ABSENT, "absent, so that SegIUR is 0")):
            count = int(np.count_nonzero(group.states[:, 1] == state))
            if count:
                notes.append(f"{group.name}: masks of {count} of {len(group.pairs)} pairs were {words}.")
    return notes


BENCHMARK = Benchmark(
    name="tss",
    options=TssOptions,
    prepare=prepare,
    keys=("group",),
    figures=columns_of(FIGURES),
    fractions=fractions_of(FIGURES),
    can_skip=True,
    gallery=stored_cases,
    cases=case_pictures,
)
