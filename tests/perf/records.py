"""What a run of the bench leaves: a JSON file with the machine, the commit and every figure, which `compare` reads."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path("runs/bench")
LIBRARIES = ("numpy", "torch", "faiss-cpu", "faiss-gpu", "ray", "pillow", "pyarrow", "opencv-python-headless")


def machine() -> dict[str, Any]:
    """Where figures were taken: what must be the same for two files to be comparable, and which code ran."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": _after_colon("/proc/cpuinfo", "model name") or platform.processor(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "versions": {"python": platform.python_version(), **_versions()},
        "commit": _git("rev-parse", "HEAD"),
        "modified": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def record_of(figure: Any) -> dict[str, Any]:
    """A figure by its own account; a line without numbers as text."""
    record = getattr(figure, "record", None)
    return record() if record is not None else {"name": figure.line(), "text": True}


def named_apart(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same records; of those of one name ("the same, …") the second is called (2), and so on.

    >>> [one["name"] for one in named_apart([{"name": "a"}, {"name": "a"}, {"name": "b"}])]
    ['a', 'a (2)', 'b']
    """
    seen: Counter[str] = Counter()
    apart = []
    for one in records:
        seen[one["name"]] += 1
        count = seen[one["name"]]
        apart.append(one if count == 1 else {**one, "name": f"{one['name']} ({count})"})
    return apart


class Record:
    """The file of one run: written again after each bench, so that one that is stopped leaves what it measured."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._begun = time.time()
        self.path = folder / f"{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime(self._begun))}.json"
        self._loads = [os.getloadavg()[0]]
        self._machine = machine()
        self._figures: list[dict[str, Any]] = []
        self._seconds: dict[str, float] = {}

    def add(self, bench: str, figures: Sequence[Any], seconds: float) -> None:
        """Keep a bench's figures and how long it took."""
        self._figures += named_apart([{"bench": bench, **record_of(figure)} for figure in figures])
        self._seconds[bench] = round(seconds, 1)
        self._loads.append(os.getloadavg()[0])
        content = {
            "machine": self._machine,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._begun)),
            "load": [min(self._loads), max(self._loads)],
            "seconds": self._seconds,
            "figures": self._figures,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(content, indent=1) + "\n")


def _versions() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _after_colon(path: str, key: str) -> str:
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _git(*arguments: str) -> str:
    said = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return said.stdout.strip()
