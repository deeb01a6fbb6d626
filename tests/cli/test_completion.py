"""Shells complete commands, benchmarks, options and choices by the scripts that `raybench completion` prints."""

import os
import shutil
import subprocess
import sys

import pytest

from raybench.cli.commands import exit_code


@pytest.fixture
def completed(monkeypatch, capsys):
    """What the command line answers to a shell that completes the last of these words."""

    def answer(*words):
        monkeypatch.setenv("_RAYBENCH_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(("raybench", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit) as end:
            exit_code([])
        assert end.value.code == 0
        return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines() if line]

    return answer


def test_commands_benchmarks_options_and_choices_are_completed(completed):
    assert "run" in completed("r") and "report" in completed("r")
    assert completed("run", "hpatches-") == ["hpatches-matching", "hpatches-retrieval", "hpatches-verification"]
    assert "copydays" in completed("list", "c")
    assert completed("run", "tss", "--auto") == ["--auto-flip"]
    assert completed("run", "tss", "--device", "") == ["auto", "gpu", "cpu"]
    assert completed("datasets", "h") == ["hpatches", "hbench-tasks", "hpatches-tasks"]
    assert completed("datasets", "check", "rp") == ["rparis6k"]
    assert completed("completion", "") == ["bash", "fish", "zsh"]


def test_words_that_are_no_commands_are_completed_by_nothing_and_without_an_error(completed):
    assert completed("rnu", "x") == []
    assert completed("run", "nope", "--x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_says_how_it_is_installed_and_is_one_for_its_shell(raybench, shell):
    said = raybench("completion", shell)
    assert said.code == 0
    assert f"# For good: raybench completion {shell} > ~/" in said.out
    assert f"_RAYBENCH_COMPLETE={shell}_complete" in said.out
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=said.out, text=True, check=True)


def test_bash_itself_completes_by_the_script(raybench, tmp_path):
    command = tmp_path / "raybench"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m raybench "$@"\n')
    command.chmod(0o755)
    (tmp_path / "script").write_text(raybench("completion", "bash").out)
    asked = "COMP_WORDS=(raybench run hbench-c); COMP_CWORD=2; _raybench_completion raybench; echo ${COMPREPLY[@]}"
    said = subprocess.run(
        ["bash", "-c", f"source {tmp_path}/script; {asked}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert said.stdout.strip() == "hbench-classification"
