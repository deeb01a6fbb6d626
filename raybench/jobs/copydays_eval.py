"""Evaluate copy detection on Copydays with distractors, with the flags of the published sscd/copydays_eval.py.

python -m raybench.jobs.copydays_eval --copydays_path URI --output_path URI --model_state URI --backbone=CV_RESNET50 …
Further options are those of `raybench run copydays`.
"""

from __future__ import annotations

import sys

from raybench.cli.commands import main as run_command
from raybench.cli.sscd_flags import copydays_arguments


def main() -> None:
    run_command(["run", *copydays_arguments(sys.argv[1:])])


if __name__ == "__main__":
    main()
