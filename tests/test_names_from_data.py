"""Names as an attacker chooses them, of files, folders and tasks, through whole runs: they stay names.

In paths, CSV files, pages and on the terminal, of `check`, `run` and `report` alike.
"""

import csv
import html.parser
import json
import os
import re
import shutil
import sys

import pytest
from conftest import GOLDEN

from raybench.visible import visible

NASTY = [
    "comma,and space",
    'quote"d',
    "line\nerror: end",
    "carriage\rreturn",
    "tab\there",
    "\x1b]0;title\x07\x1b[31mred",
    "\u202etxt.exe",
    "<script>alert(1)<",
    "' onload='alert(1)",
    "--><img src=x onerror=alert(1)>",
    "=HYPERLINK(1)",
    "@SUM(1)",
    "-1",
    "{name}{item.__class__}",
    "%s%n",
    "back\\slash",
    "..\\..\\up",
    "...",
    "~",
    "$(touch x)",
    "ünï\u0301",
]
NASTY_FILES = [name for name in NASTY if not name.startswith(".")]  # hidden ones are passed over
TSS = GOLDEN / "tss/data/Dataset/MINI"
HBENCH = GOLDEN / "hbench_classification/data"


class Elements(html.parser.HTMLParser):
    """The elements of a page with the names of their attributes, and its text."""

    def __init__(self):
        super().__init__()
        self.found, self.text = [], ""

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, *(name for name, _ in attributes)))

    def handle_data(self, data):
        self.text += data

    def handle_comment(self, data):
        self.found.append("comment")


def elements(file):
    parsed = Elements()
    parsed.feed(file.read_text())
    parsed.close()
    return parsed


def rows(file):
    with file.open(newline="") as opened:
        return list(csv.DictReader(opened))


def assert_plain(said):
    """Nothing on the terminal but letters and our own line ends."""
    for text in (said.out, said.err):
        assert visible(text.replace("\n", "")) == text.replace("\n", "")
        text.encode()


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def outputs(folder):
    return {name for name in files_below(folder) if not name.startswith("stages/")}


@pytest.fixture
def pairs(tmp_path):
    """A TSS tree: each pair of one group has a nasty name, each of another a plain one."""
    given = sorted(TSS.iterdir())[0]
    for number, name in enumerate(NASTY_FILES):
        shutil.copytree(given, tmp_path / "nasty" / NASTY_FILES[5] / name)
        (tmp_path / "nasty" / NASTY_FILES[5] / name / "pair.txt").write_text('Image1,Image2\n"<b>\x1b[1m","a""b"\n')
        shutil.copytree(given, tmp_path / "plain" / "group" / f"pair{number:02d}")
    return tmp_path


def test_pairs_of_images_with_nasty_names(raybench, pairs):
    def run(tree):
        out = pairs / "runs" / tree
        given = ("--data", pairs / tree, "--descriptor", "zero", "--ray", "off", "--visualize")
        assert_plain(raybench("check", "tss", *given))
        said = raybench("run", "tss", *given, "--out", out)
        assert said.code == 0, said.err
        assert_plain(said)
        return out

    nasty, plain = run("nasty"), run("plain")
    assert sorted(row["pair"] for row in rows(nasty / "tables/per_pair.csv")) == sorted(2 * NASTY_FILES)
    assert {row["Row"].removesuffix("_1to2") for row in rows(nasty / NASTY_FILES[5] / "scores.csv")} >= set(NASTY_FILES)
    assert len(files_below(nasty)) == len(files_below(plain))
    assert sorted(path.name for path in pairs.iterdir()) == ["nasty", "plain", "runs"]
    page, expected = elements(nasty / "report.html"), elements(plain / "report.html")
    assert page.found == expected.found
    assert "\\x1b[31mred" in page.text and "\x1b" not in page.text and "\u202e" not in page.text
    said = raybench("report", nasty, "--out", pairs / "page.html")
    assert said.code == 0, said.err
    assert_plain(said)
    assert elements(pairs / "page.html").found == expected.found


def test_what_is_wrong_with_pairs_is_one_line_each_whatever_their_names(raybench, pairs):
    for name in NASTY_FILES:
        (pairs / "nasty" / NASTY_FILES[5] / name / "flip_gt.txt").write_text("\x1b[2J")
    said = raybench("check", "tss", "--data", pairs / "nasty", "--descriptor", "zero")
    assert said.code == 2 and len(said.errors) == len(said.err.splitlines()) == len(NASTY_FILES)
    assert_plain(said)


def test_tasks_and_sequences_with_nasty_names(raybench, tmp_path):
    def run(tree, tasks, sequence):
        folder = tmp_path / tree
        shutil.copytree(HBENCH, folder)
        (task, *_) = sorted((folder / "benchmarks").rglob("*.benchmark"))
        for name in tasks:
            shutil.copy(task, task.with_name(f"{name}.benchmark"))
            shutil.copy(task.with_suffix(".labels"), task.with_name(f"{name}.labels"))
        first = sorted(path.name for path in (folder / "hpatches").iterdir())[0]
        (folder / "hpatches" / first).rename(folder / "hpatches" / sequence)
        for file in (folder / "benchmarks").rglob("*.pairs"):
            file.write_text(file.read_text().replace(f"{first}.", f"{sequence}."))
        given = ("--data", folder / "hpatches", "--benchmarks", folder / "benchmarks", "--descriptor", "meanstd")
        assert_plain(raybench("check", "hbench-classification", *given))
        said = raybench("run", "hbench-classification", *given, "--out", tmp_path / "runs" / tree, "--ray", "off")
        assert said.code == 0, said.err
        assert_plain(said)
        return tmp_path / "runs" / tree

    nasty = run("nasty", NASTY_FILES, "v_<b>\x1b[1m{x}\u202e'")
    plain = run("plain", [f"task{number:02d}" for number in range(len(NASTY_FILES))], "v_first")
    ours, others = (rows(out / "hbench_classification.csv") for out in (nasty, plain))
    assert {row["task"] for row in ours} >= set(NASTY_FILES) and len(ours) == len(others)
    assert {row["ap"] for row in ours} == {row["ap"] for row in others}
    assert len(files_below(nasty)) == len(files_below(plain))
    assert set(elements(nasty / "report.html").found) == set(elements(plain / "report.html").found)
    assert len(elements(nasty / "report.html").found) == len(elements(plain / "report.html").found)


def test_images_with_nasty_names(raybench, copies, tmp_path):
    def run(tree, names):
        folder = tmp_path / tree
        shutil.copytree(copies / "disc", folder)
        images = [path for path in sorted((folder / "val_ref").iterdir()) if path.stem not in matched][: len(names)]
        for path, name in zip(images, names, strict=True):
            path.rename(path.with_name(name + path.suffix))
        given = ("--data", folder, "--descriptor", "thumbnail", "--ray", "off", "--codecs", "Flat")
        assert_plain(raybench("check", "disc2021", *given))
        said = raybench("run", "disc2021", *given, "--export-descriptors", "true", "--out", tmp_path / "runs" / tree)
        assert said.code == 0, said.err
        assert_plain(said)
        return tmp_path / "runs" / tree

    (truth,) = copies.rglob("*groundtruth*.csv")
    matched = {word for line in truth.read_text().split() for word in line.split(",")}
    nasty = run("nasty", NASTY_FILES)
    plain = run("plain", [f"X{number:06d}" for number in range(len(NASTY_FILES))])
    assert {row["reference_id"] for row in rows(nasty / "results/predictions.csv")} & set(NASTY_FILES)
    assert (nasty / "disc_metrics.csv").read_bytes() == (plain / "disc_metrics.csv").read_bytes()
    assert outputs(nasty) == outputs(plain)
    assert elements(nasty / "report.html").found == elements(plain / "report.html").found
    again = ("--results", nasty / "results/predictions.csv", "--data", tmp_path / "nasty", "--ray", "off")
    said = raybench("run", "disc2021", *again, "--out", tmp_path / "runs/again")
    assert said.code == 0, said.err
    first, read_back = rows(nasty / "disc_metrics.csv")[0], rows(tmp_path / "runs/again/disc_metrics.csv")[0]
    assert first["uAP"] == read_back["uAP"]


@pytest.mark.parametrize("kind", ["images", "pairs", "strips", "tasks"])
def test_a_file_name_that_is_no_text_is_refused_in_one_line(raybench, tmp_path, copies, kind):
    def put(source, folder, name):
        target = os.path.join(os.fsencode(folder), name)  # noqa: PTH118 (bytes)
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120
        (shutil.copytree if source.is_dir() else shutil.copy)(os.fsencode(source), target)

    if kind == "images":
        shutil.copytree(copies / "disc", tmp_path / "data")
        put(next((copies / "disc/val_ref").iterdir()), tmp_path / "data/val_ref", b"caf\xe9.jpg")
        given = ("disc2021", "--data", tmp_path / "data", "--descriptor", "thumbnail")
    elif kind == "pairs":
        put(sorted(TSS.iterdir())[0], tmp_path / "data", b"group/caf\xe9")
        given = ("tss", "--data", tmp_path / "data", "--descriptor", "zero")
    else:
        shutil.copytree(HBENCH, tmp_path / "data")
        if kind == "strips":
            put(next((HBENCH / "hpatches").rglob("*.png")), tmp_path / "data/hpatches", b"caf\xe9/ref.png")
        else:
            task = next((HBENCH / "benchmarks").rglob("*.benchmark"))
            inside = task.relative_to(HBENCH).parent
            put(task, tmp_path / "data" / inside, b"caf\xe9.benchmark")
        where = ("--data", tmp_path / "data/hpatches", "--benchmarks", tmp_path / "data/benchmarks")
        given = ("hbench-classification", *where, "--descriptor", "meanstd")
    said = raybench("check", *given)
    assert said.code == 2 and len(said.errors) == 1, said.err
    assert "caf\\udce9" in said.errors[0] and "is no UTF-8; rename it" in said.errors[0]
    assert_plain(said)


def test_a_folder_whose_name_is_no_text_holds_a_run_as_any_other(raybench, tmp_path):
    data = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(HBENCH, data)
    given = (
        "--data",
        data / "hpatches",
        "--benchmarks",
        data / "benchmarks",
        "--descriptor",
        "meanstd",
        "--ray",
        "off",
    )
    said = raybench("run", "hbench-classification", *given, "--out", data / "out")
    assert said.code == 0, said.err
    assert_plain(said)
    assert json.loads((data / "out/manifest.json").read_bytes())["arguments"]["data"] == str(data / "hpatches")
    again = raybench("run", "hbench-classification", *given, "--out", data / "out")
    assert "done already" in again.err


@pytest.mark.parametrize("key", ["../outside/ref.png", "a/../../outside/ref.png", "seq//ref.png"])
def test_keys_of_an_object_store_that_lead_elsewhere_are_refused(raybench, tmp_path, monkeypatch, key):
    """Object stores take any key; no server for tests that keeps files on disk does, so the listing is made up."""
    from raybench import storage
    from raybench.errors import Problems
    from raybench.sources.file_names import check_names

    with pytest.raises(Problems, match="leads elsewhere; rename it"):
        check_names("s3://bucket", [entry.name for entry in [storage.Entry(key, 1, "x")]])


def some_bytes(name):
    return b"content"


@pytest.mark.parametrize("name", ["../up", "a/../../up", "/etc/passwd", "a//b", ".", "zero\0byte"])
def test_no_output_file_leaves_its_folder(tmp_path, name):
    from raybench.engine.inline import InlineExecutor
    from raybench.engine.progress import Observer
    from raybench.engine.run import Run
    from raybench.errors import DataError

    run = Run(str(tmp_path / "out"), str(tmp_path / "store"), InlineExecutor(Observer()), Observer())
    with pytest.raises(DataError, match="inside --out"):
        run.write("{name}", some_bytes, [name])
    assert not run.files and not (tmp_path / "up").exists()


def test_a_task_file_that_names_files_elsewhere_is_refused(raybench, tmp_path):
    shutil.copytree(HBENCH, tmp_path / "data")
    task = next((tmp_path / "data/benchmarks").rglob("*.benchmark"))
    task.write_text("../../../secret.pairs\n")
    given = ("--data", tmp_path / "data/hpatches", "--benchmarks", tmp_path / "data/benchmarks")
    said = raybench("run", "hbench-classification", *given, "--descriptor", "meanstd", "--out", tmp_path / "out")
    assert said.code == 2 and "secret" in said.err and not (tmp_path / "out").exists()


def test_an_error_of_the_users_class_can_not_command_the_terminal(raybench, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shouting.py").write_text("raise ValueError('\\x1b[2Jone\\ntwo')\n")
    for more in ((), ("--debug",)):
        said = raybench("check", "tss", "--data", TSS.parent, "--descriptor", "shouting:Mine", *more)
        assert said.code == 2 and "\\x1b[2Jone" in said.err
        assert_plain(said)


def test_words_of_a_picture_stay_inside_their_attribute():
    from raybench.benchmarks.job import ReportPicture
    from raybench.runs.manifest import Manifest
    from raybench.runs.report.page import Shown, write_report

    def page(words):
        manifest = Manifest("tss", {"data": words}, {}, {}, notes=[words])
        parsed = Elements()
        parsed.feed(write_report([Shown(manifest, [], [ReportPicture(words, words, b"")])], title=words))
        return parsed.found

    assert all(page(name) == page("plain") for name in [*NASTY, 'a" onload="b', "</script></style></pre>"])


@pytest.mark.parametrize("name", ["a,b", 'a"b', "a\nb"])
def test_no_task_file_is_made_of_a_sequence_that_would_break_it(raybench, tmp_path, name):
    shutil.copytree(HBENCH / "hpatches", tmp_path / "data")
    sorted((tmp_path / "data").iterdir())[0].rename(tmp_path / "data" / name)
    said = raybench("tasks", "hbench", "--data", tmp_path / "data", "--out", tmp_path / "out")
    assert said.code == 2 and "as no task file can; rename it" in said.err and not (tmp_path / "out").exists()
    assert_plain(said)


def test_progress_on_a_terminal_shows_names_as_text(capsys):
    from raybench.engine.progress_bar import Bar

    Bar().said("a\x1b[31m\u202eb")
    assert re.sub(r"\s", "", capsys.readouterr().err) == "a\\x1b[31m\\u202eb"
