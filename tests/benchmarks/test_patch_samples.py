"""Samples of the patch benchmarks and of TSS give the main table again; draws are of sequences, or of image pairs."""

import shutil
from collections import Counter

import numpy as np
import pytest
from conftest import GOLDEN
from plain_outcomes import outcome_of

from raybench.metrics.samples import FigureOf, sample_of

HBENCH = {name: GOLDEN / f"hbench_{name}/data" for name in ("classification", "matching", "retrieval")}
HPATCHES = {name: GOLDEN / f"hpatches_{name}/data" for name in ("verification", "matching", "retrieval")}
TSS = GOLDEN / "tss/data"
JOBS = {
    **{
        f"hbench-{name} from features": (
            f"hbench-{name}",
            {"benchmarks": data / "benchmarks", "features": data / "descriptors/block4"},
        )
        for name, data in HBENCH.items()
    },
    **{
        f"hbench-{name} from results": (
            f"hbench-{name}",
            {"benchmarks": data / "benchmarks", "results": data / "results/block4"},
        )
        for name, data in HBENCH.items()
    },
    "hbench-matching with one neighbour": (
        "hbench-matching",
        {
            "benchmarks": HBENCH["matching"] / "benchmarks",
            "features": HBENCH["matching"] / "descriptors/block4",
            "k": 1,
        },
    ),
    "hbench-retrieval as the tool averages": (
        "hbench-retrieval",
        {
            "benchmarks": HBENCH["retrieval"] / "benchmarks",
            "features": HBENCH["retrieval"] / "descriptors/block4",
            "compat": "hbench",
        },
    ),
    **{
        f"hpatches-{name}": (
            f"hpatches-{name}",
            {"tasks": data / "tasks", "features": min((data / "descriptors").iterdir())},
        )
        for name, data in HPATCHES.items()
    },
    "tss": ("tss", {"data": TSS / "Dataset", "results": TSS / "Results"}),
    "tss without absent flows": (
        "tss",
        {"data": TSS / "Dataset", "results": TSS / "Results", "missing_flow": "skip"},
    ),
}
KEYS = {"hpatches-verification": 3, "hpatches-matching": 2, "hpatches-retrieval": 3}
COUNTS = {"hbench-classification": 2, "hbench-matching": 1, "hbench-retrieval": 1, "tss": 1}  # columns that count items


def samples_of(outcome):
    stages = outcome.samples.stages
    return [sample_of(stage.read(shard.index)) for stage in stages for shard in stage.shards]


def drawn(outcome, times=None):
    """Every figure by the number of times that each unit is drawn: once, if nothing is said."""
    figures = {}
    for sample in samples_of(outcome):
        values = sample.draw(np.ones(len(sample.units), np.int64) if times is None else times(sample.units))
        figures.update(zip(sample.figures, values.tolist(), strict=True))
    for mean in outcome.samples.means:
        (figures[mean.figure],) = mean.draws({of: np.array([value]) for of, value in figures.items()}).tolist()
    return figures


def cells(name, table):
    """The figures of a main table by row and column."""
    keys = KEYS.get(name, 1)
    first = keys + COUNTS.get(name, 0)
    return {
        FigureOf(" | ".join(map(str, row[:keys])), column): np.nan if value is None else value
        for row in table.rows
        for column, value in zip(table.columns[first:], row[first:], strict=True)
    }


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Outcomes by name of the job, each computed once."""
    folder, made = tmp_path_factory.mktemp("outcomes"), {}

    def outcome(job):
        if job not in made:
            name, options = JOBS[job]
            made[job] = outcome_of(folder / str(len(made)), name, **options)
        return made[job][0]

    return outcome


@pytest.mark.parametrize("job", JOBS)
def test_every_unit_once_is_the_main_table(outcomes, job):
    outcome = outcomes(job)
    expected, found = cells(JOBS[job][0], outcome.main), drawn(outcome)
    assert set(found) == set(expected)
    for of, value in expected.items():
        assert found[of] == pytest.approx(value, abs=1e-12, nan_ok=True), of


def listed_sequences(task, without="none"):
    """Positives and negatives of a golden task by the sequences of both patches, in file order."""
    folder = HBENCH["classification"] / "benchmarks/classification"
    lists = (folder / f"{task}.benchmark").read_text().split()
    lines = [line for name in lists for line in (folder / name).read_text().split()]
    labels = (folder / f"{task}.labels").read_text().split()
    kept = [(int(label), line) for label, line in zip(labels, lines, strict=True) if without not in line]
    named = [(label, *(patch.split(".")[0] for patch in line.split(",")[:2])) for label, line in kept]
    return [one for one in named if one[0] > 0], [one for one in named if one[0] <= 0]


def counted_sequences(sample):
    """The same of a sample, each with its number."""
    names = sample.units.names
    sides = (names[sample.first].tolist(), names[sample.second].tolist())
    return Counter(zip(sample.positive.tolist(), *sides, strict=True))


def expected_sequences(positives, negatives):
    return Counter((one[0] > 0, *one[1:]) for one in (*positives, *negatives))


def test_every_pair_lies_between_its_own_sequences(outcomes):
    task = "mini_sameseq_tough_negfirst"
    every, even = (
        one for one in samples_of(outcomes("hbench-classification from features")) if one.figures[0].row == task
    )
    positives, negatives = listed_sequences(task)
    assert counted_sequences(every) == expected_sequences(positives, negatives)
    assert counted_sequences(even) == expected_sequences(positives, negatives[: len(positives)])


def test_pairs_that_were_skipped_do_not_count(tmp_path):
    data = HBENCH["classification"]
    shutil.copytree(data / "descriptors/block4", tmp_path / "block4")
    (tmp_path / "block4/v_loft/h2.csv").write_text("no number\n")
    options = {"benchmarks": data / "benchmarks", "features": tmp_path / "block4"}
    outcome, _ = outcome_of(tmp_path / "out", "hbench-classification", on_bad_input="skip", **options)
    assert any(note.startswith("SKIPPED") for note in outcome.main.notes)
    expected, found = cells("hbench-classification", outcome.main), drawn(outcome)
    assert found == pytest.approx(expected, abs=1e-12)
    sample = next(one for one in samples_of(outcome) if one.figures[0] == FigureOf("mini_diffseq_hard", "ap"))
    left = listed_sequences("mini_diffseq_hard", without="v_loft.h2.")
    assert counted_sequences(sample) == expected_sequences(*left)


def test_units_are_sequences_and_image_pairs(outcomes):
    for job in ("hbench-classification from features", "hbench-retrieval from results", "hpatches-matching"):
        outcome = outcomes(job)
        assert outcome.samples.kind == "sequences"
        for sample in samples_of(outcome):
            assert all(name[:2] in ("i_", "v_") for name in sample.units.names), job
    (sample,) = samples_of(outcomes("tss"))
    assert outcomes("tss").samples.kind == "pairs"
    assert len(set(sample.units.names)) == len(sample.values)
    assert all(name.startswith("MINI/") for name in sample.units.names)


def only(name):
    return lambda units: (units.names == name).astype(np.int64)


def test_one_sequence_alone_has_the_mean_of_its_image_pairs(outcomes):
    outcome = outcomes("hbench-matching from features")
    per_pair = next(table for table in outcome.further if table.name == "per_pair")
    task, sequence = "mini_hard_viewpoint", "v_mill"
    found = drawn(outcome, only(sequence))
    own = [row[2:] for row in per_pair.rows if row[0] == task and row[1].startswith(f"{sequence}.")]
    assert 0 < len(own) < sum(row[0] == task for row in per_pair.rows)
    alone = [found[FigureOf(task, column)] for column in outcome.main.columns[2:]]
    assert alone == pytest.approx(np.mean(own, axis=0).tolist())


def test_one_sequence_alone_ranks_the_pairs_within_it(outcomes):
    outcome = outcomes("hpatches-verification")
    views = next(table for table in outcome.further if table.name == "by_sequence")
    sequence = views.rows[0][1]
    found = drawn(outcome, only(sequence))
    row = next(row for row in views.rows if row[1:4] == (sequence, "h", "intra"))
    assert row[6] == 0  # no pair reaches another sequence
    assert found[FigureOf("mini | h | intra", "auc_balanced")] == pytest.approx(row[7])


def test_a_pair_between_two_sequences_needs_both(outcomes):
    outcome = outcomes("hbench-classification from features")
    sample = next(one for one in samples_of(outcome) if one.figures[0] == FigureOf("mini_diffseq_hard", "ap"))
    assert not sample.positive[sample.first != sample.second].any()
    assert np.isnan(sample.draw(only("v_gate")(sample.units))[1])  # no negative is left, hence no ROC
    assert not np.isnan(sample.draw(np.ones(len(sample.units), np.int64))[1])


def test_pairs_are_drawn_within_their_groups(tmp_path):
    for kind in ("Dataset", "Results"):
        for group in ("MINI", "OTHER"):
            shutil.copytree(TSS / kind / "MINI", tmp_path / kind / group)
    shutil.rmtree(sorted((tmp_path / "Dataset/OTHER").iterdir())[0])
    options = {"data": tmp_path / "Dataset", "results": tmp_path / "Results"}
    outcome, _ = outcome_of(tmp_path / "out", "tss", **options)
    (sample,) = samples_of(outcome)
    groups = np.array(["MINI", "OTHER"])[sample.units.stratum]
    assert [name.split("/")[0] for name in sample.units.names] == groups.tolist()
    assert len(set(np.bincount(sample.units.stratum))) == 2
    assert drawn(outcome) == pytest.approx(cells("tss", outcome.main), abs=1e-12)


def test_samples_are_written_beside_the_tables(tmp_path):
    name, options = JOBS["hbench-classification from results"]
    outcome, run = outcome_of(tmp_path, name, **options)
    files = [file for file in run.files if file.startswith("samples/")]
    assert len(files) == 2 * len(outcome.main.rows)
    for file in files:
        with np.load(tmp_path / file) as arrays:
            assert set(sample_of(dict(arrays)).figures) <= set(cells(name, outcome.main))


def test_without_lists_nobody_knows_the_sequences(tmp_path):
    data = HBENCH["classification"]
    shutil.copytree(data / "benchmarks", tmp_path / "benchmarks")
    for pairs in (tmp_path / "benchmarks/classification").glob("*.pairs"):
        pairs.unlink()
    options = {"benchmarks": tmp_path / "benchmarks", "results": data / "results/block4"}
    outcome, run = outcome_of(tmp_path / "out", "hbench-classification", **options)
    assert outcome.samples is None
    assert any(note.startswith("No intervals") for note in outcome.main.notes)
    assert not [file for file in run.files if file.startswith("samples/")]
