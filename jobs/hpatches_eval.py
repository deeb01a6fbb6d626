"""Evaluate patch descriptors on HPatches, as a script or as a Ray job.

python jobs/hpatches_eval.py [BENCHMARK] OPTIONS…    the benchmark is hbench-classification unless named
                                                     (`hpatches`: the three of 2017 at once); options are
                                                     those of `raybench run BENCHMARK`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a job's working dir need not be installed

from raybench.cli.commands import main

if __name__ == "__main__":
    given = sys.argv[1:]
    named = given and not given[0].startswith("-")
    main(["run", *given] if named else ["run", "hbench-classification", *given])
