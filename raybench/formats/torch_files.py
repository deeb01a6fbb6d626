"""Files of torch.save, looked at before torch reads them: pickles, in a zip or (before torch 1.6) one behind the other.

torch unpickles with `weights_only`, which executes nothing. But the words in which it refuses a name take time by the
square of that name's length, so a name of a megabyte would take hours. And it does not look at checksums.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from pathlib import Path
from typing import IO

from raybench.errors import blamed_on_file

MOST_LETTERS = 1_000  # of a text in a pickle: a key, or the name of a class
LEGACY_PICKLES = 5  # magic, version, system, the object, the keys of its storages
PICKLE = "data.pkl"
MOST_PICKLE_BYTES = 2**26  # of names and keys; tensors lie beside it


def check_pickles(path: str, words: str, advice: str) -> None:
    """Raise DataError, with these words, for a file whose pickles can't be walked, or hold a text of absurd length."""
    with Path(path).open("rb") as file, blamed_on_file(words, advice):
        if not zipfile.is_zipfile(file):
            file.seek(0)
            start = io.BytesIO(
                file.read(MOST_PICKLE_BYTES)
            )  # which, unlike a file, takes no memory for what is not there
            for _ in range(LEGACY_PICKLES):
                _walk(start)
            return
        with zipfile.ZipFile(file) as archive:
            for member in archive.infolist():
                if member.filename.endswith(PICKLE):
                    _check_size(member.file_size, MOST_PICKLE_BYTES)
                    _walk(io.BytesIO(archive.read(member)))


def check_archive(path: str) -> None:
    """Raise for a zip of torch that is not what its checksums say, which torch does not look at: it would compute with
    whatever a flipped bit has made of a weight. A file that is no zip passes."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        damaged = archive.testzip()
    if damaged:
        raise ValueError(f"{damaged} is not what its checksum says; copy the file again")


def _walk(file: IO[bytes]) -> None:
    for _, value, _ in pickletools.genops(file):
        if isinstance(value, str | bytes | bytearray):
            _check_size(len(value), MOST_LETTERS)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise ValueError(f"{size:,} letters where names and keys belong, at most {most:,} are expected")
