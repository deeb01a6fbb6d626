"""Why a folder holds nothing of what was expected, in words: what is there instead, and which folder may be meant."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from raybench import storage

ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")


def why_nothing(root: str, suffixes: Sequence[str], level: int) -> str:
    """Why no file with one of these suffixes is so many folders below a root (0: anywhere below)."""
    path = storage.local_path(root)
    if not storage.exists(root):
        return "does not exist"
    if path is not None and path.is_file():
        return "is a packed file; unpack it and name the folder" if root.endswith(ARCHIVES) else "is a file"
    names = [entry.name for entry in storage.list_files(root)]
    if not names:
        return "is empty"
    fitting = [name for name in names if name.lower().endswith(tuple(suffixes)) and "/." not in f"/{name}"]
    depths = [name.count("/") for name in fitting]
    if level and 2 * depths.count(level + 1) > len(names):
        deeper = fitting[depths.index(level + 1)].split("/")[0]
        return f"is a level too high; name {storage.join(root, deeper)}"
    if level and 2 * depths.count(level - 1) > len(names):
        return f"is a level too low; name {posixpath.dirname(root)}"
    return f"holds {len(names):,} files ({names[0]} …) and none that fits"
