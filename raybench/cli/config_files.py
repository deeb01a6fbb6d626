"""`--config`: a YAML file of options, or the manifest of a finished run, whose values become defaults; flags win."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from raybench import storage
from raybench.benchmarks.job import Benchmark
from raybench.benchmarks.option_values import fitting
from raybench.benchmarks.options import Option
from raybench.errors import ConfigError, suggestion
from raybench.runs.jobs import options_for
from raybench.runs.manifest import FILE_NAME as MANIFEST
from raybench.runs.manifest import read_manifest

MOST_CONFIG_BYTES, MOST_CONFIG_VALUES = 2**16, 2**12


def read_config(members: Sequence[Benchmark], file: str) -> dict[str, Any]:
    """The values that a file gives for options of these benchmarks, by key, each as its option has it."""
    uri = storage.checked(file)
    values = _of_manifest(members, uri) if uri.endswith(f"/{MANIFEST}") else _of_yaml(uri, file)
    known = {one.key: one for member in members for one in options_for(member)}
    found = {}
    for name, (value, text) in values.items():
        key = str(name).replace("-", "_")
        if key not in known:
            raise ConfigError(f"--config {file}: unknown key {name}{suggestion(key, known)}")
        if value is not None:
            found[key] = _fitting(known[key], value, text, file)
    return found


def _fitting(known: Option, value: Any, text: Any, file: str) -> Any:
    """A value for its option; of one that takes text as it was written, since `off` is a truth value to YAML."""
    try:
        return fitting(known, text if known.kind is str else value)
    except ConfigError as error:
        raise ConfigError(f"--config {file}: {error}") from None


def _of_manifest(members: Sequence[Benchmark], uri: str) -> dict[str, tuple[Any, Any]]:
    """The arguments of a run, as values and texts: those that can change a result; neither --out nor --store."""
    folder = uri.removesuffix(MANIFEST).rstrip("/")
    found = read_manifest(folder)
    if found is None:
        raise ConfigError(f"--config {uri}: does not exist")
    names = [member.name for member in members]
    if found.benchmark not in names:
        raise ConfigError(f"--config {uri}: is of {found.benchmark}, not of {' or '.join(names)}; run that benchmark")
    return {key: (value, value) for key, value in found.arguments.items()}


def _of_yaml(uri: str, file: str) -> dict[Any, tuple[Any, Any]]:
    """The values of a YAML file, each as YAML reads it and as it was written."""
    import yaml

    try:
        data = storage.read_start(uri, MOST_CONFIG_BYTES + 1)
        values = yaml.safe_load(data) if len(data) <= MOST_CONFIG_BYTES else None
    except FileNotFoundError:
        raise ConfigError(f"--config {file}: does not exist") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # numbers and dates are parsed, too
        raise ConfigError(f"--config {file}: no YAML ({' '.join(str(error).split())})") from None
    if len(data) > MOST_CONFIG_BYTES or _is_beyond(values, MOST_CONFIG_VALUES):
        most = f"{MOST_CONFIG_BYTES:,} bytes and {MOST_CONFIG_VALUES:,} values (each use of an alias counts)"
        raise ConfigError(f"--config {file}: more than {most}; expected `option: value` lines")
    if not isinstance(values, dict):
        raise ConfigError(f"--config {file}: expected `option: value` lines")
    written: Mapping[str, Any] = yaml.load(data, yaml.BaseLoader)  # scalars stay text
    return {key: (value, written.get(str(key), value)) for key, value in values.items()}


def _is_beyond(value: Any, most: int) -> bool:
    """Whether a value holds more than so many, its aliases written out; one that holds itself does."""
    waiting, count = [value], 0
    while waiting and count <= most:
        one = waiting.pop()
        count += 1
        waiting += [*one.keys(), *one.values()] if isinstance(one, dict) else one if isinstance(one, list) else []
    return count > most
