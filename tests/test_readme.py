"""The README and the guide to the benchmarks are true: commands run, the example works, and the README is short."""

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "raybench" / "benchmarks" / "README.md").read_text()


def blocks(language, text=README):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_it_is_under_150_lines():
    assert len(README.splitlines()) < 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the commands run: the demo's data are where `make demo` leaves them."""
    from raybench.demo.hpatches import make_hpatches

    folder = tmp_path_factory.mktemp("readme")
    make_hpatches(folder / "runs/demo/data/hpatches", patches=15)
    return folder


@pytest.fixture(scope="module")
def all_data(folder, copies, landmarks):
    from raybench.demo.own_images import make_own_images
    from raybench.demo.tss import make_tss

    make_tss(folder / "runs/demo/data/tss")
    make_own_images(folder / "runs/demo/data/own")
    (folder / "runs/demo/data/copies").symlink_to(copies)
    (folder / "runs/demo/data/landmarks").symlink_to(landmarks)
    return folder


def call(command, folder):
    words = command.replace("raybench ", f"{sys.executable} -m raybench ", 1)
    return subprocess.run(words, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=200)


@pytest.mark.slow
@pytest.mark.ray(own=True)
@pytest.mark.parametrize("text", [README, GUIDE], ids=["README", "guide"])
def test_its_commands_run(all_data, text):
    commands = [line for block in blocks("bash", text) for line in block.replace("\\\n", " ").strip().splitlines()]
    assert len(commands) >= 3
    for command in commands:
        said = call(command, all_data)
        assert said.returncode == 0, f"{command}\n{said.stderr}"
    if text == README:
        assert "<span>2 runs</span>" in (all_data / "runs/both.html").read_text()


def test_its_descriptor_works(folder):
    (example,) = blocks("python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 15
    (folder / "mine.py").write_text(example)
    data = "runs/demo/data/hpatches"
    command = f"raybench run hbench-classification --data {data}/hpatches --benchmarks {data}/benchmarks"
    said = call(f"{command} --descriptor mine.py:Gradients --out runs/mine --ray off", folder)
    assert said.returncode == 0, said.stderr


def test_the_rows_of_its_table_stand_in_the_order_of_the_literature():
    """Sift above resize above meanstd in every column; the figures themselves are of a run of `make demo`."""
    rows = [line for line in README.splitlines() if re.match(r"\| (meanstd|resize|sift) \|", line)]
    figures = [[float(cell) for cell in row.strip("|").split("|")[1:]] for row in rows]
    assert len(figures) == 3
    for lower, higher in itertools.pairwise(figures):
        assert all(a < b for a, b in zip(lower, higher, strict=True))


def test_every_file_that_the_architecture_page_names_is_there():
    page = (ROOT / "raybench" / "README.md").read_text()
    named = set(re.findall(r"`([a-z_/0-9]+(?:\.py|/))`", page))
    assert len(named) > 25
    assert [name for name in named if not ((ROOT / "raybench" / name).exists() or (ROOT / name).exists())] == []
