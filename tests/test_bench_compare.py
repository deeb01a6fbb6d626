"""What `make bench-compare` says of two files of the bench."""

import json
import subprocess
import sys

import pytest

from tests.perf.compare import compared
from tests.perf.figures import Best, Figure, Measured, Memory
from tests.perf.records import record_of

MACHINE = {"cores": 2, "cpu": "a CPU", "versions": {"numpy": "2"}, "commit": "0123456789ab", "modified": False}


def file_of(*figures, **machine):
    told = [{"bench": "search", **record_of(figure)} for figure in figures]
    return {"machine": MACHINE | machine, "started": "2026-11-18T04:00:00Z", "load": [0.5, 1.5], "figures": told}


def figure(*ours, baseline=(4.0, 4.04, 3.98), what="10 x 10"):
    return Figure(what, Best(ours), "faiss", Best(baseline))


def lines(a, b):
    """All but the two lines on machines."""
    return list(compared(a, b))[2:]


def test_the_same_numbers_with_some_noise_are_no_change():
    found = lines(file_of(figure(2.0, 2.1, 2.05)), file_of(figure(2.08, 2.02, 2.11)))
    assert found == ["no change beyond noise", "1 figures compared, 0 changed"]


def test_a_figure_that_became_slower_is_named_with_its_percent():
    found = lines(file_of(figure(2.0, 2.02, 1.99)), file_of(figure(2.6, 2.63, 2.59)))
    assert found == [
        "search: 10 x 10: 30% slower (2 -> 2.6 s, faiss 4 -> 4 s; noise 5%)",
        "1 figures compared, 1 changed",
    ]


def test_a_figure_that_became_faster_is_named():
    assert "50% faster" in lines(file_of(figure(2.0, 2.0, 2.0)), file_of(figure(1.0, 1.0, 1.0)))[0]


def test_a_machine_that_slowed_both_alike_changed_nothing():
    slowed = figure(2.6, 2.6, 2.6, baseline=(5.2, 5.2, 5.2))
    assert lines(file_of(figure(2.0, 2.0, 2.0)), file_of(slowed))[0] == "no change beyond noise"


def test_repeats_that_differ_among_themselves_hide_what_is_smaller():
    wild = figure(2.0, 2.0, 3.0, baseline=(4.0, 4.0, 4.0))
    assert lines(file_of(wild), file_of(figure(2.6, 2.6, 2.6)))[0] == "no change beyond noise"


@pytest.mark.parametrize(("after", "changed"), [(1.15, False), (1.3, True)])
def test_a_number_that_was_taken_once_must_change_by_more_than_a_fifth(after, changed):
    found = lines(file_of(Memory("peak", 1_000, 2_000)), file_of(Memory("peak", round(1_000 * after), 2_000)))
    assert ("search: peak: 30% more, which is worse" in found[0]) == changed


def test_more_of_a_rate_is_better():
    slow, fast = (file_of(Measured("decode", "images/s", [rate] * 3)) for rate in (50, 100))
    assert lines(slow, fast)[0].startswith("search: decode: 100% more, which is better (50 -> 100 images/s")


def test_figures_of_one_file_alone_are_listed():
    found = lines(file_of(figure(2.0), figure(1.0, what="gone")), file_of(figure(2.0), figure(1.0, what="new")))
    assert found[-2:] == ["only in A: search: gone", "only in B: search: new"]


def test_another_machine_is_said_at_the_top():
    found = list(compared(file_of(figure(2.0)), file_of(figure(2.0), cores=4)))
    assert found[2] == "warning: another cores: 2 in A, 4 in B"


def test_the_command_reads_two_files(tmp_path):
    for name, seconds in (("a", 1.0), ("b", 2.0)):
        (tmp_path / f"{name}.json").write_text(json.dumps(file_of(figure(seconds, seconds, seconds))))
    command = [sys.executable, "-m", "tests.perf.compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "search: 10 x 10: 100% slower" in said


def test_a_scaled_best_keeps_its_repeats():
    scaled = Best([2.0, 1.0]) * 3 / 2
    assert (scaled, scaled.repeats) == (1.5, (3.0, 1.5))
