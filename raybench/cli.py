"""The command line: parse, call the library, print. Options, outputs and exit codes are a contract (see the README).

Every option is accepted with `-` or `_`. A problem of the user's is one line on standard error and exit code 2; a shard
that failed for good is 3; an interrupt is 130 and says how to go on.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import yaml

from raybench import __version__, storage
from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.job import Benchmark, Job, Option
from raybench.descriptors import DESCRIPTORS, MODEL_FILES
from raybench.engine.manifest import read_manifest
from raybench.errors import ConfigError, InputError, ProblemList, ShardFailed, nearest
from raybench.evaluate import Settings, evaluate, evaluate_all, preflight_all, read_tables
from raybench.report.page import write_report
from raybench.sources import Strips, VectorFiles
from raybench.tasks import Sizes, by_sequence, hbench_tasks, hpatches_tasks

MOST_LINES = 50  # problems shown at once; a wrong folder can give thousands
POSITIVE = click.IntRange(min=1)

INPUTS = {
    "data": "folder (any URI) of the data set in its published layout",
    "benchmarks": "folder that holds the .benchmark files, or a parent of one such folder",
    "tasks": "folder that holds the split CSVs; splits.json is there or in splits/",
    "descriptor": "built-in name, module:Class of your own, or torchscript:URI",
    "descriptor-args": "JSON object with arguments for the constructor of your module:Class",
    "features": "folder of descriptors on disk: SEQ/IM.csv, .npy, .parquet or .h5",
    "results": "folder of finished .results files",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """The `raybench` command."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # `ray job stop` ends a run as Ctrl-C does
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str]) -> int:
    """Run one command and say what went wrong with it, if anything."""
    try:
        cli.main(arguments, prog_name="raybench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except (InputError, click.ClickException) as error:
        _say_problems(error)
        code = 2
    except ShardFailed as error:
        click.echo(f"error: {error}\nwhat is published stays; the same command goes on from there", err=True)
        code = 3
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted; the same command resumes: what is published is not computed again", err=True)
        return 130
    except Exception as error:  # noqa: BLE001 (the last line of defence: say it in one line)
        click.echo(f"error: {type(error).__name__}: {error} (unexpected; --debug shows where)", err=True)
        code = 1
    else:
        return 0
    if "--debug" in arguments:
        traceback.print_exc()
    return code


def _say_problems(error: InputError | click.ClickException) -> None:
    lines = error.lines() if isinstance(error, InputError) else [" ".join(error.format_message().split())]
    for line in lines[:MOST_LINES]:
        click.echo(f"error: {line}", err=True)
    if len(lines) > MOST_LINES:
        click.echo(f"error: … and {len(lines) - MOST_LINES:,} more problems", err=True)


@click.group(
    context_settings={
        "token_normalize_func": lambda token: token.replace("_", "-"),
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    }
)
@click.version_option(__version__)
def cli() -> None:
    """Evaluate descriptors, copy detection and dense flow: images → descriptors → results → table."""


class BenchmarkGroup(click.Group):
    """A command whose next word is a benchmark."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            raise ConfigError(
                f"unknown benchmark {args[0]}{nearest(args[0], BENCHMARKS)}; they are {', '.join(BENCHMARKS)}, "
                f"and all at once {', '.join(FAMILIES)}"
            )
        return super().resolve_command(ctx, args)


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


def _input_options(benchmark: Benchmark) -> list[click.Option]:
    metavars = {"descriptor": "SPEC", "descriptor-args": "JSON"}
    options = [
        click.Option([f"--{name}"], help=INPUTS[name], metavar=metavars.get(name, "URI")) for name in benchmark.inputs
    ]
    for option in benchmark.options:
        kind: Any = click.Choice(option.choices) if option.choices else option.kind
        names = [f"--{option.name}"]
        if option.kind is bool:
            options.append(click.Option(names, is_flag=True, help=option.help))
        else:
            several, default = option.is_list, option.default
            options.append(click.Option(names, type=kind, default=default, multiple=several, help=option.help))
    return options


def _common_options(out_required: bool) -> list[click.Option]:
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
        make(["--seed"], type=int, default=0, show_default=True),
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
    uris = ("data", "benchmarks", "tasks", "features", "results", "out", "store")
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


def _jobs(members: Sequence[Benchmark], given: dict[str, Any]) -> tuple[list[Job], Settings]:
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


def _run(members: Sequence[Benchmark]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        jobs, settings = _jobs(members, given)
        for found in [evaluate(jobs[0], settings)] if len(jobs) == 1 else evaluate_all(jobs, settings):
            if found.already_done:
                click.echo(f"{found.out}: done already, with the same arguments and inputs; nothing computed", err=True)
            click.echo(found.tables[0].to_text())
            click.echo(f"table {storage.join(found.out, found.tables[0].file_name)}\nreport {found.report}")

    return command


def _check(members: Sequence[Benchmark]) -> Callable[..., None]:
    def command(**given: Any) -> None:
        for found in preflight_all(*_jobs(members, given)):
            click.echo(f"good: {found}")

    return command


def _group(
    name: str, text: str, action: Callable[[Sequence[Benchmark]], Callable[..., None]], out_required: bool
) -> BenchmarkGroup:
    group = BenchmarkGroup(name, help=text)
    alone = {benchmark.name: (benchmark,) for benchmark in BENCHMARKS.values()}
    families = {family: tuple(BENCHMARKS[name] for name in names) for family, names in FAMILIES.items()}
    for command, members in (alone | families).items():
        own = {option.name: option for member in members for option in _input_options(member)}
        options = [*own.values(), *_common_options(out_required)]
        summary = members[0].summary if len(members) == 1 else ", ".join(member.name for member in members)
        described = f"{summary}.\n\nNeeds {members[0].needs}."
        group.add_command(click.Command(command, params=list(options), callback=action(members), help=described))
    return group


cli.add_command(_group("run", "Run a benchmark, or resume it.", _run, out_required=True))
cli.add_command(
    _group("check", "Find in seconds what `run` would trip over; computes nothing.", _check, out_required=False)
)


@cli.command("list")
def list_() -> None:
    """Benchmarks and descriptors, and what each needs."""
    click.echo("benchmarks")
    for benchmark in BENCHMARKS.values():
        click.echo(f"  {benchmark.name:<24} {benchmark.summary}\n  {'':<24} needs {benchmark.needs}")
    for family, names in FAMILIES.items():
        click.echo(f"  {family:<24} at once: {', '.join(names)}")
    click.echo("\ndescriptors")
    for name, target in DESCRIPTORS.items():
        click.echo(f"  {name:<24} {target}")
    for kind in MODEL_FILES:
        click.echo(f"  {kind + ':URI':<24} a model file")
    click.echo(f"  {'module:Class':<24} your own (see the README)")


@cli.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN…")
@click.option("--out", default="report.html", show_default=True, metavar="FILE.html")
def report(runs: tuple[str, ...], out: str) -> None:
    """One self-contained page over finished runs."""
    pages = []
    for uri in map(storage.checked, runs):
        manifest = read_manifest(uri)
        if manifest is None:
            raise ConfigError(f"{uri}: no run there (no manifest.json); name the --out of a run")
        if manifest.status != "done":
            raise ConfigError(f"{uri}: that run is not finished; run it again to resume")
        pages.append((manifest, read_tables(uri, manifest)))
    target = storage.checked(out)
    storage.publish(target, write_report(pages).encode())
    click.echo(f"report {target}")


@cli.command()
@click.argument("protocol", type=click.Choice(["hbench", "hpatches"]))
@click.option("--data", metavar="URI", help="folder of SEQ/IM.png strips")
@click.option("--features", metavar="URI", help="or folder of descriptors, SEQ/IM.csv and other kinds")
@click.option("--out", required=True, metavar="URI", help="where the task files go; becomes --benchmarks or --tasks")
@click.option("--positives", type=POSITIVE, default=Sizes.positives, show_default=True, help="pairs a list of matches")
@click.option("--negatives", type=POSITIVE, default=Sizes.negatives, show_default=True, help="pairs a list of others")
@click.option("--queries", type=POSITIVE, default=Sizes.queries, show_default=True, help="of a retrieval task")
@click.option("--distractors", type=POSITIVE, default=Sizes.distractors, show_default=True, help="hpatches: of a split")
@click.option(
    "--pool-sequences", type=POSITIVE, default=Sizes.pool_sequences, show_default=True, help="hbench: of a pool"
)
@click.option("--seed", type=int, default=0, show_default=True)
def tasks(protocol: str, data: str | None, features: str | None, out: str, seed: int, **sizes: int) -> None:
    """Make task files for patch data of your own: .benchmark sets (hbench) or split CSVs (hpatches)."""
    if (data is None) == (features is None):
        raise ConfigError("tasks: give one of --data, --features")
    source = Strips.scan(storage.checked(data)) if data else VectorFiles.scan(storage.checked(features or ""))
    problems = ProblemList()
    counts = source.counts(range(len(source.keys)), problems)
    problems.check()
    patches = by_sequence({source.keys[item]: count for item, count in counts.items()})
    make = hbench_tasks if protocol == "hbench" else hpatches_tasks
    files = make(patches, Sizes(**sizes), seed)
    folder = storage.checked(out)
    storage.in_parallel(lambda name: storage.publish(storage.join(folder, name), files[name].encode()), files)
    click.echo(f"{len(files)} task files over {len(patches)} sequences in {folder}")


@cli.command()
@click.option("--out", default="raybench-demo", show_default=True, metavar="DIR")
@click.option("--ray", default="local", show_default=True, metavar="ADDRESS|local|off")
@click.option("--progress", type=click.Choice(["auto", "bar", "json", "none"]), default="auto", show_default=True)
@click.option("--debug", is_flag=True, expose_value=False, help="show tracebacks")
def demo(out: str, ray: str, progress: str) -> None:
    """Make small data sets from real photos, run every benchmark, write one report."""
    from raybench.demo.tour import run_demo

    tables, page = run_demo(Path(out).absolute(), Settings(ray=ray, progress=progress))
    for table in tables:
        click.echo(table.to_text())
    click.echo(f"report {page}")
