"""Networks of libraries that know a model by its name: what `hf:`, `timm:` and `torchvision:` share.

A subclass finds the files (`found`, on the driver) and makes the network (`network`, in each worker).
"""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from raybench.descriptors.image_networks import TorchNetwork
from raybench.descriptors.model_folders import FoundModel, linked
from raybench.descriptors.precision import Precision
from raybench.descriptors.token_pooling import GEM_POWER, check_pooling
from raybench.errors import ConfigError, DataError, RaybenchError
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
        with linked(self._files, self._path) as folder, self._blamed(str(folder)):
            network, self.rows = self.network(folder)
        return network.to(device).eval()

    @contextmanager
    def _blamed(self, folder: str) -> Iterator[None]:
        """Whatever a library raises over a model's files is the model's fault, unless it can't import its own parts."""
        try:
            yield
        except DataError as error:
            raise DataError(self._told(str(error), folder)) from error
        except (RaybenchError, MemoryError):
            raise
        except Exception as cause:
            if isinstance(cause, ImportError):
                raise not_importable(f"what {self._path} needs", self.kind, cause) from cause
            said = self._told(_line_of(cause), folder)
            raise DataError(
                f"{self._path}: can't be loaded ({said}); its files may be damaged, or not fit together"
            ) from cause

    def _told(self, words: str, folder: str) -> str:
        """Words of an error with the user's names in the place of those of links."""
        for name, uri in self._files.items():
            words = words.replace(f"{folder}/{name}", uri)
        return words.replace(folder, self._model_name)


def _line_of(cause: BaseException) -> str:
    """What an exception says, in one line: its first, and the next where that one only announces it."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()] or [type(cause).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])


def not_importable(what: str, extra: str, cause: Exception) -> ConfigError:
    """A library is there but can't be imported: beside another build of torch some raise whatever they trip over."""
    import torch

    first: BaseException = cause
    while (before := first.__cause__ or first.__context__) is not None:  # libraries tell the reason of their reason
        first = before
    said = f"{type(first).__name__}: {_line_of(first)}"
    return ConfigError(
        f"{what} can't be imported here ({said}); bring libraries that fit torch "
        f"{torch.__version__}: pip install 'raybench[{extra}]', and a build of torchvision for it "
        "(https://pytorch.org/get-started) or, where nothing needs it, none"
    )


def imported(name: str, extra: str) -> Any:
    """A library, or one clear line."""
    try:
        return importlib.import_module(name)
    except Exception as cause:
        raise not_importable(name, extra, cause) from cause
