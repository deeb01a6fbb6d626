"""Flow methods: the protocol, the built-in ones by name, and how a spec becomes one.

A flow method is a class with a `name` and one method. What it returns for a pair must not depend on which other pairs
stand in the batch, beyond float rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.specs import DescriptorSpec, Family, resolve_in

FLOW_METHODS = {
    "zero": "raybench.descriptors.flow_opencv:Zero",
    "farneback": "raybench.descriptors.flow_opencv:Farneback",
    "dis": "raybench.descriptors.flow_opencv:Dis",
    "dense-sift": "raybench.descriptors.dense_sift:DenseSift",
}

ImagePair = tuple[NDArray[np.uint8], NDArray[np.uint8]]


class FlowMethod(Protocol):
    """What every flow method has. Optional: `flows(pairs)` for batches, `uses_gpu`, `version`, `to(device)`."""

    @property
    def name(self) -> str: ...

    def flow(self, image1: NDArray[np.uint8], image2: NDArray[np.uint8]) -> NDArray[Any]:
        """Flow (height, width, 2) from one RGB image (height, width, 3) into another, which may have another size."""
        ...


def resolve_flow(spec: str, arguments: dict[str, Any]) -> DescriptorSpec:
    """Check a `--descriptor` that names a flow method."""
    return resolve_in(Family(FLOW_METHODS, {}, ("flow",)), spec, arguments)


def flows_of(method: Any, pairs: Sequence[ImagePair], batch_size: int) -> list[NDArray[Any]]:
    """The flow of each pair: in batches if the method has `flows`, else one by one."""
    if not hasattr(method, "flows"):
        return [np.asarray(method.flow(*pair)) for pair in pairs]
    found: list[NDArray[Any]] = []
    for start in range(0, len(pairs), batch_size):
        found.extend(np.asarray(flow) for flow in method.flows(list(pairs[start : start + batch_size])))
    return found
