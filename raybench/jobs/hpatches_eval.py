"""Evaluate patch descriptors on HPatches, as a script or as a Ray job.

python -m raybench.jobs.hpatches_eval [BENCHMARK] OPTIONS…    the benchmark is hbench-classification unless named
                                                              (`hpatches`: the three of 2017 at once); options are
                                                              those of `raybench run BENCHMARK`.
"""

from __future__ import annotations

import sys

from raybench.cli.commands import main as run_command


def main() -> None:
    given = sys.argv[1:]
    named = given and not given[0].startswith("-")
    run_command(["run", *given] if named else ["run", "hbench-classification", *given])


if __name__ == "__main__":
    main()
