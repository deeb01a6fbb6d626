"""The flags of the published SSCD evaluation scripts, put into ours. What they mean, `raybench run` says.

Names, kinds and defaults are those of sscd/disc_eval.py and sscd/copydays_eval.py; whatever else is given goes to
`raybench run` as it is (`--ray`, `--store`, `--device` …).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from raybench.descriptors.model_files import kind_of_model
from raybench.errors import InputError

RENAMED = {
    "disc_path": "data",
    "copydays_path": "data",
    "distractor_path": "distractors",
    "codec_train_path": "training",
    "output_path": "out",
}
MODEL = ("backbone", "dims", "pool_param")  # meant for a weight file only
BOOLEANS = {"1": "true", "yes": "true", "t": "true", "0": "false", "no": "false", "f": "false"}


def disc_arguments(given: Sequence[str]) -> list[str]:
    """Arguments of `raybench run disc2021` for those of the published disc_eval.py."""
    parser = _parser("disc_eval.py", "--disc_path", {})
    parser.add_argument("--score_norm", help="WEIGHT[FIRST,LAST], several separated by ; [default: 1.0[0,2]]")
    parser.add_argument("--k", type=int, default=10, help="candidates per query")
    parser.add_argument("--global_candidates", type=_truth, default="false", help="the best k x queries pairs instead")
    return ["disc2021", *_renamed(*parser.parse_known_args(given))]


def copydays_arguments(given: Sequence[str]) -> list[str]:
    """Arguments of `raybench run copydays` for those of the published copydays_eval.py."""
    parser = _parser("copydays_eval.py", "--copydays_path", {"codecs": "Flat"})
    parser.add_argument("--distractor_path", help="folder of distractor images")
    parser.add_argument("--codec_train_path", help="folder of images that codecs are trained on")
    parser.add_argument("--k", type=int, default=100, help="neighbours per query")
    return ["copydays", *_renamed(*parser.parse_known_args(given))]


def _parser(name: str, data: str, defaults: dict[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        name, description="The published flags; others go to `raybench run` (see its --help).", allow_abbrev=False
    )
    parser.add_argument(data, help="root of the data set; not needed with --features")
    parser.add_argument("--output_path", required=True, help="folder for tables and checkpoints, any URI")
    parser.add_argument(
        "--model_state",
        help="weights (with --backbone, --dims), a TorchScript or an ONNX file, any URI; a TorchScript file "
        "runs its own code: only use files you trust",
    )
    parser.add_argument("--features", help="descriptors instead of a model: a folder, or a .pt file of the SSCD tools")
    parser.add_argument("--gpus", type=int, help="ask for this many and wait for them [default: all there are]")
    parser.add_argument("--size", type=int, default=288, help="edge in px")
    parser.add_argument("--preserve_aspect_ratio", type=_truth, default="false", help="true: the short edge to --size")
    parser.add_argument("--resize_long_edge", type=_truth, default="false", help="true: the long edge to --size")
    parser.add_argument("--backbone", default="TV_RESNET50", help="of the weights")
    parser.add_argument("--dims", type=int, default=512, help="of the descriptors")
    parser.add_argument("--pool_param", type=float, default=3.0, help="power of the GeM pooling")
    parser.add_argument("--codecs", default=defaults.get("codecs"), help="FAISS index_factory strings separated by ;")
    parser.add_argument("--metadata", help="text for a last column of the table")
    return parser


def _truth(text: str) -> str:
    text = BOOLEANS.get(text.lower(), text.lower())
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"expected true or false, found {text!r}")
    return text


def _renamed(known: argparse.Namespace, others: list[str]) -> list[str]:
    values = {key: value for key, value in vars(known).items() if value is not None}
    model = values.pop("model_state", None)
    kind = None
    if model is not None:
        try:
            kind, uri = kind_of_model(model)
        except InputError:  # `raybench run` says what is wrong with it, beside all else
            kind, uri = "sscd", model
        values["descriptor"] = f"{kind}:{uri}"
    if kind != "sscd":
        for key in MODEL:
            values.pop(key)
    named = [part for key, value in values.items() for part in (f"--{RENAMED.get(key, key)}", str(value))]
    return [*named, *others]
