"""`raybench list` and the help of a benchmark: folders, sources, and examples that are right."""

import re
import shlex
from pathlib import Path

import click
import pytest

from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.guides import GUIDES, examples_of
from raybench.cli.benchmarks import run
from raybench.cli.options import jobs_of
from raybench.demo.tour import STOPS, _job

NAMES = [*BENCHMARKS, *FAMILIES]


@pytest.mark.parametrize("name", NAMES)
def test_help_ends_with_two_examples(raybench, name):
    shown = raybench("run", name, "--help").out
    told = shown[shown.index("Examples:\n") + len("Examples:\n") :]
    commands = [shlex.split(command) for command in told.replace("\\\n", " ").splitlines()]  # as a shell reads them
    assert commands == [shlex.split(f"raybench run {name} {given}") for given in examples_of(name)]
    assert len(commands) == 2 and max(map(len, told.splitlines())) <= 100


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_commands_whose_options_are_known_and_fit_together(name):
    members = [BENCHMARKS[member].open() for member in FAMILIES.get(name, (name,))]
    for given in examples_of(name):
        with click.Context(run, info_name="run") as parent:
            command = run.get_command(parent, name)
            context = command.make_context(name, shlex.split(given), parent)
        assert jobs_of(members, dict(context.params))[0]


def test_examples_on_the_demos_data_name_folders_that_the_demo_makes():
    made = set()
    for name, subjects in STOPS.items():
        options = vars(_job(name, Path("runs/demo"), subjects[0]).options).values()
        made |= {value.partition("runs/demo/")[2] for value in options if isinstance(value, str)}
    named = {found for name in NAMES for given in examples_of(name) for found in re.findall(r"runs/demo/(\S+)", given)}
    assert len(named) >= 6
    assert named <= made


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmarks_folders_are_shown_as_a_tree_with_where_data_come_from(raybench, name):
    shown = raybench("list", name)
    assert shown.code == 0
    assert "└── " in shown.out
    assert re.search(r"https://\S+\.\S+/", shown.out)
    options = set(re.findall(r"--[a-z-]+", "".join(line[:16] for line in GUIDES[name].tree.splitlines())))
    assert options <= {
        name for option in run.get_command(None, name).get_params(click.Context(run)) for name in option.opts
    }


def test_trees_keep_to_a_narrow_terminal(raybench, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = raybench("list", "tss").out
    tree = shown[shown.index("--data DIR") : shown.index("\ndata\n")]
    assert max(map(len, tree.splitlines())) <= 60


def test_an_unknown_name_is_one_line_with_a_suggestion(raybench):
    said = raybench("list", "copyday")
    assert said.code == 2
    assert len(said.errors) == 1 and "did you mean copydays?" in said.errors[0]
