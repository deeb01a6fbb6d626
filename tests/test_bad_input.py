"""Wrong input: exit code 2, one clear line for each problem with file and fix, all at once, and nothing computed."""

import shutil

import numpy as np
import pytest
from conftest import only_line, spoil
from PIL import Image


@pytest.fixture
def data(golden, tmp_path):
    """A copy of the golden inputs that a test may spoil."""
    return shutil.copytree(golden, tmp_path / "data")


@pytest.fixture
def run(raybench, data, tmp_path):
    def call(*given, **paths):
        given = given or ("--features", data / "descriptors/block4")
        benchmarks = paths.get("benchmarks", data / "benchmarks")
        said = raybench(
            "run",
            "hbench-classification",
            "--benchmarks",
            benchmarks,
            "--out",
            tmp_path / "out",
            "--ray",
            "off",
            *given,
        )
        assert "Traceback" not in said.err
        assert not (tmp_path / "out/stages").exists() or said.code == 0, "something was computed"
        return said

    return call


def test_a_missing_folder(run, tmp_path):
    only_line(run("--features", tmp_path / "nowhere"), tmp_path / "nowhere", "does not exist")


def test_a_missing_benchmarks_folder(run, tmp_path):
    only_line(run(benchmarks=tmp_path / "nowhere"), tmp_path / "nowhere", "does not exist")


def test_a_strip_whose_height_is_no_multiple_of_its_width(run, data):
    strip = data / "hpatches/v_gate/e1.png"
    Image.fromarray(np.zeros((100, 65), np.uint8)).save(strip)
    only_line(run("--data", data / "hpatches", "--descriptor", "meanstd"), strip, "65x100", "multiple")


@pytest.mark.parametrize("entry", ["hpatches", "descriptors"])
def test_a_signature_out_of_range(run, data, entry):
    pairs = data / "benchmarks/classification/mini_easy_pos.pairs"
    spoil(pairs, lambda text: text.replace("v_loft.e5.13,", "v_loft.e5.14,", 1))
    given = ("--data", data / "hpatches", "--descriptor", "meanstd") if entry == "hpatches" else ()
    only_line(run(*given), pairs, "line 1:", "v_loft.e5.14", "14 patches")


def test_an_unknown_sequence_suggests_the_nearest(run, data):
    spoil(data / "benchmarks/classification/mini_easy_pos.pairs", lambda text: text.replace("v_loft", "v_lofd"))
    only_line(run(), "v_lofd", "did you mean v_loft?")


def test_a_missing_image_of_a_known_sequence(run, data):
    (data / "descriptors/block4/v_loft/e5.csv").unlink()
    only_line(run(), "v_loft/e5.csv", "missing")


@pytest.mark.parametrize("file", ["mini_sameseq_easy.labels", "mini_easy_pos.pairs"])
def test_a_label_that_is_not_0_or_1(run, data, file):
    path = data / "benchmarks/classification" / file
    if file.endswith(".pairs"):
        spoil(path, lambda text: "".join(f"{line},{2 if i == 4 else 1}\n" for i, line in enumerate(text.splitlines())))
    else:
        spoil(path, lambda text: "\n".join("2" if i == 4 else line for i, line in enumerate(text.splitlines())) + "\n")
    only_line(run(), path, "line 5:", "not 0 or 1")


def test_labels_that_contradict_each_other(run, data):
    path = data / "benchmarks/classification/mini_sameseq_easy.labels"
    results = data / "results_with_labels/block4"
    spoil(path, lambda text: text.replace("1", "0", 1))
    only_line(run("--results", results), "mini_sameseq_easy", "line 1:", "differs")


def test_results_with_too_few_lines(run, data):
    path = data / "results/block4/classification/mini_sameseq_easy.results"
    spoil(path, lambda text: "\n".join(text.splitlines()[:-2]) + "\n")
    only_line(run("--results", data / "results/block4"), path, "228 lines", "expected 230")


def test_a_nan_distance(run, data):
    path = data / "results/block4/classification/mini_sameseq_easy.results"
    spoil(path, lambda text: "\n".join(["nan", *text.splitlines()[1:]]) + "\n")
    only_line(run("--results", data / "results/block4"), path, "line 1:", "NaN")


def test_an_empty_benchmark_file(run, data):
    path = data / "benchmarks/classification/mini_sameseq_easy.benchmark"
    path.write_text("")
    only_line(run(), path, "empty")


def test_one_bad_line_of_a_descriptor_file(raybench, data, tmp_path):
    path = data / "descriptors/block4/v_loft/e5.csv"
    spoil(path, lambda text: text.replace(";", ";x", 1))
    given = ("--features", data / "descriptors/block4", "--benchmarks", data / "benchmarks")
    said = raybench("run", "hbench-classification", *given, "--out", tmp_path / "out", "--ray", "off")
    only_line(said, path, "line 1:", "x")


def test_all_problems_are_listed_together(run, data):
    folder = data / "benchmarks/classification"
    (folder / "mini_hard_pos.pairs").unlink()
    spoil(folder / "mini_easy_pos.pairs", lambda text: "nonsense\n" + text)
    (folder / "mini_diffseq_hard.labels").write_text("7\n")
    said = run("--data", data / "nowhere", "--descriptor", "meanstd")
    assert said.code == 2
    assert len(said.errors) == 4, said.err


def test_an_unknown_option_suggests_the_nearest(run):
    only_line(run("--shard-sise", "7"), "--shard-sise", "--shard-size")


def test_a_seed_below_zero_is_refused(run):
    only_line(run("--seed", "-1"), "--seed", "-1")


def test_an_unknown_descriptor_lists_them(run, data):
    only_line(run("--data", data / "hpatches", "--descriptor", "sifd"), "sifd", "did you mean sift?", "meanstd", "orb")


def test_an_unknown_benchmark_suggests_the_nearest(raybench):
    only_line(raybench("run", "hbench-clasification"), "did you mean hbench-classification?")


def test_another_runs_output_folder_is_refused_with_the_difference(raybench, golden, tmp_path):
    given = (
        "run",
        "hbench-classification",
        "--benchmarks",
        golden / "benchmarks",
        "--out",
        tmp_path / "out",
        "--ray",
        "off",
    )
    assert raybench(*given, "--results", golden / "results/block4").code == 0
    before = (tmp_path / "out/hbench_classification.csv").read_bytes()
    only_line(
        raybench(*given, "--results", golden / "results/coarse"), tmp_path / "out", "results/coarse", "--overwrite"
    )
    assert (tmp_path / "out/hbench_classification.csv").read_bytes() == before
    assert raybench(*given, "--results", golden / "results/coarse", "--overwrite").code == 0
    assert (tmp_path / "out/hbench_classification.csv").read_bytes() != before


def test_no_place_to_enter_or_two(run, data):
    only_line(run("--distance", "L2"), "--descriptor", "--features", "--results", "none")
    only_line(run("--features", data, "--results", data), "--features and --results")


def test_several_result_folders_must_be_told_apart(run, data):
    only_line(run("--results", data / "results"), "3 folders fit", "block4/classification")


def test_a_descriptor_class_that_is_not_there(run, data):
    strips = ("--data", data / "hpatches", "--descriptor")
    only_line(run(*strips, "patch_descriptors:Blok4"), "did you mean Block4?")
    only_line(run(*strips, "no_such_module:Class"), "no_such_module")
    only_line(run(*strips, "patch_descriptors:Block4", "--descriptor-args", '{"size": 3}'), "size")


def test_a_descriptor_that_gives_nan_or_a_wrong_shape_is_named_with_its_strip(raybench, golden, tmp_path):
    for name, word in (("NotANumber", "patch 2 has NaN"), ("WrongShape", "expected (")):
        said = raybench(
            *("run", "hbench-classification", "--benchmarks", golden / "benchmarks", "--out", tmp_path / name),
            *("--data", golden / "hpatches", "--descriptor", f"patch_descriptors:{name}", "--ray", "off"),
        )
        only_line(said, "i_pond/e1.png", word)


def test_a_config_file_has_the_same_keys_and_flags_win(raybench, golden, tmp_path):
    config = tmp_path / "job.yaml"
    config.write_text(
        f"benchmarks: {golden / 'benchmarks'}\nresults: {golden / 'results/block4'}\nout: {tmp_path / 'out'}\n"
        "ray: 'off'\nshard_size: 7\nlimit: 5\n"
    )
    assert raybench("run", "hbench-classification", "--config", config, "--limit", "9").code == 0
    assert "18," in (tmp_path / "out/hbench_classification.csv").read_text()
    config.write_text("shard-sise: 7\n")
    only_line(raybench("run", "hbench-classification", "--config", config), "unknown key shard-sise", "shard")


def test_check_finds_the_same_problems_and_computes_nothing(raybench, data, tmp_path):
    given = (
        "check",
        "hbench-classification",
        "--benchmarks",
        data / "benchmarks",
        "--features",
        data / "descriptors/block4",
    )
    said = raybench(*given)
    assert (said.code, said.out.strip()) == (0, "good: 3 tasks over 650 pairs in 6 lists")
    (data / "benchmarks/classification/mini_easy_pos.pairs").unlink()
    only_line(raybench(*given), "mini_easy_pos.pairs")


def test_options_are_accepted_with_underscores(run, data):
    assert run("--results", data / "results/block4", "--shard_size", "50", "--on_bad_input", "fail").code == 0


def test_what_cannot_be_read_may_be_skipped_and_is_counted_and_listed(raybench, data, tmp_path):
    """A missing strip, one that is no strip, one cut short, and a signature out of range: only their pairs are lost."""
    import csv
    import json

    (data / "hpatches/v_loft/e5.png").unlink()
    Image.fromarray(np.zeros((100, 65), np.uint8)).save(data / "hpatches/v_gate/e1.png")
    cut = data / "hpatches/i_pond/e4.png"
    cut.write_bytes(cut.read_bytes()[:-400])
    pairs = data / "benchmarks/classification/mini_easy_pos.pairs"
    spoil(pairs, lambda text: text.replace("v_loft.e4.7,", "v_loft.e4.99,", 1))
    given = ("run", "hbench-classification", "--data", data / "hpatches", "--benchmarks", data / "benchmarks")
    given += ("--descriptor", "patch_descriptors:Block4", "--ray", "off", "--task", "*easy")
    assert raybench(*given, "--out", tmp_path / "a").code == 2
    said = raybench(*given, "--out", tmp_path / "b", "--on-bad-input", "skip")
    assert said.code == 0, said.err
    names = ("v_loft.e5.", "v_gate.e1.", "i_pond.e4.", "v_loft.e4.99")
    lists = [data / "benchmarks/classification" / f"mini_{name}.pairs" for name in ("easy_pos", "sameseq_neg_e")]
    good = [[line for line in file.read_text().splitlines() if not any(n in line for n in names)] for file in lists]
    (row,) = csv.DictReader((tmp_path / "b/hbench_classification.csv").open())
    assert (int(row["pairs"]), int(row["positives"])) == (len(good[0] + good[1]), len(good[0]))
    assert f"SKIPPED: {230 - len(good[0] + good[1])} of 230 pairs" in said.out
    skipped = json.loads((tmp_path / "b/manifest.json").read_text())["skipped"]
    assert len(skipped) == 4
    assert all(any(key in line for line in skipped) for key in ("v_loft/e5", "v_gate/e1", "i_pond/e4", "v_loft.e4.99"))
    again = raybench(
        *("run", "hbench-classification", "--benchmarks", data / "benchmarks", "--results", tmp_path / "b/results"),
        *("--out", tmp_path / "c", "--ray", "off", "--task", "*easy", "--on-bad-input", "skip"),
    )
    assert again.code == 0, again.err
    assert (tmp_path / "c/hbench_classification.csv").read_bytes() == (
        tmp_path / "b/hbench_classification.csv"
    ).read_bytes()


@pytest.mark.parametrize("size", [(), ("--shard-size", "1")])
def test_descriptors_of_several_dimensions_are_never_compared(raybench, golden, tmp_path, size):
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    given += ("--out", tmp_path / "out", "--ray", "off", *size)
    only_line(raybench(*given, "--descriptor", "patch_descriptors:Varying"), "dimension 13", "same")
    only_line(raybench(*given, "--descriptor", "patch_descriptors:Floats", "--overwrite"), "float64", "hamming")


def test_a_descriptors_name_cannot_lead_out_of_the_output_folder(run, data, raybench, golden, tmp_path):
    only_line(run("--data", data / "hpatches", "--descriptor", "patch_descriptors:Climbing"), "../../escaped")
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    said = raybench(*given, "--descriptor", "patch_descriptors:Unnamed", "--out", tmp_path / "named", "--ray", "off")
    assert said.code == 0
    assert [path.name for path in (tmp_path / "named/results/classification").iterdir()] == ["Unnamed"]


def test_labels_of_one_list_that_differ_between_tasks(run, data):
    folder = data / "benchmarks/classification"
    shutil.copy(folder / "mini_sameseq_easy.benchmark", folder / "other.benchmark")
    shutil.copy(folder / "mini_sameseq_easy.labels", folder / "other.labels")
    spoil(folder / "other.labels", lambda text: "0" + text[1:])
    only_line(run(), "mini_easy_pos", "line 1:", "other")


def test_a_label_of_one_list_alone_must_agree_with_the_labels_file(run, data):
    pairs = data / "benchmarks/classification/mini_easy_pos.pairs"
    spoil(pairs, lambda text: "".join(f"{line},{0 if i == 7 else 1}\n" for i, line in enumerate(text.splitlines())))
    only_line(run(), "mini_sameseq_easy.labels", "line 8:", pairs)


def test_a_list_may_have_the_name_of_its_task(run, data):
    folder = data / "benchmarks/classification"
    shutil.copy(folder / "mini_easy_pos.pairs", folder / "mini_sameseq_easy.pairs")
    (folder / "mini_sameseq_easy.benchmark").write_text("mini_sameseq_easy.pairs\nmini_sameseq_neg_e.pairs\n")
    assert run().code == 0


def test_files_that_nobody_asked_for_do_no_harm(run, data):
    (data / "hpatches/i_pond/zz.png").write_bytes(b"junk")
    (data / "hpatches/i_pond/._e1.png").write_bytes(b"junk")
    assert run("--data", data / "hpatches", "--descriptor", "meanstd").code == 0


def test_output_inside_the_input_is_refused(raybench, data):
    given = ("--benchmarks", data / "benchmarks", "--features", data / "descriptors/block4", "--ray", "off")
    only_line(raybench("run", "hbench-classification", *given, "--out", data / "descriptors/block4/run"), "inside")


@pytest.mark.parametrize(
    ("descriptor", "word"),
    [
        (":X", "can't be imported"),
        ("builtins:dict", "dict"),
        ("broken_module:X", "SyntaxError"),
        ("json:dumps", "no class"),
    ],
)
def test_a_descriptor_that_cannot_be_used_is_one_line(run, data, tmp_path, monkeypatch, descriptor, word):
    (tmp_path / "broken_module.py").write_text("def")
    monkeypatch.chdir(tmp_path)
    only_line(run("--data", data / "hpatches", "--descriptor", descriptor), word)


def test_a_folder_or_list_where_a_file_or_value_is_expected(run, raybench, data, tmp_path):
    only_line(raybench("run", "hbench-classification", "--config", data), "expected a file")
    config = tmp_path / "list.yaml"
    config.write_text("limit: [1, 2]\n")
    only_line(raybench("run", "hbench-classification", "--config", config), "--limit", "found '[1, 2]'")
    (tmp_path / "file").write_text("")
    given = ("--benchmarks", data / "benchmarks", "--features", data / "descriptors/block4")
    for command in ("run", "check"):
        only_line(
            raybench(command, "hbench-classification", *given, "--out", tmp_path / "file", "--ray", "off"), "a file"
        )


def test_options_that_contradict_each_other(run):
    for given, word in (
        (("--gpus", "2"), "--ray off"),
        (("--cpus", "2"), "--ray off"),
        (("--normalise", "unit"), "torchscript"),
    ):
        only_line(run("--features", "x", *given), word)


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem(run, data):
    for path in (data / "benchmarks/classification").iterdir():
        text = path.read_text().replace("\n", "\r\n")
        path.write_bytes(text.encode("utf-8-sig" if path.suffix == ".benchmark" else "utf-8"))
    assert run().code == 0


def test_a_wholly_wrong_folder_is_an_error_even_where_bad_input_is_skipped(run, data):
    shutil.rmtree(data / "hpatches/v_gate")
    for name in ("i_pond", "v_loft"):
        shutil.move(data / "hpatches" / name, data / f"hpatches/x_{name}")
    said = run("--data", data / "hpatches", "--descriptor", "meanstd", "--on-bad-input", "skip")
    assert said.code == 2


def test_the_command_alone_shows_its_help(raybench):
    said = raybench("run")
    assert said.code == 2
    assert "hbench-classification" in said.out
    assert not said.errors
