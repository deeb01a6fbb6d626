"""Options of `run` and `check`, made from the benchmarks' dataclasses; `--config` files; and how both become jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from raybench import storage
from raybench.benchmarks.job import Benchmark, Job
from raybench.benchmarks.options import Option
from raybench.errors import ConfigError, suggestion
from raybench.runs.jobs import Settings, make_job, options_for

METAVARS = {"descriptor": "SPEC", "patience": "DURATION", "ray": "ADDRESS|local|off"}
MOST_CONFIG_BYTES, MOST_CONFIG_VALUES = 2**16, 2**12
NOT_IN_CONFIG = ("config", "help", "debug")


def command_options(members: Sequence[Benchmark], out_required: bool) -> tuple[list[click.Option], dict[str, str]]:
    """The options of a benchmark, or of several at once, for click; and the group of each."""
    known = {one.key: one for member in members for one in options_for(member)}
    options = [_click_option(one, required=one.key == "out" and out_required) for one in known.values()]
    config = click.Option(
        ["--config"],
        is_eager=True,
        expose_value=False,
        callback=_config,
        metavar="FILE.yaml",
        help="the same keys; flags win",
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


def _config(ctx: click.Context, _: click.Parameter, file: str | None) -> None:
    """Values of `--config FILE.yaml` become defaults; flags win."""
    if file is None:
        return
    import yaml

    try:
        text = storage.read_start(storage.checked(file), MOST_CONFIG_BYTES + 1)
        values = yaml.safe_load(text) if len(text) <= MOST_CONFIG_BYTES else None
    except FileNotFoundError:
        raise ConfigError(f"--config {file}: does not exist") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # numbers and dates are parsed, too
        raise ConfigError(f"--config {file}: no YAML ({' '.join(str(error).split())})") from None
    if len(text) > MOST_CONFIG_BYTES or _is_beyond(values, MOST_CONFIG_VALUES):
        most = f"{MOST_CONFIG_BYTES:,} bytes and {MOST_CONFIG_VALUES:,} values (each use of an alias counts)"
        raise ConfigError(f"--config {file}: more than {most}; expected `option: value` lines")
    if not isinstance(values, dict):
        raise ConfigError(f"--config {file}: expected `option: value` lines")
    known = {parameter.name: parameter for parameter in ctx.command.params if parameter.name}
    for key in values:
        name = str(key).replace("-", "_")
        if name not in known or name in NOT_IN_CONFIG:
            raise ConfigError(f"--config {file}: unknown key {key}{suggestion(name, known)}")
        if isinstance(values[key], list) and not known[name].multiple:
            raise ConfigError(f"--config {file}: {key} is a list; expected one value")
    given = {str(key).replace("-", "_"): value for key, value in values.items()}
    ctx.default_map = {name: _plain(value, known[name]) for name, value in given.items()}


def _is_beyond(value: Any, most: int) -> bool:
    """Whether a value holds more than so many, its aliases written out; one that holds itself does."""
    waiting, count = [value], 0
    while waiting and count <= most:
        one = waiting.pop()
        count += 1
        waiting += [*one.keys(), *one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
    return count > most


def _plain(value: Any, parameter: click.Parameter) -> Any:
    if parameter.multiple and not isinstance(value, list):
        return [value]
    return json.dumps(value) if isinstance(value, dict) else value


def jobs_of(members: Sequence[Benchmark], given: dict[str, Any]) -> tuple[list[Job[Any]], Settings]:
    """The job of a benchmark; or of each of a family, in its own folder below `--out`, over one store."""
    objects = [one for member in members for one in options_for(member) if one.kind is dict]
    given = {**given, **{one.key: _json_object(one, given[one.key]) for one in objects}}
    if len(members) == 1:
        job, settings = make_job(members[0], given)
        return [job], settings
    out, jobs = given["out"] or "", []
    shared = {"store": given["store"] or (storage.join(out, "stages") if out else None)}
    for member in members:
        own = {one.key for one in options_for(member)}
        values = {key: value for key, value in {**given, **shared}.items() if key in own}
        job, settings = make_job(member, {**values, "out": storage.join(out, member.name) if out else None})
        jobs.append(job)
    return jobs, settings


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
