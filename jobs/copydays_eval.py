"""Evaluate copy detection on Copydays with distractors, with the flags of the published sscd/copydays_eval.py.

python jobs/copydays_eval.py --copydays_path URI --output_path URI --model_state URI --backbone=CV_RESNET50 --dims=512 …
Further options are those of `raybench run copydays`.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # a job's working dir need not be installed

from raybench.cli.commands import main
from raybench.cli.sscd_flags import copydays_arguments

if __name__ == "__main__":
    main(["run", *copydays_arguments(sys.argv[1:])])
