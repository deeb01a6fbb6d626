"""What kind of model a file holds, by its content: for callers that take just a file, as published tools do."""

from __future__ import annotations

import zipfile

from raybench import storage
from raybench.descriptors import IMAGE_MODEL_FILES
from raybench.errors import DataError, blamed_on_file


def kind_of_model(given: str) -> tuple[str, str]:
    """Kind and URI of a model: what `KIND:URI` says, else what the file looks like (weights: `sscd`)."""
    named, _, rest = given.partition(":")
    if named in IMAGE_MODEL_FILES and rest:
        return named, rest
    if given.lower().endswith(".onnx"):
        return "onnx", given
    try:
        path = storage.fetch(storage.checked(given))
    except FileNotFoundError:
        raise DataError(f"{given}: does not exist; expected weights or a model file") from None
    return ("torchscript" if holds_code(str(path)) else "sscd"), given


def holds_code(path: str) -> bool:
    """TorchScript is a zip archive with its code in it; weights that torch saved are one without."""
    with blamed_on_file(f"{path}: a model file whose table of contents can't be read"):
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            return any(name.split("/")[1:2] == ["code"] for name in archive.namelist())
