"""Versions of the libraries that may change a descriptor's figures, and so are a part of its digest."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from raybench.descriptors import CONTRIB_INSTALL
from raybench.errors import ConfigError

LIBRARIES = {  # by module of this folder
    "pixels": ("opencv",),
    "opencv": ("opencv",),
    "opencv_contrib": ("opencv-contrib",),
    "torchscript": ("opencv", "torch"),
    "flow_opencv": ("opencv",),
    "dense_sift": ("opencv",),
    "image_networks": ("torch",),
    "sscd": ("torch",),
    "onnx_images": ("onnxruntime",),
    "hf_images": ("transformers", "torch", "pillow"),
    "timm_images": ("timm", "torch", "pillow"),
    "torchvision_images": ("torchvision", "torch", "pillow"),
    "pdq": ("pdqhash",),
    "thumbnail": ("pillow",),
}
CONTRIB_CLASSES = ("VGG", "BoostDesc", "BEBLID", "TEBLID", "LATCH", "DAISY", "BriefDescriptorExtractor")
EXTRAS = {  # of raybench, that bring a library
    "onnxruntime": "onnx",
    "pdqhash": "pdq",
    "transformers": "hf",
    "timm": "timm",
    "torchvision": "torchvision",
}


def libraries_of(target: str) -> str:
    """What `module:Class` rests on, such as `opencv 4.11.0, torch 2.6.0`; nothing for a class of the user's."""
    folder, _, module = target.partition(":")[0].rpartition(".")
    names = LIBRARIES[module] if folder == "raybench.descriptors" else ()
    return ", ".join(f"{name} {_version(name)}" for name in names)


def contrib_features() -> Any:
    """The module `cv2.xfeatures2d`, or how to get it: on the driver before a run, and on each worker."""
    import cv2

    found = getattr(cv2, "xfeatures2d", None)
    lacks = [name for name in CONTRIB_CLASSES if not hasattr(found, name)]
    if found is None or lacks:
        what = f"has no {', '.join(lacks)}" if found else "is without its contrib modules (xfeatures2d)"
        raise ConfigError(
            f"--descriptor: OpenCV {cv2.__version__} in {cv2.__file__} {what}; the wheel with them takes the place of "
            f"the plain one: {CONTRIB_INSTALL}"
        )
    return found


def _version(name: str) -> str:
    if name == "opencv-contrib":
        contrib_features()
    if name.startswith("opencv"):  # which several packages bring
        import cv2

        return cv2.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        raise ConfigError(f"--descriptor: needs the package {name}: pip install 'raybench[{EXTRAS[name]}]'") from None
