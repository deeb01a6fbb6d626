"""TSS: dense flow and cosegmentation of image pairs (Taniai, Sinha, Sato, CVPR 2016), in groups FG3DCar, JODS, PASCAL.

Scores follow the kit's C++ tool, from which its published `scores.csv` come, to the last digit; `--compat matlab`
follows its other tool. T5 is the headline, the same figure as PCK with alpha = 0.05.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from raybench.benchmarks.job import Benchmark, DescribedOptions, Job, Outcome, device_for
from raybench.benchmarks.options import option
from raybench.benchmarks.picture import Picture
from raybench.benchmarks.tss.chosen_pairs import Chosen, choose_pairs
from raybench.benchmarks.tss.flows import DenseFlow, FlowFields, compute_flows, export_flows
from raybench.benchmarks.tss.gallery import gallery, write_pictures
from raybench.benchmarks.tss.methods import resolve_flow
from raybench.benchmarks.tss.pair_scores import PairScores, ScorePairs, score_pairs
from raybench.benchmarks.tss.scoring import Rules
from raybench.benchmarks.tss.tables import FRACTIONS, Group, grouped, main_table, pair_table, state_notes
from raybench.descriptors import DescriptorSpec
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.errors import ConfigError, ProblemList, Problems
from raybench.formats.tss import write_scores

KIT_NAMES = ("_1to2", "_1to2")  # the C++ tool names both directions alike
OUR_NAMES = ("_1to2", "_2to1")
KIT_DECIMALS = 6


@dataclass(frozen=True)
class Options(DescribedOptions):
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
        False, "draw every pair into pictures/, and the worst and best into the report", "protocol"
    )


@dataclass(frozen=True)
class Plan:
    """A job whose trees were listed and whose headers agree."""

    job: Job[Options]
    chosen: Chosen
    method: DescriptorSpec | None
    inputs: dict[str, str]

    @property
    def summary(self) -> str:
        groups = self.chosen.groups
        return f"{len(self.chosen.truth.pairs):,} pairs of {', '.join(groups)}"

    def execute(self, run: Run) -> Outcome:
        """From flows to the tables, in one line of steps."""
        chosen = self.chosen
        fields = None if self.method is None else self._flows(run, self.method)
        results = fields or chosen.results
        assert results is not None
        scores = score_pairs(run, ScorePairs(chosen.truth, results, rules_of(self.job)), self.job.shard_size)
        broken = [line for problem in scores.problems.tolist() for line in problem.split("\n") if line]
        if broken and (not self.job.skip_bad_input or all(scores.problems.tolist())):
            raise Problems(broken)
        skip_absent = self.job.options.missing_flow == "skip"
        groups = grouped(chosen.truth.pairs, scores, chosen.groups, skip_absent)
        self._export(run, groups, fields, scores)
        pictures: list[Picture] = []
        if self.job.options.visualize:
            _, pictures = write_pictures(run, chosen.truth, results, rules_of(self.job), groups)
        notes = (*_rule_notes(self.job), *chosen.notes, *_broken_notes(scores), *state_notes(groups))
        left_out = (*chosen.left_out, *broken)
        pairs = {group.name: len(group.pairs) for group in groups}
        return Outcome(main_table(groups, notes), (pair_table(groups),), left_out, {"pairs": pairs}, tuple(pictures))

    def _flows(self, run: Run, method: DescriptorSpec) -> FlowFields:
        device = device_for(self.job, run, method.uses_gpu)
        stage = DenseFlow(self.chosen.truth, method, device, self.job.batch_size, self.job.skip_bad_input)
        return compute_flows(run, stage, self.job.shard_size)

    def _export(self, run: Run, groups: list[Group], fields: FlowFields | None, scores: PairScores) -> list[str]:
        compat_vc = self.job.options.compat == "vc"
        files = [f"{group.name}/scores.csv" for group in groups]
        write = partial(_score_file, tuple(groups), compat_vc)
        run.export(Export("scores-csv", self.chosen.truth.digest, write, tuple(files)), files)
        if fields is not None:
            good = [item for item in range(len(self.chosen.truth.pairs)) if not scores.problems[item]]
            files += export_flows(run, fields, good)
        return files


def _score_file(groups: tuple[Group, ...], compat_vc: bool, number: int) -> bytes:
    """`scores.csv` of a group: full precision, or as the C++ tool prints it."""
    rows = groups[number].rows(KIT_NAMES if compat_vc else OUR_NAMES)
    return write_scores(rows, KIT_DECIMALS if compat_vc else None)


def rules_of(job: Job[Options]) -> Rules:
    """The rules that a job's options ask for."""
    tool = "matlab" if job.options.compat == "matlab" else "vc"
    return Rules(tool, job.options.auto_flip, job.options.use_prec)


def prepare(job: Job[Options]) -> Plan:
    """List both trees and read every header; raises all problems together, or leaves their pairs out."""
    _check_inputs(job)
    problems = ProblemList()
    method = None
    with problems.noting():
        if job.options.descriptor:
            method = resolve_flow(job.options.descriptor, job.options.descriptor_args)
    with problems.noting():
        chosen = choose_pairs(job, problems)
    problems.check()
    inputs = {"truth": chosen.truth.digest}
    inputs |= {"results": chosen.results.digest} if chosen.results else {}
    inputs |= {"images": chosen.truth.image_digest} if chosen.truth.image_digest else {}
    inputs |= {"descriptor": method.digest} if method else {}
    return Plan(job, chosen, method, inputs)


def _check_inputs(job: Job[Options]) -> None:
    entries = [name for name in ("descriptor", "results") if getattr(job.options, name)]
    if len(entries) != 1:
        found = " and ".join(f"--{name}" for name in entries) or "none"
        raise ConfigError(f"{job.benchmark}: give one of --descriptor, --results; found {found}")
    if not job.options.data:
        raise ConfigError(f"{job.benchmark}: --data is missing, the Dataset folder with GROUP/PAIR/flow1.flo, …")
    if job.options.descriptor and job.options.allow_missing:
        raise ConfigError("--allow-missing: goes with --results; a flow method computes every pair")


def _rule_notes(job: Job[Options]) -> list[str]:
    rules = rules_of(job)
    notes = [
        "T1..T50: share of pixels with known true flow whose error is at most that percentage of the longer side of "
        "the other image. T5 is PCK@0.05 (alpha = 0.05). no_flip: without mirrored pairs. mean: over groups."
    ]
    if rules.use_prec:
        notes.append(
            "SegIUR is the share of pixels whose mask bytes are equal (--use-prec), no intersection over union."
        )
    if rules.auto_flip:
        notes.append("Masks or their complements, whichever score higher a pair (--auto-flip).")
    if rules.tool == "matlab":
        notes.append("Rules of the kit's MATLAB tool; the published scores.csv follow its C++ tool (up to 3e-3 apart).")
    if job.limit is not None:
        notes.append(f"LIMITED: only the first {job.limit:,} pairs of each group were used.")
    return notes


def _broken_notes(scores: PairScores) -> list[str]:
    count = int(np.count_nonzero(scores.problems != ""))
    return [f"SKIPPED: {count} pairs whose content can't be scored; the manifest lists them."] if count else []


BENCHMARK = Benchmark(
    name="tss",
    summary="TSS dense flow and cosegmentation: flow accuracy (T5 = PCK@0.05) and SegIUR of image pairs",
    needs="--data (Dataset), and --results (Results), or --descriptor with a flow method",
    options=Options,
    prepare=prepare,
    fractions=FRACTIONS,
    can_skip=True,
    gallery=gallery,
)
