"""Limits on what one input file may take: refused with the option that raises them, and no trace in any figure."""

import json
import pickle

import numpy as np
import pytest
from conftest import GOLDEN, only_line
from PIL import Image

from raybench.formats.limits import Limits
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles
from raybench.sources.strips import Strips
from raybench.sources.vector_files import VectorFile

INLINE = ("--ray", "off", "--progress", "none")


@pytest.fixture
def strips(golden, tmp_path):
    """A run of the golden strips, of 65 px, over one store."""
    given = ("run", "hbench-classification", "--data", golden / "hpatches", "--benchmarks", golden / "benchmarks")
    return (*given, "--descriptor", "patch_descriptors:Block4", "--store", tmp_path / "store", *INLINE)


@pytest.fixture
def pictures(tmp_path):
    """A DISC tree of small pictures with one larger one."""
    rng = np.random.default_rng(0)
    for folder, letter, digits in (("queries", "Q", 5), ("references", "R", 6)):
        (tmp_path / "disc" / folder).mkdir(parents=True)
        for number in range(4):
            side = 64 if (letter, number) == ("R", 3) else 32
            pixels = rng.integers(0, 256, (side, side, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"disc/{folder}/{letter}{number:0{digits}d}.png")
    (tmp_path / "disc/public_ground_truth.csv").write_text("Q00000,R000000\nQ00001,R000003\n")
    given = ("run", "disc2021", "--data", tmp_path / "disc", "--descriptor", "thumbnail", "--codecs", "Flat")
    return (*given, "--score-norm", "none", "--k", "2", "--store", tmp_path / "store", *INLINE)


def shards(store):
    return {path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()}


def test_a_strip_beyond_the_limit_is_refused_with_the_option_that_raises_it(raybench, strips, tmp_path):
    said = raybench(*strips, "--out", tmp_path / "a", "--max-image-pixels", "60000")
    assert said.code == 2
    assert len(said.errors) > 1, "all of them at once"
    assert all("--max-image-pixels" in line and ".png: 65 x 975 px" in line for line in said.errors)
    assert not (tmp_path / "store").exists()


def test_limits_change_no_figure_and_no_digest(raybench, strips, tmp_path):
    assert raybench(*strips, "--out", tmp_path / "a").code == 0
    before = shards(tmp_path / "store")
    raised = ("--max-image-pixels", str(2**40), "--max-unpacked-bytes", str(2**50))
    assert raybench(*strips, "--out", tmp_path / "b", *raised).code == 0
    assert shards(tmp_path / "store") == before
    table = "hbench_classification.csv"
    assert (tmp_path / "a" / table).read_bytes() == (tmp_path / "b" / table).read_bytes()
    again = raybench(*strips, "--out", tmp_path / "a", *raised)
    assert again.code == 0, "a finished run is done under any limits"
    assert json.loads((tmp_path / "b/manifest.json").read_text())["execution"]["max_image_pixels"] == 2**40


def test_what_a_limit_left_out_is_there_again_when_it_is_raised(raybench, strips, tmp_path, golden):
    smallest = min(Image.open(path).size[1] for path in golden.glob("hpatches/*/*.png"))
    low = ("--on-bad-input", "skip", "--max-image-pixels", str(65 * smallest))
    said = raybench(*strips, "--out", tmp_path / "low", *low)
    assert (said.code, "SKIPPED" in said.out) == (0, True), said.err
    assert raybench(*strips, "--out", tmp_path / "all", "--on-bad-input", "skip").code == 0
    assert raybench(*strips, "--out", tmp_path / "plain").code == 0
    table = "hbench_classification.csv"
    low, every, plain = ((tmp_path / out / table).read_bytes() for out in ("low", "all", "plain"))
    assert low != every == plain


def test_a_picture_beyond_the_limit_is_refused_and_read_when_it_is_raised_over_the_same_store(
    raybench, pictures, tmp_path
):
    only_line(
        raybench(*pictures, "--out", tmp_path / "a", "--max-image-pixels", "2000"),
        "R000003.png: 64 x 64 px, more than 2,000 in all",
        "--max-image-pixels",
    )
    assert raybench(*pictures, "--out", tmp_path / "b", "--max-image-pixels", "4096").code == 0
    assert raybench(*pictures, "--out", tmp_path / "c").code == 0
    table = "disc_metrics.csv"
    assert (tmp_path / "b" / table).read_bytes() == (tmp_path / "c" / table).read_bytes()


def test_names_of_vectors_beyond_the_limit_are_refused(raybench, tmp_path):
    given = ("run", "disc2021", "--features", GOLDEN / "disc/data/small", "--out", tmp_path / "out", *INLINE)
    said = raybench(*given, "--max-unpacked-bytes", "100")
    assert said.code == 2
    assert any("its names would take" in line and "--max-unpacked-bytes" in line for line in said.errors)


def test_a_config_of_aliases_that_would_fill_the_memory_is_one_line(raybench, tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    file = tmp_path / "job.yaml"
    file.write_text("\n".join([*lines, "descriptor-args: {a: *a39}"]))
    only_line(raybench("run", "disc2021", "--config", file, "--out", tmp_path / "out"), file, "4,096 values")
    file.write_text("data: " + "x" * 2**16)
    only_line(raybench("run", "disc2021", "--config", file, "--out", tmp_path / "out"), file, "65,536 bytes")


def test_limits_travel_with_the_sources():
    limits = Limits(10, 20)
    sources = (
        ImageFiles(FolderFiles("r", ("a.png", "b.png")), "d", limits),
        Strips("r", ("a",), "d", limits),
        VectorFile("u", limits=limits),
    )
    for source in sources:
        assert pickle.loads(pickle.dumps(source)).limits == limits
    assert sources[0].taken(np.array([1])).limits == limits
