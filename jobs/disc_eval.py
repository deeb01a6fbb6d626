"""Copy detection on DISC2021 with the flags of the published sscd/disc_eval.py.

raybench/jobs/disc_eval.py says how it is called."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a job's working dir need not be installed

from raybench.jobs.disc_eval import main

if __name__ == "__main__":
    main()
