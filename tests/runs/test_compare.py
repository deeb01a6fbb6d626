"""Finished runs side by side: figures, differences, letters, and why some runs can't be compared."""

import csv
import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import only_line
from PIL import Image

from raybench import storage
from raybench.benchmarks.samples import INDEX, SamplesIndex, sample_file
from raybench.cli import compare as cli_compare
from raybench.cli.commands import exit_code
from raybench.errors import InputError
from raybench.metrics.samples import FigureOf, MeanOf, MeanSample, Units
from raybench.runs.comparing.compare import COLUMNS, compare
from raybench.runs.comparing.words import FORMATS
from raybench.runs.finished import finished_manifest
from raybench.runs.manifest import Manifest
from raybench.runs.samples import read_samples
from raybench.runs.unit_values import unit_values
from raybench.table import Table, figure_cells, read_csv

INLINE = ("--ray", "off", "--progress", "none")
QUERIES, REFERENCES = 40, 80
TRUE = 30  # queries that are copies of the reference of the same number


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of three descriptors over the same queries: fine, coarse (noisier), and fine among fewer references."""
    root = tmp_path_factory.mktemp("compare")
    truth = "".join(f"Q{number},R{number if number < TRUE else ''}\n" for number in range(QUERIES))
    truth = truth.replace(",R\n", ",\n")
    for name, noise, references in (("fine", 0.25, REFERENCES), ("coarse", 0.45, REFERENCES), ("fewer", 0.25, 50)):
        write_vectors(root / "vectors" / name, noise, references)
        (root / "vectors" / name / "val_groundtruth_matches.csv").write_text("query_id,reference_id\n" + truth)
    for name in ("fine", "coarse", "fewer"):
        run("disc2021", root / name, "--features", root / "vectors" / name)
    return root


def write_vectors(folder, noise, references):
    random = np.random.default_rng(5)
    originals = random.normal(size=(REFERENCES, 8))
    queries = np.concatenate([originals[:TRUE], random.normal(size=(QUERIES - TRUE, 8))])
    queries = queries + noise * np.random.default_rng(6).normal(size=queries.shape) * 3
    folder.mkdir(parents=True)
    for stem, letter, rows in (("queries", "Q", queries), ("references", "R", originals[:references])):
        names = [f"{letter}{number}" for number in range(len(rows))]
        np.savez(folder / f"{stem}.npz", vectors=rows.astype(np.float32), names=np.array(names))


def run(benchmark, out, *arguments):
    assert exit_code(["run", benchmark, "--out", str(out), *map(str, arguments), *INLINE]) == 0


def predicted(folder, name, lines, *arguments):
    """A run from finished predictions, over the truth that is there."""
    file = folder / f"{name}.csv"
    file.write_text("".join(f"{query},{reference},{score}\n" for query, reference, score in lines))
    truth = folder / "truth.csv"
    if not truth.exists():
        truth.write_text("a,x\nb,y\nc,z\nd,x\n")
    run("disc2021", folder / name, "--results", file, "--ground-truth", truth, *arguments)
    return folder / name


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def by_run(comparison, figure):
    columns = dict(zip(COLUMNS, zip(*comparison.table.rows, strict=True), strict=True))
    places = [place for place, name in enumerate(columns["figure"]) if name == figure]
    return {columns["run"][place]: {name: columns[name][place] for name in COLUMNS} for place in places}


def test_values_are_the_tables_own_and_differences_are_to_the_baseline(raybench, folder):
    said = raybench("compare", folder / "coarse", folder / "fine", "--format", "csv", "--draws", "200")
    assert said.code == 0, said.err
    assert said.out.splitlines()[0] == ",".join(COLUMNS)
    found = records(said.out)
    for name in ("coarse", "fine"):
        table = read_csv("main", (folder / name / "disc_metrics.csv").read_text())
        cells = figure_cells(table, ("codec", "score_norm"), {"uAP", "accuracy-at-1", "recall-at-p90"})
        mine = [(one["row"], one["figure"], float(one["value"])) for one in found if one["run"] == name]
        assert mine == [(cell.row, cell.figure, cell.value) for cell in cells]
    for coarse, fine in zip(found[::2], found[1::2], strict=True):
        assert (coarse["run"], fine["run"]) == ("coarse", "fine")
        assert [coarse[name] for name in COLUMNS[6:11]] == [""] * 5
        assert float(fine["difference"]) == float(fine["value"]) - float(coarse["value"])
        assert float(fine["difference_low"]) <= float(fine["difference"]) <= float(fine["difference_high"])
        assert fine["p"] == fine["p_holm"]


def test_a_better_descriptor_is_told_apart_by_letter_and_in_words(raybench, folder):
    said = raybench("compare", folder / "coarse", folder / "fine")
    assert said.code == 0, said.err
    line = next(line for line in said.out.splitlines() if line.lstrip().startswith("uAP"))
    assert line.split()[1] == "fine"  # the best comes first
    assert " a  better than coarse by " in line and "points (" in line and "p = 0.002" in line
    assert "fine against coarse, 6 figures: better in " in said.out
    found = by_run(compare([str(folder / "coarse"), str(folder / "fine")]), "uAP")
    assert {name: one["group"] for name, one in found.items()} == {"coarse": "b", "fine": "a"}


def test_a_run_does_not_differ_from_itself(folder):
    found = compare([str(folder / "fine"), str(folder / "fine")], draws=50)
    own, same = found.table.rows[0], found.table.rows[1]
    assert own[0] == same[0] == str(folder / "fine")  # by path, as two share a name
    assert own[6:11] == (None,) * 5
    assert same[6:11] == (0.0, 0.0, 0.0, 1.0, 1.0)
    assert own[11] == same[11] == "a"


def test_the_baseline_may_be_any_run_or_another(folder):
    fine, coarse = str(folder / "fine"), str(folder / "coarse")
    one, other = compare([coarse, fine], draws=50, baseline=fine), compare([coarse], draws=50, baseline=fine)
    assert one.baseline == other.baseline == "fine"
    assert one.runs == ("coarse", "fine") and other.runs == ("fine", "coarse")
    assert by_run(one, "uAP")["coarse"] == by_run(other, "uAP")["coarse"]
    assert by_run(one, "uAP")["coarse"]["difference"] < 0


def test_several_runs_are_corrected_for(tmp_path):
    lines = [("a", "x", 4), ("b", "y", 3), ("c", "z", 2), ("d", "x", 1), ("a", "y", 0)]
    runs = [predicted(tmp_path, f"run{number}", lines[number:]) for number in range(3)]
    found = compare([str(one) for one in runs], draws=100)
    column = by_run(found, "accuracy-at-1")
    for name in ("run1", "run2"):
        assert column[name]["p"] <= column[name]["p_holm"] <= 2 * column[name]["p"]
    assert any("rest on 4 queries" in note and "p-values too small" in note for note in found.notes)


def test_draws_are_those_of_the_run_itself(folder, tmp_path):
    run("disc2021", tmp_path / "out", "--features", folder / "vectors/fine", "--bootstrap", "100", "--seed", "3")
    compared = compare([str(tmp_path / "out"), str(folder / "coarse")], draws=100, seed=3)
    own = read_csv("intervals", (tmp_path / "out/tables/intervals.csv").read_text())
    assert own.columns == ("row", "figure", "value", "low", "high")
    assert own.rows == tuple(line[1:6] for line in compared.table.rows if line[0] == "out")
    assert "low" in (tmp_path / "out/report.html").read_text()


@pytest.mark.parametrize("kind", [(), ("--global-candidates",)])
def test_samples_give_the_main_table_to_the_last_bit(folder, tmp_path, kind):
    run("disc2021", tmp_path, "--features", folder / "vectors/coarse", *kind)
    assert_figures(tmp_path)


def test_samples_of_predictions_give_the_main_table_with_ties(tmp_path):
    lines = [("a", "x", 1), ("a", "y", 1), ("b", "y", 1), ("c", "x", 1), ("d", "z", 0)]
    assert_figures(predicted(tmp_path, "tied", lines))


def assert_figures(out):
    """Each figure of a run is the one of a draw in which every unit comes once."""
    manifest = finished_manifest(str(out))
    found = {}
    for sample in read_samples(str(out), manifest).samples:
        found.update(zip(sample.figures, sample.draw(np.ones(len(sample.units), np.int64)), strict=True))
    table = read_csv("main", (out / "disc_metrics.csv").read_text())
    cells = figure_cells(table, ("codec", "score_norm"), {"uAP", "accuracy-at-1", "recall-at-p90"})
    assert {(cell.row, cell.figure): cell.value for cell in cells} == {(k.row, k.figure): v for k, v in found.items()}


def test_a_run_from_vectors_may_be_compared_with_one_from_images(tmp_path):
    random = np.random.default_rng(0)
    for stem, count in (("val_query", 4), ("val_ref", 8)):
        (tmp_path / "data" / stem).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(0, 256, (32, 32, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "data" / stem / f"{stem[4].upper()}{number}.png")
    (tmp_path / "data/val_groundtruth_matches.csv").write_text("Q0,R0\nQ1,R1\nQ2,\n")
    images = ("--data", tmp_path / "data", "--descriptor", "thumbnail", "--export-descriptors", "--codecs", "Flat")
    run("disc2021", tmp_path / "images", *images)
    truth = ("--ground-truth", tmp_path / "data/val_groundtruth_matches.csv", "--codecs", "Flat")
    run("disc2021", tmp_path / "vectors", "--features", tmp_path / "images/results", *truth)
    found = compare([str(tmp_path / "images"), str(tmp_path / "vectors")], draws=20)
    assert by_run(found, "uAP")["vectors"]["difference"] == 0.0


def test_other_references_make_runs_incomparable(raybench, folder):
    only_line(
        raybench("compare", folder / "fine", folder / "fewer"), "names of references", folder / "fewer", "--force"
    )
    said = raybench("compare", folder / "fine", folder / "fewer", "--force")
    assert said.code == 0 and "FORCED: " in said.out and "names of references" in said.out


def test_another_protocol_makes_runs_incomparable(raybench, folder, tmp_path):
    run("disc2021", tmp_path / "out", "--features", folder / "vectors/fine", "--k", "5")
    only_line(raybench("compare", folder / "fine", tmp_path / "out"), "--k is 5, but 10 in", "--force")


def test_another_truth_makes_runs_incomparable(raybench, tmp_path):
    lines = [("a", "x", 4), ("b", "y", 3)]
    one = predicted(tmp_path, "one", lines)
    (tmp_path / "truth.csv").write_text("a,x\nb,y\nb,z\n")
    other = predicted(tmp_path, "other", lines)
    said = raybench("compare", one, other)
    assert said.code == 2
    assert any("ground truth has the digest" in line for line in said.errors)
    assert any("true items" in line or "are not in" in line for line in said.errors)


def test_digests_of_names_sizes_and_times_say_how_to_compare_copies(raybench, folder, tmp_path):
    runs = [tmp_path / name for name in ("one", "other")]
    for number, copy in enumerate(runs):
        shutil.copytree(folder / "fine", copy)
        change(copy, inputs={"queries": f"{number}" * 12}, arguments={}, execution={"verify_inputs": False})
    said = raybench("compare", *runs)
    only_line(said, "queries has the digest 111111111111", "run both again with --verify-inputs true; --force")
    change(runs[0], execution={"verify_inputs": True})
    only_line(raybench("compare", *runs), f"run {runs[1]} again with --verify-inputs true")
    change(runs[1], execution={"verify_inputs": True})
    assert "--verify-inputs" not in raybench("compare", *runs).err


def test_another_benchmark_is_refused_even_by_force(raybench, folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder / "fine", copy)
    change(copy, benchmark="copydays")
    only_line(raybench("compare", folder / "fine", copy, "--force"), "is a run of copydays", "one of disc2021")


def change(out, **values):
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, **values}))


def test_units_that_one_run_does_not_know_are_left_out_by_force(tmp_path):
    """Another truth, with one query less: figures are then those of the queries that both have."""
    lines = [("a", "x", 4), ("b", "y", 3), ("c", "z", 2), ("b", "z", 2.5)]
    one = predicted(tmp_path, "one", lines)
    (tmp_path / "truth.csv").write_text("a,x\nb,y\n")
    other = predicted(tmp_path, "other", lines[:2])
    with pytest.raises(InputError, match="2 of the queries are not in other"):
        compare([str(one), str(other)])
    found = by_run(compare([str(one), str(other)], draws=50, force=True), "uAP")
    assert found["one"]["value"] == found["other"]["value"] == 1.0


def test_a_query_without_predictions_need_not_be_in_the_file(tmp_path):
    one = predicted(tmp_path, "one", [("a", "x", 4), ("b", "y", 3), ("stranger", "y", 5)])
    other = predicted(tmp_path, "other", [("a", "x", 4), ("b", "y", 3)])
    found = by_run(compare([str(one), str(other)], draws=50), "uAP")
    assert found["one"]["value"] < found["other"]["value"]
    assert found["other"]["difference_low"] >= 0


def test_runs_without_samples_say_how_to_get_them(raybench, folder, tmp_path):
    shutil.copytree(folder / "fine", tmp_path / "old")
    files = [name for name in finished_manifest(str(folder / "fine")).files if not name.startswith("samples/")]
    change(tmp_path / "old", files=files)
    only_line(raybench("compare", folder / "fine", tmp_path / "old"), tmp_path / "old", "run again with --overwrite")


@pytest.mark.parametrize("name", ["samples/samples.json", "samples/Flat_None_knn_pooled.npz"])
def test_a_broken_sample_is_named(raybench, folder, tmp_path, name):
    shutil.copytree(folder / "fine", tmp_path / "broken")
    (tmp_path / "broken" / name).write_bytes(b"{}")
    only_line(raybench("compare", folder / "fine", tmp_path / "broken"), name, "run again with --overwrite")


def test_a_sample_whose_arrays_do_not_fit_is_named(folder, tmp_path):
    shutil.copytree(folder / "fine", tmp_path / "broken")
    file = tmp_path / "broken/samples/Flat_None_knn_pooled.npz"
    with np.load(file) as arrays:
        np.savez(file, **{**arrays, "first": arrays["first"] + QUERIES})
    with pytest.raises(InputError, match=r"pooled\.npz: no sample of a run \(an item of no unit\)"):
        compare([str(folder / "fine"), str(tmp_path / "broken")])


def test_of_a_folder_with_several_runs_the_one_like_the_others_is_taken(raybench, folder, tmp_path):
    for name in ("disc2021", "copydays"):
        shutil.copytree(folder / "coarse", tmp_path / "all" / name)
    change(tmp_path / "all/copydays", benchmark="copydays")
    said = raybench("compare", folder / "fine", tmp_path / "all", "--format", "json", "--draws", "50")
    assert said.code == 0, said.err
    assert json.loads(said.out)["runs"] == ["fine", "disc2021"]
    only_line(raybench("compare", tmp_path / "all", tmp_path / "all"), tmp_path / "all/disc2021", "name one run")


NOISES = ("e", "h", "t")
SEQUENCES = ("i_a", "i_b", "v_a", "v_b", "v_c")


def made_run(out, values, splits=("full",), sequences=SEQUENCES, failed=()):
    """A finished run of hpatches-matching, of which only what is compared is there: values (noises, sequences)."""
    rows, samples, means = [], {}, []
    for split in splits:
        figures = [FigureOf(f"{split} | {noise}", "map") for noise in NOISES]
        units = Units.plain(sequences)
        places = np.arange(len(sequences), dtype=np.int32)
        sample = MeanSample(tuple(figures), units, places, values.T)
        samples[f"samples/{split}.npz"] = sample_file(None, sample.to_arrays())
        means.append(MeanOf(FigureOf(f"{split} | mean", "map"), tuple(figures)))
        each = values.mean(axis=1).tolist()
        rows += [
            (split, noise, value, 0.5) for noise, value in zip((*NOISES, "mean"), (*each, np.mean(each)), strict=True)
        ]
    rows += [(split, noise, None, None) for split in failed for noise in (*NOISES, "mean")]
    table = Table("hpatches_matching", ("split", "noise", "map", "success_rate"), tuple(rows))
    samples[INDEX] = SamplesIndex("sequences", tuple(means), {}).to_json()
    for name, data in {"hpatches_matching.csv": table.to_csv().encode(), **samples}.items():
        storage.publish(f"{out}/{name}", data)
    manifest = Manifest("hpatches-matching", {}, {}, {"tasks": "1"}, "done", files=list(samples))
    manifest.publish(str(out))
    return str(out)


def test_a_mean_of_rows_is_drawn_from_its_parts(tmp_path):
    random = np.random.default_rng(0)
    one, other = random.random((2, 3, 5))
    found = compare([made_run(tmp_path / "one", one), made_run(tmp_path / "other", other)], draws=60, seed=1)
    lines = {(line[0], line[1]): line for line in found.table.rows if line[2] == "map"}
    assert len(lines) == 8
    times = np.stack(list(Units.plain(SEQUENCES).draws(60, 1)))  # (draws, sequences)
    draws = np.sort(((other - one).mean(axis=0) * times).mean(axis=1))
    assert lines["other", "full | mean"][7:9] == pytest.approx((draws[1], draws[-2]))  # 1 of 60 beyond either end
    assert found.units == "sequences"


def test_a_figure_without_sample_has_a_value_only(tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    found = compare([made_run(tmp_path / "one", values), made_run(tmp_path / "other", values)], draws=20)
    line = next(line for line in found.table.rows if line[2] == "success_rate")
    assert line[3:] == (0.5, *[None] * 8)


def test_a_run_that_has_no_value_leaves_the_others_theirs(tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    one = made_run(tmp_path / "one", values, ("full", "a"))
    found = compare([one, made_run(tmp_path / "other", values, failed=("a",))], draws=20)
    lines = {line[0]: line for line in found.table.rows if line[1:3] == ("a | e", "map")}
    assert lines["one"][4] < lines["one"][3] < lines["one"][5]
    assert (lines["one"][11], lines["other"][3:]) == ("a", (None,) * 9)


def test_other_splits_make_runs_incomparable(raybench, tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    one, other = made_run(tmp_path / "one", values, ("full", "a")), made_run(tmp_path / "other", values)
    only_line(raybench("compare", one, other), "has rows of its own: none, but 'a | e'", "--force")
    said = raybench("compare", one, other, "--force", "--format", "csv")
    assert {line["row"] for line in records(said.out)} == {"full | e", "full | h", "full | t", "full | mean"}


def test_a_mean_over_units_in_common_is_of_these(tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    runs = made_run(tmp_path / "one", values), made_run(tmp_path / "other", values[:, :4], sequences=SEQUENCES[:4])
    found = compare(runs, draws=20, force=True)
    means = {line[0]: line[3] for line in found.table.rows if line[1:3] == ("full | mean", "map")}
    assert means["one"] == means["other"] == pytest.approx(values[:, :4].mean())


def test_units_in_another_order_are_drawn_alike(tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    turned = made_run(tmp_path / "turned", values[:, ::-1], sequences=SEQUENCES[::-1])
    found = compare([made_run(tmp_path / "one", values), turned], draws=20)
    assert {line[6:9] for line in found.table.rows if line[0] == "turned" and line[2] == "map"} == {(0.0, 0.0, 0.0)}


def test_values_of_units_of_a_mean_are_means_over_its_parts(tmp_path):
    values = np.random.default_rng(0).random((3, 5))
    found = {one.figure: one for one in unit_values(made_run(tmp_path, values))}
    mean = found[FigureOf("full | mean", "map")]
    assert mean.names == SEQUENCES
    assert mean.values == pytest.approx(values.mean(axis=0))


def test_a_folder_stands_for_its_runs_of_one_benchmark(folder, tmp_path):
    for name in ("fine", "coarse"):
        shutil.copytree(folder / name, tmp_path / name)
    assert compare([str(tmp_path)], draws=20).runs == ("coarse", "fine")


def test_runs_are_read_from_s3(folder, s3):
    bucket = s3.bucket("compared")
    uris = [s3.upload(folder / name, f"{bucket}/{name}") for name in ("fine", "coarse")]
    here = compare([str(folder / name) for name in ("fine", "coarse")], draws=20)
    assert compare(uris, draws=20).table.rows == here.table.rows


def test_json_holds_what_was_compared(raybench, folder, tmp_path):
    out = tmp_path / "comparison.json"
    said = raybench("compare", folder / "coarse", folder / "fine", "--format", "json", "--draws", "50", "--out", out)
    assert said.code == 0 and str(out) in said.out
    found = json.loads(out.read_text())
    assert {name: found[name] for name in ("benchmark", "baseline", "units", "draws", "seed")} == {
        "benchmark": "disc2021",
        "baseline": "coarse",
        "units": "queries",
        "draws": 50,
        "seed": 0,
    }
    assert list(found["records"][0]) == list(COLUMNS)


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("a.csv", "run,row,"),
        ("a.MD", "| row |"),
        ("a.tex", "%"),
        ("a.json", "{"),
        ("a.txt", "disc2021:"),
        ("a", "disc2021:"),
    ],
)
def test_the_suffix_of_the_file_says_the_form(raybench, folder, tmp_path, name, begins):
    said = raybench("compare", folder / "coarse", folder / "fine", "--draws", "5", "--out", tmp_path / name)
    assert said.code == 0 and (tmp_path / name).read_text().startswith(begins)


def test_a_suffix_of_no_form_needs_the_form(raybench, folder, tmp_path):
    words = ("compare", folder / "coarse", folder / "fine", "--draws", "5", "--out", tmp_path / "a.html")
    only_line(raybench(*words), "a.html: .html names no format", ".csv, .md, .tex, .json, or give --format")
    assert raybench(*words, "--format", "csv").code == 0
    assert (tmp_path / "a.html").read_text().startswith("run,row,")


def test_every_form_that_is_offered_is_written():
    assert set(cli_compare.FORMATS) == set(FORMATS)


def test_tables_for_papers_have_the_best_in_bold(raybench, folder):
    runs = ("compare", folder / "coarse", folder / "fine", "--draws", "50", "--format")
    markdown, latex = (raybench(*runs, form).out for form in ("markdown", "latex"))
    fine = next(line for line in markdown.splitlines() if line.startswith("| Flat \\| None | fine |"))
    assert fine.count("**") == 6 and "±" in fine and "<sup>a</sup>" in fine
    assert r"\begin{tabular}{llrrr}" in latex and r"Flat $|$ None & fine & \textbf{" in latex
    assert latex.rstrip().endswith(r"\end{tabular}")


@pytest.mark.parametrize(("option", "value"), [("--draws", "0"), ("--draws", "many"), ("--seed", "-1")])
def test_wrong_numbers_are_refused(raybench, folder, option, value):
    only_line(raybench("compare", folder / "fine", folder / "coarse", option, value), option, value)


def test_one_run_alone_is_nothing_to_compare(raybench, folder):
    only_line(raybench("compare", folder / "fine"), "at least two")


def test_each_query_has_a_value_of_its_own(folder):
    found = {one.figure: one for one in unit_values(str(folder / "fine"))}
    top = found[FigureOf("Flat | None", "accuracy-at-1")]
    assert (top.kind, len(top.names)) == ("queries", QUERIES)
    values = dict(zip(top.names, top.values.tolist(), strict=True))
    assert set(list(values.values())[:3]) <= {0.0, 1.0}
    assert sum(np.isnan(value) for value in values.values()) == QUERIES - TRUE
    main = read_csv("main", (Path(folder) / "fine/disc_metrics.csv").read_text())
    assert np.nanmean(top.values) == pytest.approx(main.rows[0][main.columns.index("accuracy-at-1")])


def test_what_a_run_warns_of_is_said_again(folder, tmp_path):
    shutil.copytree(folder / "coarse", tmp_path / "collapsed")
    change(tmp_path / "collapsed", notes=["uAP: in one pool.", "CONSTANT: all vectors are equal."])
    notes = compare([str(folder / "fine"), str(tmp_path / "collapsed")], draws=10).notes
    assert [note for note in notes if "collapsed" in note] == ["CONSTANT: all vectors are equal. (in collapsed)"]


def test_letters_of_three_runs_say_over_what_they_are_corrected(folder):
    """A run may be better than the baseline by p, which is corrected for fewer pairs, and share its letter."""
    two, three = ([str(folder / name) for name in names] for names in (("fine", "coarse"), ("fine", "coarse", "fine")))
    said = [FORMATS["markdown"](compare(runs, draws=10)) for runs in (two, three)]
    assert ["over all pairs of runs" in text for text in said] == [False, True]


def test_notes_stand_beside_a_csv_on_standard_error(raybench, folder):
    said = raybench("compare", folder / "fine", folder / "coarse", "--draws", "5", "--format", "csv")
    assert "DRAWS: with 5 draws" in said.err and "DRAWS" not in said.out


def test_runs_without_a_row_in_common_are_refused_without_hope(raybench, folder, tmp_path):
    shutil.copytree(folder / "fine", tmp_path / "other")
    table = tmp_path / "other/disc_metrics.csv"
    table.write_text(table.read_text().replace("Flat", "Other"))
    said = raybench("compare", folder / "fine", tmp_path / "other")
    only_line(said, "no row in common", "'Flat | None'", "'Other | None'")
    assert "--force" not in said.err
