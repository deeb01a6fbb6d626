"""Options of the command line, and how they become jobs. What an option means to a benchmark, the benchmark says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import click
import yaml

from raybench import storage
from raybench.benchmarks.job import Benchmark, Job, Option
from raybench.errors import ConfigError, nearest
from raybench.runs.evaluate import Settings

POSITIVE = click.IntRange(min=1)

INPUTS = {
    "data": "folder (any URI) of the data set in its published layout",
    "benchmarks": "folder that holds the .benchmark files, or a parent of one such folder",
    "tasks": "folder that holds the split CSVs; splits.json is there or in splits/",
    "descriptor": "built-in name, module:Class of your own, or a model file KIND:URI (see `raybench list`)",
    "descriptor-args": "JSON object with arguments for the constructor of your module:Class",
    "features": "folder of descriptors on disk (what is in it, the README says)",
    "results": "finished results in the published format: a folder, or a predictions.csv",
}


def _config(ctx: click.Context, _: click.Parameter, file: str | None) -> None:
    """Values of `--config FILE.yaml` become defaults; flags win."""
    if file is None:
        return
    try:
        values = yaml.safe_load(storage.read(storage.checked(file)))
    except FileNotFoundError:
        raise ConfigError(f"--config {file}: does not exist") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"--config {file}: no YAML ({' '.join(str(error).split())})") from None
    if not isinstance(values, dict):
        raise ConfigError(f"--config {file}: expected `option: value` lines")
    known = {parameter.name: parameter for parameter in ctx.command.params if parameter.name}
    for key in values:
        name = str(key).replace("-", "_")
        if name not in known or name in ("config", "help", "debug"):
            raise ConfigError(f"--config {file}: unknown key {key}{nearest(name, known)}")
        if isinstance(values[key], list) and not known[name].multiple:
            raise ConfigError(f"--config {file}: {key} is a list; expected one value")
    given = {str(key).replace("-", "_"): value for key, value in values.items()}
    ctx.default_map = {name: _plain(value, known[name]) for name, value in given.items()}


def _plain(value: Any, parameter: click.Parameter) -> Any:
    if parameter.multiple and not isinstance(value, list):
        return [value]
    return json.dumps(value) if isinstance(value, dict) else value


def input_options(benchmark: Benchmark) -> list[click.Option]:
    metavars = {"descriptor": "SPEC", "descriptor-args": "JSON"}
    options = [
        click.Option([f"--{name}"], help=INPUTS[name], metavar=metavars.get(name, "URI")) for name in benchmark.inputs
    ]
    for option in benchmark.options:
        kind: Any = click.Choice(option.choices) if option.choices else option.kind
        names = [f"--{option.name}"]
        if option.kind is bool:  # `--flag` alone, or as the published tools have it `--flag=true`, `--flag false`
            truth, help_text = bool(option.default), f"{option.help} [default: {str(bool(option.default)).lower()}]"
            options.append(
                click.Option(
                    names,
                    type=bool,
                    is_flag=False,
                    flag_value=True,
                    default=truth,
                    metavar="[true|false]",
                    help=help_text,
                )
            )
        else:
            several = option.is_list
            # Written out, since click would show the choices with - for _, as it compares them.
            metavar = "URI" if option.is_uri else f"[{'|'.join(option.choices)}]" if option.choices else None
            options.append(
                click.Option(
                    names, type=kind, default=option.default, multiple=several, help=option.help, metavar=metavar
                )
            )
    return options


def common_options(out_required: bool) -> list[click.Option]:
    make: Callable[..., click.Option] = click.Option
    return [
        make(["--out"], required=out_required, metavar="URI", help="output folder; the same one resumes"),
        make(["--store"], metavar="URI", help="where stages are kept [default: <out>/stages]; may be shared by runs"),
        make(["--ray"], metavar="ADDRESS|local|off", help="default: join RAY_ADDRESS if set, else a local Ray"),
        make(["--device"], type=click.Choice(["auto", "gpu", "cpu"]), default="auto", show_default=True),
        make(["--gpus"], type=POSITIVE, help="ask for this many GPUs and wait for them [default: all there are]"),
        make(["--cpus"], type=POSITIVE, help="CPU workers [default: all there are]"),
        make(["--shard-size"], type=POSITIVE, help="items a shard [default: by stage]; never changes a figure"),
        make(["--batch-size"], type=POSITIVE, help="patches or images a descriptor sees at once"),
        make(["--seed"], type=click.IntRange(min=0), default=0, show_default=True),
        make(["--limit"], type=POSITIVE, help="a quick try on the first N items; the table says so"),
        make(["--progress"], type=click.Choice(["auto", "bar", "json", "none"]), default="auto", show_default=True),
        make(["--verify-inputs"], is_flag=True, help="digest images by content, not by size and time"),
        make(
            ["--on-bad-input"],
            type=click.Choice(["fail", "skip"]),
            default="fail",
            show_default=True,
            help="skip: leave out what can't be read, count it in the table, list it in the manifest",
        ),
        make(["--overwrite"], is_flag=True, help="replace another run's results in --out; the store stays"),
        make(
            ["--keep-stages"],
            type=bool,
            default=True,
            show_default=True,
            help="no: remove this run's stages at its end",
        ),
        make(
            ["--config"],
            is_eager=True,
            expose_value=False,
            callback=_config,
            metavar="FILE.yaml",
            help="the same keys; flags win",
        ),
        make(["--debug"], is_flag=True, expose_value=False, help="show tracebacks"),
    ]


def _job(benchmark: Benchmark, given: dict[str, Any]) -> tuple[Job, Settings]:
    uris = {"data", "benchmarks", "tasks", "features", "results", "out", "store"}
    uris |= {option.key for option in benchmark.options if option.is_uri}
    values: dict[str, Any] = {
        key: storage.checked(value) if key in uris and value else value for key, value in given.items()
    }
    out = values.pop("out") or ""
    own_store = storage.join(out, "stages") if out else ""
    store = values.pop("store") or own_store
    settings = Settings(
        ray=values.pop("ray") or ("auto" if os.environ.get("RAY_ADDRESS") else "local"),
        cpus=values.pop("cpus"),
        progress=values.pop("progress"),
        overwrite=values.pop("overwrite"),
        keep_stages=values.pop("keep_stages"),
    )
    if settings.ray == "off" and (values["gpus"] or settings.cpus):
        raise ConfigError("--ray off: runs in this process; --gpus and --cpus need a Ray")
    if values["gpus"] and values["device"] == "cpu":
        raise ConfigError("--gpus and --device cpu contradict each other; give one of them")
    for name in ("data", "features"):
        if out and values.get(name) and f"{out}/".startswith(f"{values[name]}/"):
            raise ConfigError(f"--out {out}: is inside --{name}; results would be taken for input")
    if not settings.keep_stages and store != own_store:
        raise ConfigError("--keep-stages no: the store is shared (--store), other runs may need its stages")
    values["skip_bad_input"] = values.pop("on_bad_input") == "skip"
    if values["skip_bad_input"] and not benchmark.can_skip:
        raise ConfigError(
            f"{benchmark.name}: --on-bad-input skip: a ranking of whole images has no figure without some of them; "
            "mend the input"
        )
    options = {option.key: _option_value(option, values.pop(option.key)) for option in benchmark.options}
    arguments = _json_object(values.pop("descriptor_args"))
    job = Job(benchmark.name, out=out, store=store, descriptor_args=arguments, options=options, **values)
    return job, settings


def _option_value(option: Option, value: Any) -> Any:
    return (",".join(map(str, value)) or None) if option.is_list else value


def _json_object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--descriptor-args: no JSON ({error})") from None
    if not isinstance(value, dict):
        raise ConfigError('--descriptor-args: expected a JSON object such as {"size": 32}')
    return value


def jobs_of(members: Sequence[Benchmark], given: dict[str, Any]) -> tuple[list[Job], Settings]:
    """The job of a benchmark; or of each of a family, in its own folder below `--out`, over one store."""
    if len(members) == 1:
        job, settings = _job(members[0], given)
        return [job], settings
    out, jobs = given["out"] or "", []
    own = {option.key for member in members for option in member.options}
    for member in members:
        left_out = own - {option.key for option in member.options}
        values = {key: value for key, value in given.items() if key not in left_out}
        values["store"] = given["store"] or (storage.join(out, "stages") if out else None)
        job, settings = _job(member, {**values, "out": storage.join(out, member.name) if out else None})
        jobs.append(job)
    return jobs, settings
