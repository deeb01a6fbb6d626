"""What `preprocessor_config.json` says of a model's pictures, as steps of our own.

Known are the kinds of image processors of transformers whose steps are resize, middle, rescale, normalise. A key that
a file leaves out has the default of its kind, and so have sizes and numbers that are null; a step that is null is none.
Others change pictures in ways of their own, and are refused.
Values are those of transformers' image processors on Pillow, to float32's last bits. Those on torchvision differ by one
grey level at most (0.001 to 0.02 in the mean; DINOv3's, which do not round levels, 0.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from raybench.descriptors.hf_files import PREPROCESSORS, read_json
from raybench.descriptors.model_preprocessing import ModelPreprocess
from raybench.errors import DataError

HALF = [0.5, 0.5, 0.5]
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # of Pillow, by number
USUAL: dict[str, Any] = {
    "do_resize": True,
    "do_center_crop": False,
    "do_rescale": True,
    "do_normalize": True,
    "do_pad": False,
    "resample": 3,
    "rescale_factor": 1 / 255,
    "image_mean": HALF,
    "image_std": HALF,
    "size": {"height": 224, "width": 224},
    "crop_size": {"height": 224, "width": 224},
}
FLAGS = tuple(key for key in USUAL if key.startswith("do_"))
SHORT = {"size": {"shortest_edge": 224}, "do_center_crop": True, **CLIP}
MOBILE = {"size": {"shortest_edge": 256}, "do_center_crop": True, "resample": 2}
KINDS: dict[str, dict[str, Any]] = {  # how each differs from the usual
    "ViT": {"resample": 2},
    "DeiT": {"size": {"height": 256, "width": 256}, "do_center_crop": True},
    "Beit": {},
    "Siglip": {},
    "Bit": SHORT,
    "CLIP": SHORT,
    "ChineseCLIP": SHORT,
    "Blip": {"size": {"height": 384, "width": 384}, **CLIP},
    "Pvt": IMAGENET,
    "MobileNetV1": MOBILE,
    "MobileNetV2": MOBILE,
    "ConvNext": {"size": {"shortest_edge": 384}, "crop_pct": 224 / 256},
    "DINOv3ViT": {"resample": 2, **IMAGENET},  # resizes after rescaling, to parts of a grey level
}
LARGE_PX = 384  # from which edge on ConvNext's pictures are resized whole
MOST_PX = 16_384
LEAST, MOST = 1e-6, 1e6  # of what levels are multiplied with, divided by and reduced by
SQUARES = ("ViT", "DeiT", "Beit", "Blip", "Pvt")  # to which a size of one number is both edges, not the short one
SAY = "give --preprocess published with --size, --mean, --std, or mend the file"


def preprocess_of_model(files: Mapping[str, str], model: str) -> ModelPreprocess:
    """The steps that the model's own file asks for."""
    name = next((name for name in PREPROCESSORS if name in files), None)
    if name is None:
        raise DataError(f"{model}: has no {PREPROCESSORS[0]}, so its own preprocessing is unknown; bring it, or {SAY}")
    uri = files[name]
    said = read_json(uri)
    nested = said.get("image_processor", said)
    if not isinstance(nested, dict):
        raise DataError(f"{uri}: `image_processor` is a {type(nested).__name__}, expected a JSON object; {SAY}")
    return _steps(nested, uri)


def _steps(said: dict[str, Any], uri: str) -> ModelPreprocess:
    kind = _kind(said, uri)
    asked = {**USUAL, **KINDS[kind], **{key: value for key, value in said.items() if value is not None}}
    asked |= dict.fromkeys((key for key in FLAGS if key in said and said[key] is None), False)
    for key in FLAGS:
        if not isinstance(asked[key], bool):
            raise DataError(f"{uri}: `{key}` is {str(asked[key])[:80]}, expected true or false; {SAY}")
    for key in ("do_pad", "use_square_size", *(["do_center_crop"] if kind == "ConvNext" else [])):
        if asked.get(key) is True:
            raise DataError(f"{uri}: asks for `{key}`, which is not known here; {SAY}")
    resize: tuple[int, ...] = ()
    crop = _edges(asked["crop_size"], "crop_size", uri) if asked["do_center_crop"] else None
    if asked["do_resize"]:
        resize = _edges(asked["size"], "size", uri)
        if kind in SQUARES and isinstance(asked["size"], int):
            resize = resize * 2
        if kind == "ConvNext" and crop is None:
            resize, crop = _of_convnext(resize, _number(asked["crop_pct"], "crop_pct", uri), uri)
    if crop is not None and len(crop) == 1:
        crop = crop * 2
    normalised = asked["do_normalize"]
    factor = _number(asked["rescale_factor"], "rescale_factor", uri) if asked["do_rescale"] else 1.0
    resample = asked["resample"]
    if not isinstance(resample, int) or resample not in FILTERS:
        raise DataError(f"{uri}: `resample` is {resample!r}, expected a number of Pillow's filters, 0 to 5; {SAY}")
    return ModelPreprocess(
        resize=resize,
        crop=None if crop is None else (crop[0], crop[1]),
        mean=_channels(asked["image_mean"], "image_mean", uri) if normalised else (0.0, 0.0, 0.0),
        std=_deviations(asked["image_std"], uri) if normalised else (1.0, 1.0, 1.0),
        interpolation=FILTERS[resample],
        divisor=255.0 if math.isclose(factor, 1 / 255, rel_tol=1e-6) else 1 / factor,
    )


def _kind(said: Mapping[str, Any], uri: str) -> str:
    """The kind of image processor: `CLIPImageProcessorFast` and the older `CLIPFeatureExtractor` are `CLIP`."""
    named = str(said.get("image_processor_type") or said.get("feature_extractor_type") or "")
    plain = (
        named.removesuffix("Pil").removesuffix("Fast").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    )
    if plain not in KINDS:
        known = ", ".join(f"{kind}ImageProcessor" for kind in KINDS)
        found = f"`image_processor_type` {named[:80]!r}" if named else "no `image_processor_type`"
        raise DataError(f"{uri}: {found}, expected one of {known}; {SAY}")
    return plain


def _of_convnext(resize: tuple[int, ...], share: float, uri: str) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """A short edge is enlarged by `crop_pct` and cut; a long one makes a square of the whole picture."""
    if len(resize) != 1:
        raise DataError(f"{uri}: `size` of a ConvNextImageProcessor needs `shortest_edge`; {SAY}")
    edge = resize[0]
    if edge >= LARGE_PX:
        return (edge, edge), None
    if not 1 <= edge / share <= MOST_PX:
        raise DataError(f"{uri}: `crop_pct` is {share}, expected a share of the edge, such as 0.875; {SAY}")
    return (int(edge / share),), (edge, edge)


def _edges(said: object, key: str, uri: str) -> tuple[int, ...]:
    """One edge or two of `size` or `crop_size`: a number of older files is an edge, of `crop_size` both."""
    found: list[object] = [said]
    if isinstance(said, dict):
        used = {name: value for name, value in said.items() if value is not None}
        keys = [name for name in (("shortest_edge",), ("height", "width")) if set(name) == set(used)]
        found = [used[name] for name in keys[0]] if keys else []
    if not found or not all(type(value) is int and 0 < value <= MOST_PX for value in found):
        raise DataError(
            f"{uri}: `{key}` is {str(said)[:80]}, expected shortest_edge alone, or height and width, "
            f"in whole px up to {MOST_PX:,}; {SAY}"
        )
    return tuple(value for value in found if isinstance(value, int))


def _number(said: object, key: str, uri: str) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not LEAST <= said <= MOST:
        raise DataError(f"{uri}: `{key}` is {str(said)[:80]}, expected a number from {LEAST} to {MOST:,.0f}; {SAY}")
    return float(said)


def _channels(said: object, key: str, uri: str) -> tuple[float, ...]:
    values: list[Any] = said if isinstance(said, list) else [said] * 3
    if len(values) != 3 or not all(type(value) in (int, float) and abs(value) <= MOST for value in values):
        raise DataError(f"{uri}: `{key}` is {str(said)[:80]}, expected three numbers, of red, green and blue; {SAY}")
    return tuple(float(value) for value in values)


def _deviations(said: object, uri: str) -> tuple[float, ...]:
    values = _channels(said, "image_std", uri)
    if not min(values) >= LEAST:
        raise DataError(f"{uri}: `image_std` is {str(said)[:80]}, must be {LEAST} or more; {SAY}")
    return values
