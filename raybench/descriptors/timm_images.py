"""Models of timm as image descriptors: `timm:NAME`, with weights from the hub's local cache or from `--weights`.

A row is, unless `--pooling` asks otherwise, what the model feeds its classifier with (`num_classes=0` in timm's words).
"""

from __future__ import annotations

import math
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from raybench.descriptors.model_folders import FoundModel
from raybench.descriptors.model_preprocessing import ModelPreprocess
from raybench.descriptors.models_by_name import ModelByName, imported
from raybench.descriptors.named_weights import SAFE, given_weights, state_in
from raybench.descriptors.token_pooling import check_class_token, pooling_words
from raybench.errors import ConfigError, DataError, suggestion
from raybench.formats.images import INTERPOLATIONS

if TYPE_CHECKING:
    import torch

USUAL_FILES = ("model.safetensors", "open_clip_model.safetensors")


class TimmImages(ModelByName):
    """An architecture of timm with weights."""

    kind = "timm"
    takes_weights = True

    @staticmethod
    def found(given: str, weights: str | None, own_preprocessing: bool) -> FoundModel:
        """The architecture, its weights and what timm says of its pictures."""
        timm = imported("timm", "timm")
        facts = _facts(timm, given)
        files = given_weights(weights) if weights else _cached(facts, given)
        steps = _steps(timm, facts, given) if own_preprocessing else None
        return FoundModel(given, files, (given,), steps)

    def network(self, folder: Path) -> tuple[torch.nn.Module, str]:
        """The model without its classifier, and what a row is."""
        from raybench.descriptors.library_networks import FeatureRows

        timm = imported("timm", "timm")
        overlay = {"state_dict": state_in(folder), "custom_load": False}
        model = timm.create_model(self._model_name, pretrained=True, pretrained_cfg_overlay=overlay)
        model.reset_classifier(0)
        class_tokens: Any = getattr(model, "cls_token", None)
        has_class = class_tokens is not None
        check_class_token(self._pooling, has_class, self._path)
        if self._pooling is None:
            return model, "what the model feeds its classifier with"
        before = getattr(model, "num_prefix_tokens", class_tokens.shape[-2] if has_class else 0)
        words = pooling_words(self._pooling, self._power, "patches" if has_class else "places")
        return FeatureRows(self._path, model, self._pooling, self._power, before), words


def _facts(timm: Any, name: str) -> dict[str, Any]:
    """What timm knows of a model and its pretrained weights."""
    if not timm.is_model(name):
        near = suggestion(name, timm.list_models())
        raise ConfigError(f"timm:{name}: timm {timm.__version__} has no such model{near}")
    try:
        found = timm.get_pretrained_cfg(name)
    except RuntimeError as cause:  # an unknown tag behind the dot
        tags = [one.partition(".")[2] for one in timm.list_pretrained(f"{name.partition('.')[0]}.*")]
        raise ConfigError(f"timm:{name}: {cause} There are {', '.join(tags) or 'none'}") from cause
    facts: dict[str, Any] = {} if found is None else found.to_dict()
    return facts


def _cached(facts: dict[str, Any], name: str) -> dict[str, str]:
    """The file of the pretrained weights in the local cache of the hub."""
    import huggingface_hub

    repository, _, revision = str(facts.get("hf_hub_id") or "").partition("@")
    if not repository:
        raise DataError(f"timm:{name}: timm publishes no weights of it on the hub; give --weights URI")
    named = PurePosixPath(facts.get("hf_hub_filename") or USUAL_FILES[0]).with_suffix(SAFE).name
    for file in dict.fromkeys((named, *USUAL_FILES)):
        path = huggingface_hub.try_to_load_from_cache(repository, file, revision=revision or None)
        if isinstance(path, str):
            return {f"weights{SAFE}": path}
    raise DataError(
        f"timm:{name}: its weights are not in the local cache ({huggingface_hub.constants.HF_HUB_CACHE}), and raybench "
        f"downloads nothing; fetch them where there is a network: hf download {repository}; or give --weights URI"
    )


def _steps(timm: Any, facts: dict[str, Any], name: str) -> ModelPreprocess:
    """The steps of timm's transforms for evaluation."""
    said = timm.data.resolve_data_config(pretrained_cfg=facts)
    _, height, width = said["input_size"]
    mode, filter_ = said["crop_mode"], said["interpolation"]
    if mode not in ("center", "squash") or filter_ not in INTERPOLATIONS or (mode == "center" and height != width):
        raise ConfigError(
            f"timm:{name}: its pictures are prepared by {mode} and {filter_} to {height} x {width}, which is not known "
            "here; give --preprocess published with --size, --mean, --std"
        )
    large = [math.floor(edge / said["crop_pct"]) for edge in (height, width)]
    return ModelPreprocess(
        resize=tuple(large) if mode == "squash" else (large[0],),
        crop=(height, width),
        mean=tuple(map(float, said["mean"])),
        std=tuple(map(float, said["std"])),
        interpolation=filter_,
        cut_from="even",
    )
