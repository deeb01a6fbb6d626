"""What a run says at its end: where the time went, what went wrong on the way, and how a cluster repeats it."""

import shlex
import subprocess

import pytest

from raybench.benchmarks import BENCHMARKS
from raybench.cli.ending import cluster_words, command_text, sums_line, time_table
from raybench.runs.jobs import options_for

RECORD = {"shards": 4, "found": 0, "computed": 4, "items": 40, "size_bytes": 1_000, "repaired": 0, "lost": 0}


def record(name, seconds, **other):
    return {"name": name, "seconds": seconds, "attempts": 4, **RECORD, **other}


def test_stages_of_a_name_are_added_up_and_short_ones_stand_together():
    records = [record("extract", 8.0), record("search", 1.0), record("fold", 0.01), record("search", 3.0, found=2)]
    records.append(record("write", 0.02))
    extract, search, others = time_table(records).rows
    assert extract == ("extract", 8.0, 40, 5.0, "1.0 kB", "")
    assert search == ("search", 4.0, 80, 20.0, "2.0 kB", "2 of 8")
    assert others == ("2 others", 0.03, None, None, "2.0 kB", "")


def test_a_column_for_what_was_found_stands_only_where_something_was():
    assert time_table([record("extract", 8.0)]).columns == ("stage", "seconds", "items", "items/s", "written")


def test_the_sums_tell_what_was_found_tried_again_lost_and_repaired_and_nothing_else():
    assert sums_line([record("extract", 8.0)], 9.54) == "9.5 s in all, 8.0 s of them in 1 stages; 1.0 kB written"
    worse = [record("a", 60.0, found=3, attempts=6, lost=5, repaired=1), record("b", 30.0)]
    assert sums_line(worse, 100.0) == (
        "1:40 min in all, 1:30 min of them in 2 stages; 2.0 kB written; 3 of 8 shards found in the store; "
        "2 shards tried again after a failure; 5 given out again after a lost worker; 1 broken shards repaired"
    )


def test_the_line_for_a_cluster_gives_the_same_arguments_through_both_shells(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"data": "a folder", "codecs": "Flat;PCAW32,L2norm,Flat", "score_norm": "1.0[0,2]", "out": "runs/x"}
    given |= {
        "preserve_aspect_ratio": False,
        "k": 20,
        "ray": "off",
        "progress": "bar",
        "cpus": 2,
        "descriptor": "m:C's",
    }
    words = cluster_words("disc2021", options_for(BENCHMARKS["disc2021"].open()), given)
    assert shlex.join(words[:11]) == "ray job submit --working-dir . -- python -m raybench run disc2021"
    # Ray joins what comes behind `--` by shlex, and a shell of the head reads that.
    printed = f"printf '%s\\n' {shlex.join(words)}"
    typed = subprocess.run(["sh", "-c", printed], capture_output=True, text=True, check=True).stdout.splitlines()
    assert typed == words
    options = dict(zip(words[11::2], words[12::2], strict=True))
    assert options == {
        "--data": f"{tmp_path}/a folder",
        "--codecs": "Flat;PCAW32,L2norm,Flat",
        "--score-norm": "1.0[0,2]",
        "--out": f"{tmp_path}/runs/x",
        "--preserve-aspect-ratio": "false",
        "--k": "20",
        "--descriptor": "m:C's",
    }


@pytest.mark.parametrize("words", [["run", "--data", "a b;c", "--out", "d", "--", "x"], ["run", "--data", "a --b"]])
@pytest.mark.parametrize("width", [None, 16, 200])
def test_a_command_in_lines_is_the_same_command(words, width):
    text = command_text(words, width)
    assert shlex.split(text.replace("\\\n", " ")) == words
    assert text.count("\n") <= (4 if width == 16 else 1)


GIVEN = ("--ray", "off", "--benchmarks")


@pytest.mark.parametrize("progress", ["lines", "none", "json"])
def test_a_run_tells_its_end_on_standard_error_to_people_only(golden, raybench, tmp_path, progress):
    out = tmp_path / "an out; $HOME"
    given = (golden / "benchmarks", "--results", golden / "results/block4", "--out", out)
    said = raybench("run", "hbench-classification", *GIVEN, *given, "--progress", progress)
    assert said.code == 0
    told = ["stage " in said.err, " in all, " in said.err, "ray job submit --working-dir . -- python" in said.err]
    assert told == [progress == "lines"] * 3
    assert "in all" not in said.out and said.out.splitlines()[-1] == f"report {out}/report.html"
    if progress == "lines":
        (line,) = [line for line in said.err.splitlines() if "ray job submit" in line]
        assert shlex.split(line)[-2:] == ["--out", str(out)]
