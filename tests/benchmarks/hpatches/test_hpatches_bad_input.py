"""Wrong input to the 2017 benchmarks: exit code 2, one line a problem with file and line, and nothing computed."""

import json
import shutil

import pytest
from conftest import GOLDEN, only_line, spoil


@pytest.fixture
def data(tmp_path):
    """A copy of the golden verification inputs, with lists for retrieval, that a test may spoil."""
    copy = shutil.copytree(GOLDEN / "hpatches_verification/data", tmp_path / "data")
    (copy / "tasks/retr_queries_split-mini.csv").write_text("s,idx\ni_cliff,0\nv_barn,1\n")
    (copy / "tasks/retr_distractors_split-mini.csv").write_text("s,idx\nv_moor,0\nv_barn,1\n")
    return copy


@pytest.fixture
def call(raybench, data, tmp_path):
    def run(task, *given, command="run"):
        given = given or ("--features", data / "descriptors/block20")
        inputs = ("--tasks", data / "tasks", *given) if "--tasks" not in given else given
        said = raybench(command, f"hpatches-{task}", *inputs, "--out", tmp_path / "out", "--ray", "off")
        assert "Traceback" not in said.err
        assert said.code == 0 or not (tmp_path / "out/stages").exists(), "something was computed"
        return said

    return run


TASKS = ("verification", "matching", "retrieval")


@pytest.mark.parametrize("task", TASKS)
def test_results_have_no_published_format(call, data, task):
    only_line(call(task, "--results", data), "no published format")


@pytest.mark.parametrize("task", TASKS)
def test_check_finds_the_sound_set_good(call, task):
    said = call(task, command="check")
    assert said.code == 0, said.err
    assert "split mini" in said.out


def test_no_place_to_enter_or_two_or_no_tasks(call, raybench, data, tmp_path):
    only_line(call("matching", "--distance", "L2"), "--descriptor", "--features", "none")
    only_line(call("matching", "--features", data, "--descriptor", "sift"), "--descriptor and --features")
    only_line(raybench("run", "hpatches-matching", "--features", data, "--out", tmp_path / "x"), "--tasks is missing")


def test_an_unknown_split_suggests_the_nearest(call, data):
    only_line(call("matching", "--features", data, "--split", "mimi"), "--split mimi", "did you mean mini?")


def test_a_split_without_its_files_names_each(call, data):
    (data / "tasks/verif_pos_split-mini.csv").unlink()
    given = ("--features", data / "descriptors/block20")
    only_line(call("verification", *given, "--split", "mini"), "verif_pos_split-mini.csv", "is missing")
    only_line(call("verification", *given), "none of the splits mini has its files")


def test_a_folder_without_splits(call, data, tmp_path):
    shutil.rmtree(data / "tasks/splits")
    only_line(call("matching"), data / "tasks", "splits.json")
    only_line(
        call("matching", "--features", data / "descriptors/block20", "--tasks", tmp_path / "no"), "does not exist"
    )


def test_a_patch_out_of_range_is_named_with_its_line(call, data):
    file = data / "tasks/verif_neg_intra_split-mini.csv"
    spoil(file, lambda text: text.replace("v_moor,2,5,v_moor,0,8", "v_moor,2,5,v_moor,0,99", 1))
    only_line(call("verification"), file, "line 2:", "patch 99 of v_moor", "patches")
    queries = data / "tasks/retr_queries_split-mini.csv"
    spoil(queries, lambda text: text + "v_barn,77\n")
    only_line(call("retrieval"), queries, "line 4:", "patch 77 of v_barn")


@pytest.mark.parametrize("task", TASKS)
def test_an_unknown_sequence_suggests_the_nearest(call, data, task):
    for file in [*(data / "tasks").glob("*.csv"), data / "tasks/splits/splits.json"]:
        spoil(file, lambda text: text.replace("v_barn", "v_bern"))
    only_line(call(task), "no sequence 'v_bern'", "did you mean v_barn?")


@pytest.mark.parametrize("task", TASKS)
def test_a_missing_image_is_named(call, data, task):
    (data / "descriptors/block20/v_barn/t2.csv").unlink()
    only_line(call(task), "v_barn/t2.csv is missing")


@pytest.mark.parametrize("task", TASKS)
def test_an_image_with_too_few_patches_is_named(call, data, task):
    file = data / "descriptors/block20/v_barn/t2.csv"
    spoil(file, lambda text: "\n".join(text.splitlines()[:-1]) + "\n")
    said = call(task)
    assert said.code == 2
    assert any(str(file) in line and "patches, but v_barn/" in line for line in said.errors)


@pytest.mark.parametrize("task", TASKS)
def test_a_file_of_another_dimension_is_named(call, data, task):
    file = data / "descriptors/block20/v_barn/t2.csv"
    spoil(file, lambda text: "".join(line.rpartition(",")[0] + "\n" for line in text.splitlines()))
    only_line(call(task), file, "dimension 19", "have 20")


def test_whitening_without_a_train_part_names_the_split(call, data):
    splits = data / "tasks/splits/splits.json"
    spoil(splits, lambda text: json.dumps({"mini": {**json.loads(text)["mini"], "train": []}}))
    given = ("--features", data / "descriptors/block20", "--post-processing", "pcapl")
    only_line(call("verification", *given), "split mini has no train part")


def test_whitening_does_not_go_with_bits(call, data):
    given = ("--features", data / "descriptors/block20", "--post-processing", "pcapl", "--distance", "hamming")
    only_line(call("matching", *given), "pcapl", "hamming")


def test_an_odd_dimension_has_no_mask(raybench, data, tmp_path):
    for file in (data / "descriptors/block20").glob("*/*.csv"):
        spoil(file, lambda text: "".join(line.rpartition(",")[0] + "\n" for line in text.splitlines()))
    given = ("--tasks", data / "tasks", "--features", data / "descriptors/block20", "--distance", "masked_L1")
    said = raybench("run", "hpatches-matching", *given, "--out", tmp_path / "out", "--ray", "off")
    only_line(said, "masked_L1", "dimension 19")


def test_all_problems_are_listed_together(call, data):
    spoil(data / "tasks/verif_pos_split-mini.csv", lambda text: text + "nonsense\n")
    spoil(data / "tasks/verif_neg_intra_split-mini.csv", lambda text: text.replace("s1", "s", 1))
    (data / "descriptors/block20/v_barn/t2.csv").unlink()
    said = call("verification")
    assert said.code == 2
    assert len(said.errors) == 3, said.err


def test_problems_of_all_three_are_listed_together(raybench, data, tmp_path):
    spoil(data / "tasks/verif_pos_split-mini.csv", lambda text: text + "nonsense\n")
    spoil(data / "tasks/retr_queries_split-mini.csv", lambda text: text + "nonsense\n")
    given = ("--tasks", data / "tasks", "--features", data / "descriptors/block20", "--out", tmp_path / "out")
    for command in ("check", "run"):
        said = raybench(command, "hpatches", *given, "--ray", "off")
        assert said.code == 2
        assert len(said.errors) == 2, said.err
    assert not (tmp_path / "out").exists()


def test_splits_may_stand_in_a_config_file(raybench, data, tmp_path):
    for number, split in enumerate(("mini", "[mini]")):
        config = tmp_path / "job.yaml"
        config.write_text(
            f"tasks: {data / 'tasks'}\nfeatures: {data / 'descriptors/block20'}\nout: {tmp_path / str(number)}\n"
            f"ray: 'off'\nsplit: {split}\n"
        )
        assert raybench("run", "hpatches-matching", "--config", config).code == 0
