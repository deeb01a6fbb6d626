"""What disks, people and other programs do to the files of a store.

Each takes the paths of two shards of one stage and of one of another stage. It spoils the first; `swapped` does so to
the second, too.
"""

import os
from collections.abc import Callable
from pathlib import Path


def deleted(path: Path, second: Path, foreign: Path) -> None:
    path.unlink()


def empty(path: Path, second: Path, foreign: Path) -> None:
    path.write_bytes(b"")


def cut_short(path: Path, second: Path, foreign: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def zeroed(path: Path, second: Path, foreign: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def header_flipped(path: Path, second: Path, foreign: Path) -> None:
    _flip(path, 40)


def array_flipped(path: Path, second: Path, foreign: Path) -> None:
    """In the first array: shard files start their arrays at a multiple of 64 behind the header."""
    _flip(path, 20 + int.from_bytes(path.read_bytes()[8:16], "little"))


def swapped(path: Path, second: Path, foreign: Path) -> None:
    one, other = path.read_bytes(), second.read_bytes()
    path.write_bytes(other)
    second.write_bytes(one)


def of_another_stage(path: Path, second: Path, foreign: Path) -> None:
    path.write_bytes(foreign.read_bytes())


def of_an_older_version(path: Path, second: Path, foreign: Path) -> None:
    path.write_bytes(b"RAYBSH01" + path.read_bytes()[8:])


def empty_folder(path: Path, second: Path, foreign: Path) -> None:
    path.unlink()
    path.mkdir()


def folder_with_files(path: Path, second: Path, foreign: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "precious").write_text("kept")


def link_to_nowhere(path: Path, second: Path, foreign: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def pipe(path: Path, second: Path, foreign: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


Damage = Callable[[Path, Path, Path], None]
FOLDERS: list[Damage] = [empty_folder, folder_with_files]
# Of these a listing says that nothing is there, so that a resumed run maps them as if they never had been.
UNLISTED: list[Damage] = [deleted, link_to_nowhere, pipe, *FOLDERS]
LISTED: list[Damage] = [
    empty,
    cut_short,
    zeroed,
    header_flipped,
    array_flipped,
    swapped,
    of_another_stage,
    of_an_older_version,
]
