"""Reading 2 M x 256 named vectors from HDF5 and Parquet into a store, exporting them, and the memory that takes."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import ProblemList
from raybench.extract.isc_files import descriptor_file, isc_content
from raybench.extract.vector_set import read_set
from raybench.sources.named_vectors import NamedVectors
from tests.perf.figures import Memory

COUNT, DIMENSION, BLOCK = 2_000_000, 256, 100_000
MOST_BYTES = 1.5e9  # private: mapped files, such as shards and the export, aside
SAMPLE_SECONDS = 0.02


def figures(folder: Path) -> Iterator[Memory]:
    """A process a file: look through it, read it into shards, write it out again."""
    for write, name in ((write_hdf5, "references.h5"), (write_parquet, "references.parquet")):
        file = folder / name
        write(file)
        command = [sys.executable, "-m", "tests.perf.vector_files", str(file), f"{folder}/{name}.run"]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        scanned, read, exported, peak = (float(word) for word in said)
        seconds = f"look {scanned:.1f} s, read {read:.1f} s, export {exported:.1f} s"
        yield Memory(f"{COUNT:,} x {DIMENSION} {file.suffix}", int(peak), MOST_BYTES, seconds)
        file.unlink()
        subprocess.run(["rm", "-r", f"{folder}/{name}.run"], check=True)


def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Names and vectors, names not in order."""
    random = np.random.default_rng(0)
    numbers = random.permutation(COUNT)
    rows = random.random((BLOCK, DIMENSION), np.float32)
    for start in range(0, COUNT, BLOCK):
        names = np.char.mod("R%07d", numbers[start : start + BLOCK]).astype(np.bytes_)
        yield names, rows + np.float32(start)


def write_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as out:
        out.create_dataset("image_names", (COUNT,), "S8")
        out.create_dataset("vectors", (COUNT, DIMENSION), np.float32)
        for number, (names, rows) in enumerate(blocks()):
            out["image_names"][number * BLOCK : (number + 1) * BLOCK] = names
            out["vectors"][number * BLOCK : (number + 1) * BLOCK] = rows


def write_parquet(path: Path) -> None:
    schema = pa.schema({"vectors": pa.list_(pa.float32(), DIMENSION), "names": pa.binary()})
    with pq.ParquetWriter(path, schema) as out:
        for names, rows in blocks():
            lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), DIMENSION)
            out.write_table(pa.table([lists, pa.array(names)], schema))


def private_bytes() -> int:
    """What this process holds resident beside mapped files and shared memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def watch(peaks: list[int]) -> None:
    """Keep the highest value in the list up to date."""
    while True:
        peaks[0] = max(peaks[0], private_bytes())
        time.sleep(SAMPLE_SECONDS)


def main(file: str, folder: str) -> None:
    """Print seconds of the look, the read and the export, and the peak of private memory, seen often, in bytes."""
    peaks = [0]
    threading.Thread(target=watch, args=(peaks,), daemon=True).start()
    problems = ProblemList()
    marks = [time.perf_counter()]
    source = NamedVectors.scan([file], "stem", problems)
    problems.check()
    assert source is not None
    marks.append(time.perf_counter())
    run = Run(f"{folder}/out", f"{folder}/store", InlineExecutor(Observer()), Observer())
    read = read_set(run, source, "references")
    marks.append(time.perf_counter())
    run.write("{name}.h5", isc_content, [descriptor_file("references", read, source.names)])
    marks.append(time.perf_counter())
    print(*np.diff(marks), peaks[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
