"""The last lines of the demo: what to type next, and how the command is found."""

import shlex
import sys
from pathlib import Path

import pytest


@pytest.fixture
def finished(raybench, tmp_path, monkeypatch):
    """What the demo says once its tour is over, called in a folder that holds a virtual environment."""
    monkeypatch.setattr("raybench.demo.tour.run_demo", lambda out, settings: ([], out / "report.html"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/activate").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / ".venv/bin/python"))
    return lambda: raybench("demo", "--out", "runs/demo")


def test_a_newcomer_is_told_how_raybench_is_found(finished, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert "  source .venv/bin/activate  # once per terminal" in finished().err


def test_who_has_raybench_on_the_path_is_told_a_command_only(finished, monkeypatch, tmp_path):
    command = tmp_path / "raybench"
    command.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = finished().err
    assert "activate" not in told
    words = shlex.split(told[told.index("raybench run") :].replace("\\\n", " "))
    assert words[:3] == ["raybench", "run", "hbench-classification"]
    assert Path(words[words.index("--data") + 1]) == Path("runs/demo/data/hpatches/hpatches")
