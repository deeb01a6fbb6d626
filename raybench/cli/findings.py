"""What `raybench doctor` finds: rows of what, found and state. Slow questions are asked side by side, with limits."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from raybench import __version__
from raybench.cli.probes import FAISS, GOOD, LOOK, NONE, OPENCV, RAY, STORAGE, TORCH, Answer, ask

LIBRARY_SECONDS, RAY_SECONDS, STORAGE_SECONDS, NETWORK_SECONDS = 30.0, 60.0, 30.0, 3.0
PACKAGES = ("numpy", "pyarrow", "pillow", "h5py", "ray", "fsspec", "s3fs")
EXTRAS = {  # and the extra that brings them
    "onnxruntime": "onnx",
    "pdqhash": "pdq",
    "scikit-image": "demo",
    "transformers": "hf",
    "timm": "timm",
    "torchvision": "torchvision",
}
LEAST_SHM_SHARE = 0.3  # of memory: Ray puts its object store there, and to disk if there is less
LEAST_FREE_BYTES = 5 * 2**30
MEMORY_FILE = Path("/proc/meminfo")
Row = tuple[str, str, str]  # what, found, state


def examined(uris: tuple[str, ...], with_ray: bool) -> list[Row]:
    """Every row; slow questions are asked side by side."""
    slow: dict[str, Callable[[], Answer]] = {
        "torch": lambda: ask(TORCH, seconds=LIBRARY_SECONDS),
        "faiss": lambda: ask(FAISS, seconds=LIBRARY_SECONDS),
        "opencv": lambda: ask(OPENCV, seconds=LIBRARY_SECONDS),
        "GPUs by nvidia-smi": gpus_by_driver,
        "S3 endpoint": lambda: endpoint(os.environ),
    }
    if with_ray:
        address = os.environ.get("RAY_ADDRESS") or "local"
        slow[f"Ray ({address})"] = lambda: ask(RAY, address, seconds=RAY_SECONDS)
    for uri in uris:
        slow[uri] = lambda uri=uri: ask(STORAGE, uri, seconds=STORAGE_SECONDS)  # type: ignore[misc]
    with ThreadPoolExecutor(len(slow)) as pool:
        answers = pool.map(lambda question: question(), slow.values())
        rows = [*of_machine(), *of_packages(), ("S3 credentials", *credentials(os.environ, Path.home()))]
        return rows + [(what, answer.words, answer.state) for what, answer in zip(slow, answers, strict=True)]


def of_machine() -> list[Row]:
    """Versions, processors, memory and room on disks."""
    rows = [
        ("raybench", __version__, GOOD),
        ("python", f"{platform.python_version()} on {platform.platform()}", GOOD),
        ("CPUs", f"{os.cpu_count()}", GOOD),
    ]
    total = 0
    if MEMORY_FILE.exists():
        total, available = memory(MEMORY_FILE.read_text())
        rows.append(("memory", f"{_gb(available)} of {_gb(total)} GB free", GOOD))
    least = {"/dev/shm": LEAST_SHM_SHARE * total, ".": LEAST_FREE_BYTES, tempfile.gettempdir(): LEAST_FREE_BYTES}
    for folder in filter(os.path.isdir, least):
        room = shutil.disk_usage(folder)
        state = GOOD if room.free >= least[folder] else LOOK
        rows.append((f"room in {folder}", f"{_gb(room.free)} of {_gb(room.total)} GB free", state))
    return rows


def memory(text: str) -> tuple[int, int]:
    """Bytes of a machine, and how many of them are available, by its /proc/meminfo.

    >>> memory("MemTotal: 1000 kB\\nMemAvailable: 10 kB")
    (1024000, 10240)
    """
    kilobytes = {words[0]: int(words[1]) for words in map(str.split, text.splitlines())}
    return 1024 * kilobytes["MemTotal:"], 1024 * kilobytes["MemAvailable:"]


def of_packages() -> list[Row]:
    rows: list[Row] = []
    for package in PACKAGES:
        found = _version(package)
        rows.append((package, found or "not installed", GOOD if found else LOOK))
    for package, extra in EXTRAS.items():
        found = _version(package)
        rows.append((package, found or f"not installed; optional, raybench[{extra}]", GOOD if found else NONE))
    return rows


def gpus_by_driver() -> Answer:
    """What the driver's own tool says."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Answer("no nvidia-smi: no GPU of NVIDIA, or no driver", NONE)
    query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run([tool, *query], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Answer(f"nvidia-smi: {type(error).__name__}", LOOK)
    return Answer("; ".join((said.stdout or said.stderr).strip().splitlines()), LOOK if said.returncode else GOOD)


def credentials(environment: Mapping[str, str], home: Path) -> tuple[str, str]:
    """Which kinds are there, by name; never a value."""
    named = [
        name for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN") if name in environment
    ]
    named += [f"{name} (a profile)" for name in ("AWS_PROFILE",) if name in environment]
    named += ["~/.aws/credentials"] if (home / ".aws/credentials").is_file() else []
    half = ("AWS_ACCESS_KEY_ID" in environment) != ("AWS_SECRET_ACCESS_KEY" in environment)
    return (f"set: {', '.join(named)}" if named else "none set here", LOOK if half else GOOD if named else NONE)


def endpoint(environment: Mapping[str, str]) -> Answer:
    """Whether somebody listens where S3 is; asked only where the environment names an endpoint or a key."""
    url = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    if url is None and "AWS_ACCESS_KEY_ID" not in environment:
        return Answer("not tried: neither AWS_ENDPOINT_URL nor a key is set", NONE)
    try:
        parts = urlsplit(url or "https://s3.amazonaws.com")
        host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
        socket.create_connection((host, port), timeout=NETWORK_SECONDS).close()
    except (OSError, ValueError) as error:
        return Answer(f"{url or 's3.amazonaws.com'}: {error}", LOOK)
    return Answer(f"{host}:{port} answers")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _gb(count: int) -> str:
    return f"{count / 1e9:,.1f}"
