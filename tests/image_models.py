"""Model files for tests: weights made of their key names alone, the same network as TorchScript, small ONNX graphs."""

import importlib.util
from pathlib import Path

import numpy as np
import torch

from raybench.descriptors.sscd import Sscd
from raybench.descriptors.sscd_network import file_shapes

GOLDEN = Path(__file__).parent / "golden" / "models"


def golden_weight(key, shape):
    """The golden case's tensor of a key."""
    found = importlib.util.spec_from_file_location("make_weights", GOLDEN / "make_weights.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.weight(key, shape)


def state(backbone, dims):
    """All tensors of a weight file, by key."""
    shapes = file_shapes(backbone, dims)
    return {key: torch.from_numpy(np.asarray(golden_weight(key, shape))) for key, shape in shapes.items()}


def weight_file(path, backbone="CV_RESNET18", dims=32):
    """A file for `sscd:PATH` with these two arguments."""
    torch.save(state(backbone, dims), path)
    return path


def torchscript_file(path, weights, backbone="CV_RESNET18", dims=32, pool_param=3.0):
    """A file for `torchscript:PATH` with the network that a weight file fills."""
    network = Sscd(str(weights), 64, "square", backbone=backbone, dims=dims, pool_param=pool_param).load("cpu")
    with torch.no_grad():
        torch.jit.trace(network, torch.zeros(2, 3, 64, 96), check_trace=False).save(str(path))
    return path


def onnx_file(path, shape=("n", 3, "h", "w"), kind="FLOAT", flatten=True, inputs=1):
    """A file for `onnx:PATH` that gives the mean of each channel."""
    import onnx
    from onnx import TensorProto, helper

    given = [helper.make_tensor_value_info(f"x{number}", getattr(TensorProto, kind), shape) for number in range(inputs)]
    nodes = [helper.make_node("GlobalAveragePool", ["x0"], ["pooled"])]
    if flatten:
        nodes.append(helper.make_node("Flatten", ["pooled"], ["rows"]))
    output = helper.make_tensor_value_info("rows" if flatten else "pooled", getattr(TensorProto, kind), None)
    graph = helper.make_graph(nodes, "means", given, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path
