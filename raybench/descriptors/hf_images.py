"""Vision models of transformers as image descriptors: `hf:FOLDER`, `hf:s3://…`, `hf:NAME` from the hub's local cache.

A row is, unless `--pooling` asks otherwise, what the model itself publishes for a picture: of a model with two towers
(CLIP, SigLIP) the embedding that it compares with texts, of others their `pooler_output`. Code that comes with a model
is never run, and weights are read as safetensors only. transformers is imported on first use, since that takes seconds.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raybench.descriptors.hf_files import CONFIG, check_complete, model_files, offline, place_of, read_json
from raybench.descriptors.hf_preprocessing import preprocess_of_model
from raybench.descriptors.model_folders import FoundModel
from raybench.descriptors.models_by_name import ModelByName
from raybench.descriptors.token_pooling import check_class_token, pooling_words
from raybench.errors import ConfigError, DataError

if TYPE_CHECKING:
    import torch

# Parameters that stand before the patches as tokens, by their last name, where they belong to `embeddings`: a head may
# have tokens of the same names (AIMv2), which are not among those of the last layer.
CLASS_TOKENS = ("cls_token", "class_embedding")
TOKENS = (*CLASS_TOKENS, "distillation_token", "register_tokens")
MADE_CLASS_TOKEN = ("dinov3_convnext",)  # whose class token is no parameter, but the mean of the others
BY_CHANCE = ("vit_mae", "videomae")  # which leave out patches that they draw
POOLER = "pooler."


class HfImages(ModelByName):
    """The vision model in a folder as save_pretrained writes it."""

    kind = "hf"
    takes_weights = False

    @staticmethod
    def found(given: str, weights: str | None, own_preprocessing: bool) -> FoundModel:
        """The files of a folder or of a name in the local cache."""
        name, where = place_of(given)
        files = model_files(f"hf:{given}", where, own_preprocessing)
        check_complete(read_json(files[CONFIG]), files[CONFIG])
        steps = preprocess_of_model(files, f"hf:{given}") if own_preprocessing else None
        return FoundModel(name, files, (), steps)

    def network(self, folder: Path) -> tuple[torch.nn.Module, str]:
        """The model's vision tower, and what is taken of it."""
        from raybench.descriptors.hf_network import VisionRows

        tower, projection, missing, has_texts = _tower(folder, self._path)
        lacking = [key for key in missing if not key.startswith(POOLER)]
        if lacking:
            raise DataError(
                f"{self._path}: its weights lack {len(lacking)} tensors of the model, such as {lacking[0]}; bring the "
                f"weights that belong to its {CONFIG}"
            )
        before, has_class = tokens_before(tower)
        check_class_token(self._pooling, has_class, self._path)
        takes = inspect.signature(type(tower).forward).parameters
        if needs := _needed(takes):
            raise DataError(
                f"{self._path}: is a {type(tower).__name__}, which needs more than pictures ({', '.join(needs)}); give "
                "another model"
            )
        with_option, usual = "interpolate_pos_encoding" in takes, usual_size(tower.config)
        network = VisionRows(self._path, tower, projection, self._pooling, self._power, before, with_option, usual)
        if self._pooling is not None:
            return network, pooling_words(self._pooling, self._power, "patches" if has_class else "places")
        if missing:
            raise ConfigError(
                f"{self._path}: its weights lack the pooler ({missing[0]} …), which would be random numbers; give "
                f"--pooling {'cls' if has_class else 'avg'}"
            )
        if has_texts:
            return network, "the embedding that the model compares with texts"
        return network, "the model's own `pooler_output`"


def _tower(folder: Path, path: str) -> tuple[Any, Any, list[str], bool]:
    """The part of the model that sees pictures, its projection if there is one, which of their weights are missing, and
    whether another part reads texts."""
    import torch
    import transformers

    logs: Any = transformers.utils.logging  # without types
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    with offline():
        model, told = transformers.AutoModel.from_pretrained(
            str(folder),
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # told below, with the tensor's name
        )
    for key, found, expected in sorted(told["mismatched_keys"])[:1]:
        raise DataError(
            f"{path}: {len(told['mismatched_keys'])} tensors of its weights have another shape than its {CONFIG} says, "
            f"such as {key}: {tuple(found)}, expected {tuple(expected)}; bring files that belong together"
        )
    kind, missing = model.config.model_type, sorted(told["missing_keys"])
    if kind in BY_CHANCE:
        raise DataError(f"{path}: a {kind} leaves out patches by chance, so its rows are none; give another model")
    tower, prefix = model, ""
    if model.main_input_name != "pixel_values" or hasattr(model, "text_model"):
        if not hasattr(model, "vision_model") or not hasattr(model, "text_model"):
            raise DataError(f"{path}: is a {type(model).__name__}, which takes no images alone; give a vision model")
        tower, prefix = model.vision_model, "vision_model."
    projection = getattr(model, "visual_projection", None) if tower is not model else None
    parts = (prefix, "visual_projection.") if projection is not None else (prefix,)
    return tower, projection, [key.removeprefix(prefix) for key in missing if key.startswith(parts)], tower is not model


def tokens_before(tower: torch.nn.Module) -> tuple[int, bool]:
    """How many tokens stand before those of patches, and whether the first is a class token."""
    parts = [(name.split("."), value) for name, value in tower.named_parameters()]
    found = {names[-1]: value for names, value in parts if any(part.endswith("embeddings") for part in names[:-1])}
    counts = {name: value.shape[-2] if value.ndim > 1 else 1 for name, value in found.items() if name in TOKENS}
    config: Any = tower.config
    if config.model_type in MADE_CLASS_TOKEN:
        return 1, True
    return sum(counts.values()), any(name in counts for name in CLASS_TOKENS)


def usual_size(config: Any) -> tuple[int, ...]:
    """Height and width of the pictures that a vision model was made for; nothing if its config does not say."""
    edges = getattr(config, "image_size", None)
    return (edges, edges) if isinstance(edges, int) else tuple(edges or ())


def _needed(takes: Mapping[str, inspect.Parameter]) -> list[str]:
    """What a tower must be given beside the pictures."""
    by_name = [one for one in takes.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    return [one.name for one in by_name if one.default is one.empty and one.name not in ("self", "pixel_values")]
