"""How the command ends its process: what was registered for the end runs, the exit code is the command's own, and no
thread of Arrow's is left that could abort it."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys
from raybench.cli.commands import main
atexit.register(lambda: print("ended in order"))
main(sys.argv[1:])
print("came back")
"""


@pytest.mark.parametrize(("arguments", "code"), [(["list"], 0), (["run", "nothing"], 2)])
def test_exit_functions_run_and_the_code_is_kept(arguments, code):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == code
    assert said.stdout.endswith("ended in order\n")


def test_reading_parquet_starts_no_thread():
    """One that lets go of a Python buffer while the interpreter ends aborts the process: seen in 4 of 300 processes
    that ended right after `pyarrow.parquet.read_table`."""
    program = """
import io, pathlib
from raybench.formats.parquet import read_parquet, write_parquet
from raybench.formats.parquet_vectors import ParquetVectors
from raybench.formats.vector_kinds import read_plain
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
threads = lambda: len(list(pathlib.Path("/proc/self/task").iterdir()))
before = threads()
data = write_parquet({"a": np.arange(2000.0), "b": np.arange(2000.0)})
read_parquet(data, "x.parquet")
read_plain(data, "rows", ".parquet")
sink = io.BytesIO()
pq.write_table(pa.table({"vectors": [[1.0, 2.0]] * 9, "names": [str(row) for row in range(9)]}), sink, row_group_size=3)
vectors = ParquetVectors(io.BytesIO(sink.getvalue()), "named")
vectors.names(), vectors.rows(0, 9)
print(threads() - before)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert said.stdout == "0\n", said.stderr
