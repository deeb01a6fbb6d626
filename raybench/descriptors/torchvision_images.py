"""Classification models of torchvision as image descriptors: `torchvision:NAME`, with weights from torch's local cache
or from `--weights`.

A row is, unless `--pooling` asks otherwise, what the model's last linear layer is fed with.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from raybench.descriptors.model_folders import FoundModel
from raybench.descriptors.model_preprocessing import ModelPreprocess
from raybench.descriptors.models_by_name import ModelByName, imported
from raybench.descriptors.named_weights import given_weights, load_exactly, state_in
from raybench.descriptors.token_pooling import check_class_token, pooling_words
from raybench.errors import ConfigError, DataError, suggestion
from raybench.formats.images import INTERPOLATIONS

if TYPE_CHECKING:
    import torch


class TorchvisionImages(ModelByName):
    """A classification model of torchvision with weights."""

    kind = "torchvision"
    takes_weights = True

    @staticmethod
    def found(given: str, weights: str | None, own_preprocessing: bool) -> FoundModel:
        """The architecture, its weights and what torchvision says of its pictures."""
        models = _models(given)
        published = models.get_model_weights(given).DEFAULT
        files = given_weights(weights) if weights else _cached(published.url, given)
        steps = _steps(published.transforms(), given) if own_preprocessing else None
        return FoundModel(given, files, (given,), steps)

    def network(self, folder: Path) -> tuple[torch.nn.Module, str]:
        """The model without its last linear layer, or what stands before its own pooling."""
        from raybench.descriptors.library_networks import SeenRows, without_last_linear

        models = imported("torchvision.models", "torchvision")
        model = models.get_model(self._model_name, weights=None)
        if hasattr(model, "transform_input"):
            model.transform_input = True  # as published weights of the Inception family have it
        load_exactly(model, state_in(folder), self._path)
        has_class = hasattr(model, "class_token")
        check_class_token(self._pooling, has_class, self._path)
        if self._pooling is None:
            if not without_last_linear(model):
                raise ConfigError(f"{self._path}: has no last linear layer, so no row is known; give another model")
            return model, "what the model's last linear layer is fed with"
        place = "encoder" if has_class else "avgpool"
        if not hasattr(model, place):
            raise ConfigError(f"{self._path}: its pooling is no layer of its own; leave --pooling out")
        network = SeenRows(model, place, self._pooling, self._power, int(has_class))
        return network, pooling_words(self._pooling, self._power, "patches" if has_class else "places")


def _models(name: str) -> Any:
    """torchvision's models, one of which has the name."""
    models = imported("torchvision.models", "torchvision")
    known = models.list_models(module=models)
    if name not in known:
        raise ConfigError(f"torchvision:{name}: torchvision has no such classification model{suggestion(name, known)}")
    return models


def _cached(url: str, name: str) -> dict[str, str]:
    """The file of the published weights, where torch.hub keeps what it fetched."""
    import torch

    hub: Any = torch.hub  # torch leaves `get_dir` without types
    file = PurePosixPath(url).name
    path = Path(hub.get_dir()) / "checkpoints" / file
    if not path.is_file():
        raise DataError(
            f"torchvision:{name}: its weights are not in the local cache ({path}), and raybench downloads nothing; "
            f"fetch {url} where there is a network, and put it there or give --weights URI"
        )
    return {"weights.pth": str(path)}


def _steps(transforms: Any, name: str) -> ModelPreprocess:
    """The steps of the transforms that come with the weights."""
    filter_ = str(transforms.interpolation.value)
    crop, resize = [edge for (edge,) in (transforms.crop_size, transforms.resize_size)]
    if filter_ not in INTERPOLATIONS:
        raise ConfigError(
            f"torchvision:{name}: resizes by {filter_}, which is not known here; give --preprocess published"
        )
    return ModelPreprocess(
        resize=(resize,),
        crop=(crop, crop),
        mean=tuple(map(float, transforms.mean)),
        std=tuple(map(float, transforms.std)),
        interpolation=filter_,
        cut_from="even",
    )
