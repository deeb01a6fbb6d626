"""Evaluate copy detection on DISC2021 with the flags of the published sscd/disc_eval.py, as a script or a Ray job.

python -m raybench.jobs.disc_eval --disc_path URI --output_path URI --model_state URI --backbone=CV_RESNET50 …
Further options are those of `raybench run disc2021`.
"""

from __future__ import annotations

import sys

from raybench.cli.commands import main as run_command
from raybench.cli.sscd_flags import disc_arguments


def main() -> None:
    run_command(["run", *disc_arguments(sys.argv[1:])])


if __name__ == "__main__":
    main()
