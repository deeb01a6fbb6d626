"""The GPU of this process as torch finds it: which device to compute on, or why a GPU that is there is of no use.

Ray grants logical GPUs, too, so a grant says nothing; and a GPU whose driver is too old for this torch looks to
`torch.cuda.is_available()` like none at all. The one is computed on CPUs, the other is refused.
"""

from __future__ import annotations

import gc
import re
import socket
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from raybench.errors import ConfigError, reason_of

CONTROL_FILE = Path("/dev/nvidiactl")  # there where a GPU of NVIDIA is given to this machine or container
VERSION_FILE = Path("/proc/driver/nvidia/version")
LEAST_FREE_BYTES = 2**30  # below that neither a network nor a slice of references fits


@dataclass(frozen=True)
class GpuFacts:
    """What was found: `problem` is why torch can't use the GPU, in a line; without a GPU `is_there` is False."""

    is_there: bool
    driver: str = ""
    torch: str = ""
    model: str = ""
    free_bytes: int = 0
    total_bytes: int = 0
    problem: str = ""

    @property
    def words(self) -> str:
        """For receipts and messages.

        >>> GpuFacts(True, "580.82.07", "2.13.0+cu130", "A10G", 21 * 2**30, 22 * 2**30).words
        'A10G, driver 580.82.07, torch 2.13.0+cu130, 21.0 of 22.0 GB free'
        """
        if not self.is_there:
            return "no GPU that torch sees"
        free, total = (count / 2**30 for count in (self.free_bytes, self.total_bytes))
        return f"{self.model}, driver {self.driver}, torch {self.torch}, {free:.1f} of {total:.1f} GB free"

    def check(self) -> None:
        """Refuse a GPU that is there but of no use."""
        where = f"the GPU of {socket.gethostname()}"
        if self.problem:
            raise ConfigError(
                f"{where}: torch {self.torch} can't use it with driver {self.driver or 'unknown'} ({self.problem}); "
                "install versions that fit together (see constraints.txt), or give --device cpu"
            )
        if self.is_there and self.free_bytes < LEAST_FREE_BYTES:
            free, total = (count / 2**20 for count in (self.free_bytes, self.total_bytes))
            raise ConfigError(
                f"{where}: {free:,.0f} of {total:,.0f} MB are free, expected {LEAST_FREE_BYTES // 2**20:,}; "
                "end the process that holds the rest, or give --device cpu"
            )


@cache
def gpu_facts() -> GpuFacts:
    """What this process found when it first looked."""
    import torch

    driver = driver_version(VERSION_FILE)
    if not torch.cuda.is_available():
        is_there = CONTROL_FILE.exists()
        return GpuFacts(is_there, driver, torch.__version__, problem=_why_not() if is_there else "")
    try:
        free, total = torch.cuda.mem_get_info()
        return GpuFacts(True, driver, torch.__version__, torch.cuda.get_device_name(), free, total)
    except RuntimeError as cause:
        return GpuFacts(True, driver, torch.__version__, problem=reason_of(cause))


def gpu_words() -> str:
    """What this process found, if it looked: torch is imported for no message."""
    return gpu_facts().words if "torch" in sys.modules else ""


def device_for_torch(gpu: bool, found: GpuFacts | None = None) -> str:
    """`cuda` where a GPU was granted and torch can use it, else `cpu`; a GPU that torch can't use is refused."""
    if not gpu:
        return "cpu"
    facts = found or gpu_facts()
    facts.check()
    return "cuda" if facts.is_there else "cpu"


def give_back_memory() -> None:
    """Let go of what torch keeps on the GPU for later, so that another library finds it free."""
    torch = sys.modules.get("torch")  # a process that never used it has nothing to give
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()  # a compiled network is in cycles
        torch.cuda.empty_cache()


def driver_version(file: Path) -> str:
    """The version that NVIDIA's kernel module says of itself; empty where there is none."""
    try:
        found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", file.read_text())
    except OSError:
        return ""
    return found[1] if found else ""


def _why_not() -> str:
    """What torch says when it is asked for a GPU that it did not find."""
    import torch

    if torch.version.cuda is None:
        return "this build of torch is for CPUs"
    cuda: Any = torch.cuda  # torch leaves `init` without types
    try:
        cuda.init()
    except RuntimeError as cause:
        return reason_of(cause)
    return "it sees no GPU; is one named in CUDA_VISIBLE_DEVICES?"
