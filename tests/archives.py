"""Packs folders of images as users do: tar in its forms, shards, zip stored and deflated, lists of URIs."""

import os
import tarfile
import zipfile
from pathlib import Path

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def files_of(folder: Path) -> list[str]:
    """Names of all files below, in no order of names, so that an archive has another order than a folder."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()]
    return sorted(names, key=lambda name: name[::-1])


def pack_tar(folder: Path, target: Path, above: str = "", form: str = "gnu", names: list[str] | None = None) -> Path:
    """A tar of a folder with its links; of some files, what these lead to, as another shard may have that."""
    with tarfile.open(target, "w", format=FORMATS[form], dereference=names is not None) as archive:
        for name in files_of(folder) if names is None else names:
            archive.add(folder / name, above + name)
    return target


def pack_shards(folder: Path, target: Path, count: int) -> str:
    """Shards below a folder; returns their pattern."""
    target.mkdir(exist_ok=True)
    names = files_of(folder)
    for number in range(count):
        pack_tar(folder, target / f"shard-{number:03d}.tar", names=names[number::count])
    return f"{target}/shard-{{000..{count - 1:03d}}}.tar"


def pack_zip(folder: Path, target: Path, above: str = "", method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(target, "w", method) as archive:
        for name in files_of(folder):
            archive.write(folder / name, above + name)
    return target


def write_list(folder: Path, target: Path) -> Path:
    """A CSV list of a folder's images by relative URIs."""
    lines = [os.path.relpath(folder / name, target.parent) for name in files_of(folder)]
    target.write_text("uri,note\n" + "".join(f"{line},-\n" for line in lines))
    return target
