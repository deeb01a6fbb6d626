"""Which files are a model of Hugging Face's, and where: a folder on any URI, or a name in the local cache of its hub.

Nothing is downloaded here, and nothing but safetensors counts as weights: files of other kinds can hold code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from raybench import storage
from raybench.descriptors.model_folders import Where
from raybench.descriptors.specs import HUB_PAGE
from raybench.errors import ConfigError, DataError, quoted, reason_of

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PREPROCESSORS = ("preprocessor_config.json", "processor_config.json")  # the second nests it, beside a tokenizer's
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json", "model.bin", "pytorch_model.pth")
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
ATTENTION = ("attn_implementation", "_attn_implementation", "_attn_implementation_internal")
OWN_ATTENTION = (None, "eager", "sdpa")  # transformers takes any other from a library, or downloads its code
MOST_JSON_BYTES = 16 * 2**20


def place_of(given: str) -> tuple[str, Where]:
    """The name of a model, and how its files are found; raises InputError if there is no such model here."""
    path = storage.local_path(given)
    if page := HUB_PAGE.fullmatch(given):
        raise ConfigError(f"hf:{given}: is a page of the hub, not a model's files; give hf:{page[1]}")
    if path is None:
        uri = storage.checked(given)
        return uri.rpartition("/")[2], _in_folder(uri)
    if path.expanduser().is_dir():
        whole = storage.checked(given)
        return whole.rstrip("/").rpartition("/")[2], _in_folder(whole)
    if path.expanduser().is_file():
        raise DataError(f"hf:{given}: is a file; give the folder that holds it, beside {CONFIG}")
    if given.startswith(("/", ".", "~", "file:")) or not HUB_NAME.fullmatch(given):
        raise DataError(
            f"hf:{given}: no such folder; give one with {CONFIG} and {WEIGHTS}, or a name as the hub has it"
        )
    return given.partition("@")[0].rpartition("/")[2], _in_cache(given)


def model_files(model: str, where: Where, with_preprocessor: bool = True) -> dict[str, str]:
    """The URI of each file that makes up the model, by its name; raises what is missing."""
    config = where(CONFIG)
    if config is None:
        raise DataError(f"{model}: has no {CONFIG}; expected a folder as save_pretrained of transformers writes it")
    found = {CONFIG: config, **_weights(model, where)}
    if with_preprocessor:
        found |= next(({name: uri} for name in PREPROCESSORS if (uri := where(name)) is not None), {})
    return found


def _weights(model: str, where: Where) -> dict[str, str]:
    whole, index = where(WEIGHTS), where(INDEX)
    if whole is not None:
        return {WEIGHTS: whole}
    if index is None:
        pickle = next((name for name in PICKLES if where(name) is not None), None)
        if pickle is not None:
            raise DataError(
                f"{model}: has its weights in {pickle} only, a kind of file that can hold code and is not read; save "
                f"them as {WEIGHTS}: load the model where you trust it, and save_pretrained(FOLDER)"
            )
        raise DataError(f"{model}: has no weights; expected {WEIGHTS}, or {INDEX} and the files that it names")
    named = read_json(index).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise DataError(f"{index}: expected `weight_map`, which says the file of each tensor; save the model again")
    shards = sorted(set(named.values()))
    strange = [name for name in shards if not re.fullmatch(r"[\w.-]+\.safetensors", name)]
    if strange:
        raise DataError(f"{index}: names {strange[0]!r}, expected names of .safetensors files beside it")
    there = {name: where(name) for name in shards}
    missing = [name for name, uri in there.items() if uri is None]
    if missing:
        raise DataError(
            f"{model}: lacks {len(missing)} of {len(shards)} weight files, such as {missing[0]}; bring them"
        )
    return {INDEX: index, **{name: uri for name, uri in there.items() if uri is not None}}


def read_json(uri: str) -> dict[str, Any]:
    """A small JSON object."""
    try:
        data = storage.read_start(uri, MOST_JSON_BYTES + 1)
    except FileNotFoundError:
        raise DataError(f"{uri}: does not exist; expected a JSON object") from None
    try:
        if len(data) > MOST_JSON_BYTES:
            raise ValueError(f"more than {MOST_JSON_BYTES:,} bytes")
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{uri}: can't be read as JSON ({reason_of(error)}); it may be cut short or damaged") from error
    if not isinstance(found, dict):
        raise DataError(f"{uri}: expected a JSON object, found {type(found).__name__}")
    return found


def check_complete(config: dict[str, Any], uri: str) -> None:
    """Raise if a config is of another library or needs one, or names code or another model: transformers would fetch
    them, and no digest would cover them."""
    if "architecture" in config and "model_type" not in config:
        raise DataError(
            f"{uri}: is of timm, not of transformers; give timm:{str(config['architecture'])[:80]} with --weights, or "
            "timm:NAME, whose weights are in the hub's local cache"
        )
    parts: list[Any] = [config]
    while parts:
        part = parts.pop()
        if isinstance(part, list):
            parts += part
        if not isinstance(part, dict):
            continue
        parts += part.values()
        if isinstance(packed := part.get("quantization_config"), dict):
            method = quoted(str(packed.get("quant_method")))
            raise DataError(f"{uri}: its weights are quantised ({method}), which is not known here; give plain ones")
        for key in ATTENTION:
            asked = part.get(key)
            for one in asked.values() if isinstance(asked, dict) else [asked]:
                if one not in OWN_ATTENTION:
                    raise DataError(
                        f"{uri}: {key} is {quoted(str(one))}, expected eager or sdpa: others are code that "
                        "transformers downloads; remove it"
                    )
        backbone = part.get("backbone")
        is_other = isinstance(backbone, str) and part.get("backbone_config") is None
        if part.get("use_pretrained_backbone") or (is_other and not str(part.get("model_type")).startswith("timm")):
            raise DataError(
                f"{uri}: takes its backbone from another model ({quoted(str(backbone))}), which transformers would "
                "download; load it where there is a network, and save_pretrained(FOLDER) the backbone itself"
            )


@contextmanager
def offline() -> Iterator[None]:
    """Whatever else transformers may ask of the hub fails at once: `local_files_only` is for the model's own files."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _in_folder(folder: str) -> Where:
    def where(name: str) -> str | None:
        uri = storage.join(folder, name)
        return uri if storage.exists(uri) else None

    return where


def _in_cache(given: str) -> Where:
    """Files of a name in the hub's local cache, at a revision (`NAME@REVISION`) or what `main` is there."""
    import huggingface_hub
    from huggingface_hub.errors import HFValidationError

    name, _, revision = given.partition("@")

    def where(file: str) -> str | None:
        try:
            found = huggingface_hub.try_to_load_from_cache(name, file, revision=revision or None)
        except (HFValidationError, ValueError) as error:
            raise ConfigError(f"hf:{given}: is no name that the hub could have ({reason_of(error)})") from error
        return found if isinstance(found, str) else None

    if where(CONFIG) is None:
        there = huggingface_hub.constants.HF_HUB_CACHE
        at = f" --revision {revision}" if revision else ""
        raise DataError(
            f"hf:{given}: is no folder here and not in the local cache ({there}), and raybench downloads nothing; "
            f"fetch it where there is a network: hf download {name}{at}; or give a folder, or s3://…"
        )
    return where
