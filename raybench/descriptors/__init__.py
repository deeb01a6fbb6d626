"""What `--descriptor` may name: literal dicts from names and kinds of model files to `module:Class`.

Nothing is imported here, so that lists and help are quick. The protocols are in `patch_descriptors`,
`image_descriptors` and, of flow methods, in `benchmarks.tss.methods`.
"""

from __future__ import annotations

DESCRIPTORS = {  # of patches
    "meanstd": "raybench.descriptors.pixels:MeanStd",
    "resize": "raybench.descriptors.pixels:Resize",
    "sift": "raybench.descriptors.opencv:Sift",
    "rootsift": "raybench.descriptors.opencv:RootSift",
    "orb": "raybench.descriptors.opencv:Orb",
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

# Kinds of model files that hold code, which runs when they are opened. Others are read as numbers and known operators.
RUN_CODE = ("torchscript",)

FLOW_METHODS = {
    "zero": "raybench.descriptors.flow_opencv:Zero",
    "farneback": "raybench.descriptors.flow_opencv:Farneback",
    "dis": "raybench.descriptors.flow_opencv:Dis",
    "dense-sift": "raybench.descriptors.dense_sift:DenseSift",
}
