"""What `--descriptor` may name: literal dicts from names and kinds of model files to `module:Class`.

Nothing is imported here, so that lists and help are quick. The protocols are in `patch_descriptors`,
`image_descriptors` and, of flow methods, in `benchmarks.tss.methods`.
"""

from __future__ import annotations

# Of patches, by the contrib modules of OpenCV.
CONTRIB_DESCRIPTORS = {
    "vgg": "raybench.descriptors.opencv_contrib:Vgg",
    "boostdesc": "raybench.descriptors.opencv_contrib:BoostDesc",
    "beblid": "raybench.descriptors.opencv_contrib:Beblid",
    "beblid-256": "raybench.descriptors.opencv_contrib:Beblid256",
    "teblid": "raybench.descriptors.opencv_contrib:Teblid",
    "teblid-256": "raybench.descriptors.opencv_contrib:Teblid256",
    "latch": "raybench.descriptors.opencv_contrib:Latch",
    "daisy": "raybench.descriptors.opencv_contrib:Daisy",
    "brief": "raybench.descriptors.opencv_contrib:Brief",
}
# Both wheels bring the module cv2, and pip has no word for "instead of": taking the plain one off later would take off
# files of the other. Version 5 changed `remap`, which the TSS rules rest on.
CONTRIB_INSTALL = "pip uninstall -y opencv-python-headless && pip install 'opencv-contrib-python-headless>=4.9,<5'"
DESCRIPTORS = {  # of patches
    "meanstd": "raybench.descriptors.pixels:MeanStd",
    "resize": "raybench.descriptors.pixels:Resize",
    "sift": "raybench.descriptors.opencv:Sift",
    "rootsift": "raybench.descriptors.opencv:RootSift",
    "orb": "raybench.descriptors.opencv:Orb",
    **CONTRIB_DESCRIPTORS,
}
MODEL_FILES = {
    "torchscript": "raybench.descriptors.torchscript:TorchScript",
}

IMAGE_DESCRIPTORS = {
    "pdq": "raybench.descriptors.pdq:Pdq",
    "pdq-float": "raybench.descriptors.pdq:PdqFloat",
    "thumbnail": "raybench.descriptors.thumbnail:Thumbnail",
}
IMAGE_MODEL_FILES = {
    "torchscript": "raybench.descriptors.image_networks:ImageTorchScript",
    "sscd": "raybench.descriptors.sscd:Sscd",
    "onnx": "raybench.descriptors.onnx_images:OnnxImages",
}
# Models by name or folder, from libraries; each kind has an extra of raybench of the same name.
IMAGE_MODEL_NAMES = {
    "hf": "raybench.descriptors.hf_images:HfImages",
    "timm": "raybench.descriptors.timm_images:TimmImages",
    "torchvision": "raybench.descriptors.torchvision_images:TorchvisionImages",
}

# Kinds of model files that hold code, which runs when they are opened. Others are read as numbers and known operators.
RUN_CODE = ("torchscript",)

FLOW_METHODS = {
    "zero": "raybench.descriptors.flow_opencv:Zero",
    "farneback": "raybench.descriptors.flow_opencv:Farneback",
    "dis": "raybench.descriptors.flow_opencv:Dis",
    "dense-sift": "raybench.descriptors.dense_sift:DenseSift",
}

# Names of each kind of descriptor with its kinds of model files, by what they are.
OF_PATCHES, OF_IMAGES, OF_PAIRS = "a patch descriptor", "an image descriptor", "a flow method"
KINDS = {
    OF_PATCHES: {**DESCRIPTORS, **MODEL_FILES},
    OF_IMAGES: {**IMAGE_DESCRIPTORS, **IMAGE_MODEL_FILES, **IMAGE_MODEL_NAMES},
    OF_PAIRS: FLOW_METHODS,
}


def kinds_but(own: str) -> dict[str, dict[str, str]]:
    """What the other kinds have and this one has not."""
    return {
        kind: {name: where for name, where in named.items() if name not in KINDS[own]}
        for kind, named in KINDS.items()
        if kind != own
    }
