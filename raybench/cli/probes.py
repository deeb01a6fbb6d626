"""Questions that `raybench doctor` puts to libraries and storage, each in a process of its own with a time limit.

A library whose import hangs or dies must not take the doctor with it. Each program prints one line.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass

TORCH = """
from raybench.descriptors.cuda import gpu_facts
import torch
found = gpu_facts()
built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for CPUs"
print(f"{torch.__version__}, {built}; {found.problem or found.words}")
"""
FAISS = """
import faiss
gpus = faiss.get_num_gpus() if hasattr(faiss, "get_num_gpus") else 0
print(f"{faiss.__version__}, {f'sees {gpus} GPUs' if gpus else 'CPU only'}, {faiss.omp_get_max_threads()} threads")
"""
OPENCV = """
import cv2
from raybench.descriptors import CONTRIB_INSTALL
contrib = "with contrib" if hasattr(cv2, "xfeatures2d") else f"no contrib (optional: {CONTRIB_INSTALL})"
print(f"{cv2.__version__}, {cv2.getNumThreads()} threads, {contrib}")
"""
RAY = """
import sys, time
started = time.monotonic()
from raybench.engine.progress import Observer
from raybench.engine.ray_environment import for_the_driver
with for_the_driver(local=sys.argv[1] == "local"):
    from raybench.engine.ray_core import connect
executor = connect(sys.argv[1], cpus=None, gpus=None, device="auto", observer=Observer())
seconds, there = time.monotonic() - started, executor.cluster()
print(f"up in {seconds:.1f} s: {there['nodes']} nodes, {there['cpus']} CPUs, {there['gpus']} GPUs", flush=True)
executor.close()
"""
STORAGE = """
import secrets, sys
from raybench import storage
uri = storage.checked(sys.argv[1])
folder = storage.join(uri, f"raybench-doctor-{secrets.token_hex(4)}")
file = storage.join(folder, "try")
path = storage.local_path(uri)
if path is not None and not path.is_dir():
    sys.exit(f"{uri}: no folder")
storage.publish(file, b"raybench")
listed, read = [entry.name for entry in storage.list_files(folder)], storage.read(file)
storage.delete(file)
storage.delete_folder(folder)
if (listed, read) != (["try"], b"raybench"):
    sys.exit(f"{uri}: what was written is not what is listed or read")
print("written, listed, read and deleted a small file")
"""


OWN_ERROR = re.compile(r"^raybench\.errors\.\w+: ")
GOOD, LOOK, NONE = "good", "look here", "–"


@dataclass(frozen=True)
class Answer:
    """A line, and whether it is good, a reason to look, or neither."""

    words: str
    state: str = GOOD


def ask(program: str, *arguments: str, seconds: float) -> Answer:
    """What a program prints; its last words if it fails; that there is no answer if it takes longer."""
    command = [sys.executable, "-c", program, *arguments]
    asked = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    )
    try:
        out, err = asked.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(asked.pid, signal.SIGKILL)  # with what it started
        asked.communicate()
        return Answer(f"no answer within {seconds:.0f} s", LOOK)
    lines = (out if asked.returncode == 0 else err).strip().splitlines()
    words = OWN_ERROR.sub("", lines[-1]) if lines else f"ended with {asked.returncode}"
    return Answer(words, LOOK if asked.returncode else GOOD)
