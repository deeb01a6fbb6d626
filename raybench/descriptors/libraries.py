"""Versions of the libraries that may change a descriptor's figures, and so are a part of its digest."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from raybench.errors import ConfigError

LIBRARIES = {  # by module of this folder
    "pixels": ("opencv",),
    "opencv": ("opencv",),
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


def _version(name: str) -> str:
    if name == "opencv":  # which several packages bring
        import cv2

        return cv2.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        raise ConfigError(f"--descriptor: needs the package {name}: pip install 'raybench[{EXTRAS[name]}]'") from None
