"""Dense flow and cosegmentation on TSS with the arguments of the kit's tool.

raybench/jobs/tss_eval.py says how it is called."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a job's working dir need not be installed

from raybench.jobs.tss_eval import main

if __name__ == "__main__":
    main()
