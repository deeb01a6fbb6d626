"""Files of a model under the names that its library looks for, wherever each lies: a folder of links for this node.

So a library sees the files that a digest covers and no other, from a disk, an object store or a cache alike.
"""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from raybench import node_cache, storage
from raybench.descriptors.model_preprocessing import ModelPreprocess
from raybench.errors import DataError


@dataclass(frozen=True)
class FoundModel:
    """A model that a name led to, before anything of it is loaded.

    `name` is for folders and tables; `files` are URIs by the name under which the library knows each; `facts` tell it
    from others with the same files; `preprocess` is what the model publishes of that, if it was asked for.
    """

    name: str
    files: Mapping[str, str]
    facts: tuple[str, ...] = ()
    preprocess: ModelPreprocess | None = None


Where = Callable[[str], str | None]  # the URI of a file by its name within a model; None if there is none


@contextmanager
def linked(files: Mapping[str, str], model: str) -> Iterator[Path]:
    """A folder with these files, those of object stores fetched; gone behind the block."""
    with tempfile.TemporaryDirectory(prefix="raybench-model-") as folder:
        for name, uri in files.items():
            try:
                _link(uri, Path(folder) / name)
            except FileNotFoundError:
                raise DataError(
                    f"{model}: {uri} is not on {socket.gethostname()}; give a folder that every node reaches, such as "
                    "hf:s3://BUCKET/FOLDER, or bring the model to each node"
                ) from None
        yield Path(folder)


def _link(uri: str, link: Path) -> None:
    """Link to a file; to the copy of a remote one so that it stays when another process evicts it."""
    path = storage.local_path(uri)
    if path is None:
        node_cache.opened(uri, link.hardlink_to)  # both are in the folder for temporary files
    elif path.is_file():
        link.symlink_to(path.absolute())
    else:
        raise FileNotFoundError(uri)
