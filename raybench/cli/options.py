"""Options of `run` and `check`, made from the benchmarks' dataclasses, and how flags become jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from raybench.benchmarks.job import Benchmark, Job
from raybench.benchmarks.options import Option
from raybench.errors import ConfigError
from raybench.runs.jobs import Settings, make_jobs, options_for

METAVARS = {"descriptor": "SPEC", "fail_below": "FIGURE=X,…", "patience": "DURATION", "ray": "ADDRESS|local|off"}


def command_options(members: Sequence[Benchmark], out_required: bool) -> tuple[list[click.Option], dict[str, str]]:
    """The options of a benchmark, or of several at once, for click; and the group of each."""
    known = {one.key: one for member in members for one in options_for(member)}
    options = [_click_option(one, required=one.key == "out" and out_required) for one in known.values()]
    config = click.Option(
        ["--config"],
        is_eager=True,
        expose_value=False,
        callback=lambda ctx, _, file: _config(members, ctx, file),
        metavar="FILE",
        help="YAML file with the same keys, or the manifest.json of a run, for its arguments; flags win",
    )
    debug = click.Option(["--debug"], is_flag=True, expose_value=False, help="show tracebacks")
    return [*options, config, debug], {one.key: one.group for one in known.values()}


def _click_option(one: Option, required: bool) -> click.Option:
    text = one.text if required else f"{one.text}{_default_words(one)}"
    names = [f"--{one.name}"]
    if one.kind is bool:  # `--flag` alone, or as the published tools have it `--flag=true`, `--flag false`
        return click.Option(
            names, type=bool, is_flag=False, flag_value=True, default=one.default, metavar="[true|false]", help=text
        )
    default = None if one.default in ("", {}) else one.default
    return click.Option(
        names,
        type=_kind(one),
        default=default,
        multiple=one.several,
        required=required,
        metavar=_metavar(one),
        help=text,
        shell_complete=_files if one.is_uri else None,
    )


def _files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """For shells, which know files themselves."""
    return [CompletionItem(incomplete, type="file")]


def _default_words(one: Option) -> str:
    plain = "" if one.default in (None, "", (), {}) else str(one.default)
    words = one.default_words or (plain.lower() if one.kind is bool else plain)
    return f" [default: {words or 'none'}]"


def _kind(one: Option) -> Any:
    if one.choices:
        return click.Choice(one.choices)
    if one.least is not None:
        return click.IntRange(min=one.least)
    return str if one.kind is dict else one.kind


def _metavar(one: Option) -> str | None:
    if one.choices:  # written out, since click would show the choices with - for _, as it compares them
        return f"[{'|'.join(one.choices)}]"
    kinds = {dict: "JSON", int: "N", float: "X"}
    return "URI" if one.is_uri else METAVARS.get(one.key) or kinds.get(one.kind)


def _config(members: Sequence[Benchmark], ctx: click.Context, file: str | None) -> None:
    """Values of `--config FILE` become defaults; flags win."""
    if file is not None:
        from raybench.cli.config_files import read_config

        values = read_config(members, file)
        ctx.default_map = {
            key: json.dumps(value) if isinstance(value, dict) else value for key, value in values.items()
        }


def jobs_of(members: Sequence[Benchmark], given: dict[str, Any]) -> tuple[list[Job[Any]], Settings]:
    """The jobs that these flags ask for, and the settings under which they run."""
    objects = [one for member in members for one in options_for(member) if one.kind is dict]
    return make_jobs(members, {**given, **{one.key: _json_object(one, given[one.key]) for one in objects}})


def _json_object(asked: Option, text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--{asked.name}: no JSON ({error})") from None
    if not isinstance(value, dict):
        raise ConfigError(f'--{asked.name}: expected a JSON object such as {{"size": 32}}')
    return value
