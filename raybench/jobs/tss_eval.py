"""Score dense flow and cosegmentation on TSS, as a script or as a Ray job, with the arguments of the kit's tool.

python -m raybench.jobs.tss_eval -resultsDir Results -datasetDir Dataset [-autoFlip 1] [-usePrec 1] --out DIR [OPTIONS…]

The roots hold the groups (FG3DCar, JODS, PASCAL); `--results_path`, `--dataset_path`, `--auto_flip true` and
`--use_prec true` are the same. Everything else is an option of `raybench run tss`; with `--descriptor METHOD` instead
of results, flows are computed first.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from raybench.cli.commands import main as run_command


def main() -> None:
    run_command(["run", "tss", *tss_arguments(sys.argv[1:])])


def tss_arguments(given: list[str]) -> list[str]:
    """The arguments of `raybench run tss` that these stand for."""
    parser = argparse.ArgumentParser(prog="tss_eval.py", description=__doc__, allow_abbrev=False, add_help=False)
    parser.add_argument("-resultsDir", "--resultsDir", "--results_path", "--results-path", "--results", dest="results")
    parser.add_argument("-datasetDir", "--datasetDir", "--dataset_path", "--dataset-path", "--data", dest="data")
    flag: dict[str, Any] = {"type": _truth, "nargs": "?", "const": True, "default": False}
    parser.add_argument("-autoFlip", "--autoFlip", "--auto_flip", "--auto-flip", dest="auto_flip", **flag)
    parser.add_argument("-usePrec", "--usePrec", "--use_prec", "--use-prec", dest="use_prec", **flag)
    parser.add_argument("--output_path", "--output-path", "--out", dest="out")
    known, others = parser.parse_known_args(given)
    named = [
        word for key in ("data", "results", "out") if getattr(known, key) for word in (f"--{key}", getattr(known, key))
    ]
    flags = [f"--{key.replace('_', '-')}" for key in ("auto_flip", "use_prec") if getattr(known, key)]
    return [*named, *flags, *others]


def _truth(text: str) -> bool:
    if text.lower() not in ("0", "1", "true", "false", "yes", "no"):
        raise argparse.ArgumentTypeError(f"expected 1 or 0, true or false, found {text!r}")
    return text.lower() in ("1", "true", "yes")


if __name__ == "__main__":
    main()
