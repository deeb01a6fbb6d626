"""A store whose files were damaged between two runs: what is wrong is found, computed again and said; same table."""

import json
import shutil

import pytest
from conftest import only_line
from damages import FOLDERS, LISTED, UNLISTED

TABLE = "hbench_classification.csv"
INLINE = ("--ray", "off")


@pytest.fixture(scope="module", autouse=True)
def small_shards():
    """Ten pairs per shard."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raybench.search.pairs.PAIRS_PER_SHARD", 10)
        yield


@pytest.fixture(scope="module")
def finished(small_shards, tmp_path_factory):
    """An output folder whose run is done."""
    from conftest import GOLDEN

    from raybench.cli.commands import exit_code

    out = tmp_path_factory.mktemp("finished") / "out"
    assert exit_code([*map(str, arguments(GOLDEN / "hbench_classification/data", out)), *INLINE]) == 0
    return out


def arguments(golden, out):
    given = ("run", "hbench-classification", "--features", golden / "descriptors/block4", "--shard-size", "10")
    return (*given, "--benchmarks", golden / "benchmarks", "--out", out, "--device", "cpu", "--progress", "json")


class Halfway:
    """A copy of the run, as if it had been killed after its pairs were compared."""

    def __init__(self, finished, out):
        shutil.copytree(finished, out)
        manifest = json.loads((out / "manifest.json").read_text())
        (out / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
        names = [stage["name"] for stage in manifest["stages"]]
        folders = [out / "stages" / stage["digest"] for stage in manifest["stages"]]
        self.out, self.pairs = out, folders[names.index("pairs")]
        self.vectors = folders[names.index("read-vectors")]
        for folder in folders[names.index("pairs") + 1 :]:
            shutil.rmtree(folder, ignore_errors=True)

    def shard(self, index):
        return self.pairs / f"{index:06d}.shard"

    def damage(self, how, index):
        how(self.shard(index), self.shard(index + 1), self.vectors / "000000.shard")


@pytest.fixture
def halfway(finished, tmp_path):
    return Halfway(finished, tmp_path / "out")


def computed(out, name="pairs"):
    stages = {stage["name"]: stage for stage in json.loads((out / "manifest.json").read_text())["stages"]}
    return stages[name]["computed"]


def said_again(text):
    """The lines that say what is mapped again."""
    messages = [json.loads(line).get("message", "") for line in text.splitlines() if line.startswith("{")]
    return [message for message in messages if message.startswith("mapping pairs shard ")]


@pytest.mark.parametrize("how", LISTED)
def test_a_damaged_shard_is_mapped_again_and_said(raybench, golden, finished, halfway, how):
    whole = halfway.shard(5).read_bytes(), halfway.shard(6).read_bytes()
    halfway.damage(how, 5)
    said = raybench(*arguments(golden, halfway.out), *INLINE)
    assert said.code == 0, said.err
    lines = said_again(said.err)
    spoilt = ("5", "6") if how.__name__ == "swapped" else ("5",)
    assert [line.split()[3] for line in lines] == list(spoilt), said.err
    assert (halfway.shard(5).read_bytes(), halfway.shard(6).read_bytes()) == whole
    assert (halfway.out / TABLE).read_bytes() == (finished / TABLE).read_bytes()


@pytest.mark.parametrize("how", UNLISTED)
def test_what_is_no_file_is_mapped_as_if_nothing_were_there(raybench, golden, finished, halfway, how):
    whole = halfway.shard(5).read_bytes()
    halfway.damage(how, 5)
    said = raybench(*arguments(golden, halfway.out), *INLINE)
    assert said.code == 0, said.err
    assert computed(halfway.out) == 1
    assert halfway.shard(5).read_bytes() == whole
    assert not halfway.shard(5).is_symlink()
    assert (halfway.out / TABLE).read_bytes() == (finished / TABLE).read_bytes()


@pytest.mark.parametrize("how", FOLDERS)
def test_a_folder_in_the_place_of_a_shard_is_moved_aside_and_said(raybench, golden, halfway, how):
    halfway.damage(how, 5)
    said = raybench(*arguments(golden, halfway.out), *INLINE)
    assert said.code == 0, said.err
    (aside,) = (halfway.out / "stages/moved-aside").iterdir()
    assert f"mapping pairs shard 5 again: a folder is in its place; it is now {aside}" in said_again(said.err)
    assert [file.read_text() for file in aside.iterdir()] == ["kept"] * (how.__name__ == "folder_with_files")


def test_actors_find_all_damages_at_once(raybench, golden, finished, halfway, local_ray):
    damages = [*LISTED, *UNLISTED]
    for number, how in enumerate(damages):
        halfway.damage(how, 3 * number)
    said = raybench(*arguments(golden, halfway.out), "--cpus", "2")
    assert said.code == 0, said.err
    again = {int(line.split()[3]) for line in said_again(said.err)}
    known = {3 * damages.index(how) for how in [*LISTED, *FOLDERS]}
    swapped = next(3 * number + 1 for number, how in enumerate(damages) if how.__name__ == "swapped")
    assert again == known | {swapped}
    assert computed(halfway.out) == len(UNLISTED)
    assert (halfway.out / TABLE).read_bytes() == (finished / TABLE).read_bytes()


def test_a_file_in_the_place_of_a_stage_is_one_clear_line(raybench, golden, halfway):
    shutil.rmtree(halfway.pairs)
    halfway.pairs.write_text("not a folder")
    said = raybench(*arguments(golden, halfway.out), *INLINE)
    assert said.code == 2
    assert len(said.errors) == 1 and "(a file has the name of a folder above it); move that away" in said.errors[0]
    assert halfway.pairs.read_text() == "not a folder"


@pytest.mark.parametrize("name", [TABLE, "results/classification/block4/mini_easy_pos.results", "report.html"])
def test_a_folder_in_the_place_of_an_output_is_one_clear_line_and_stays(raybench, golden, halfway, name):
    (halfway.out / name).unlink()
    (halfway.out / name).mkdir()
    (halfway.out / name / "precious").write_text("kept")
    only_line(raybench(*arguments(golden, halfway.out), *INLINE), halfway.out / name)
    assert (halfway.out / name / "precious").read_text() == "kept"


def test_a_receipt_that_is_a_folder_is_replaced(raybench, golden, finished, halfway):
    receipt = halfway.out / "receipts/00-read-vectors.jsonl"
    receipt.unlink()
    receipt.mkdir()
    said = raybench(*arguments(golden, halfway.out), *INLINE)
    assert said.code == 0, said.err
    assert (halfway.out / TABLE).read_bytes() == (finished / TABLE).read_bytes()


def test_a_file_in_the_place_of_the_receipts_is_one_clear_line(raybench, golden, halfway):
    shutil.rmtree(halfway.out / "receipts")
    (halfway.out / "receipts").write_text("kept")
    only_line(
        raybench(*arguments(golden, halfway.out), *INLINE), "receipts/", "a file has the name of a folder above it"
    )
    assert (halfway.out / "receipts").read_text() == "kept"


def test_what_killed_writers_left_is_removed(raybench, golden, halfway):
    left = halfway.pairs / f".000003.shard.{'0' * 32}.tmp"
    left.write_bytes(b"half")
    assert raybench(*arguments(golden, halfway.out), *INLINE).code == 0
    assert not left.exists()
