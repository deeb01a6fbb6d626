"""Evaluate copy detection on DISC2021 with the flags of the published sscd/disc_eval.py, as a script or a Ray job.

python jobs/disc_eval.py --disc_path URI --output_path URI --model_state URI --backbone=CV_RESNET50 --dims=512 …
Further options are those of `raybench run disc2021`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a job's working dir need not be installed

from raybench.cli.commands import main
from raybench.cli.sscd_flags import disc_arguments

if __name__ == "__main__":
    main(["run", *disc_arguments(sys.argv[1:])])
