"""Networks of libraries that know a model by its name: what `hf:`, `timm:` and `torchvision:` share.

A subclass finds the files (`found`, on the driver) and makes the network (`network`, in each worker).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from raybench.descriptors.image_networks import TorchNetwork
from raybench.descriptors.model_folders import FoundModel, linked
from raybench.descriptors.precision import Precision
from raybench.descriptors.token_pooling import GEM_POWER, check_pooling
from raybench.errors import DataError, RaybenchError, reason_of
from raybench.formats.images import Preprocess

if TYPE_CHECKING:
    import torch


class ModelByName(TorchNetwork):
    """A network from files that a library knows how to read, and what becomes a row of its output."""

    kind: ClassVar[str]
    takes_weights: ClassVar[bool]  # whether a name is an architecture, which --weights may fill

    def __init__(
        self,
        model: str,
        files: Mapping[str, str],
        pooling: str | None = None,
        pool_param: float | None = None,
        dtype: str = "float32",
        tf32: bool = False,
        compile: bool = False,
    ) -> None:
        check_pooling(pooling, pool_param)
        super().__init__(f"{self.kind}:{model}", Preprocess(), Precision(dtype, tf32, compile))
        self._model_name, self._files = model, dict(files)
        self._pooling, self._power = pooling, GEM_POWER if pool_param is None else pool_param
        self.rows = ""  # what a row is, in words, once the network was loaded

    @staticmethod
    @abstractmethod
    def found(given: str, weights: str | None, own_preprocessing: bool) -> FoundModel:
        """The model that `kind:given` names; raises InputError if it is not here."""

    @abstractmethod
    def network(self, folder: Path) -> tuple[torch.nn.Module, str]:
        """Pictures (n, 3, h, w) to rows, from the files in a folder; and what a row is, in words."""

    def load(self, device: str) -> torch.nn.Module:
        """The network on the device, in evaluation mode."""
        with linked(self._files, self._path) as folder, self._blamed():
            network, self.rows = self.network(folder)
        return network.to(device).eval()

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Whatever a library raises over a model's files is the model's fault, told in one line."""
        try:
            yield
        except (RaybenchError, MemoryError):
            raise
        except Exception as cause:
            raise DataError(
                f"{self._path}: can't be loaded ({reason_of(cause)}); its files may be damaged, or not fit together"
            ) from cause


def imported(name: str, extra: str) -> Any:
    """A library, or one clear line: beside another build of torch these raise whatever they trip over."""
    import importlib

    from raybench.errors import ConfigError

    try:
        return importlib.import_module(name)
    except Exception as cause:
        import torch

        raise ConfigError(
            f"{name} can't be imported here ({type(cause).__name__}: {reason_of(cause)}); install a build of it and of "
            f"torchvision that fits torch {torch.__version__}: pip install 'raybench[{extra}]', see "
            "https://pytorch.org/get-started"
        ) from cause
