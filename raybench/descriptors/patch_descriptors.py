"""Patch descriptors: the protocol, and how a spec becomes an object with a digest.

A descriptor is a class with a `name` and two methods. `prepare` runs in CPU load tasks, `describe` on the device. What
it returns must not depend on which other patches stand in the batch, beyond float rounding.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors import DESCRIPTORS, MODEL_FILES, OF_PATCHES, kinds_but
from raybench.descriptors.precision import EXACT, Precision
from raybench.descriptors.specs import DescriptorSpec, Family, resolve_in

FAMILY = Family(DESCRIPTORS, MODEL_FILES, ("prepare", "describe"), kinds_but(OF_PATCHES))


class Descriptor(Protocol):
    """What every descriptor has. Optional: `distance` ("L2"), `uses_gpu` (True), `version` (1), `digest` (in
    the place of that of code and files, see `own_identity`), `to(device)`, and `describe_each(batches)`, which may copy
    one batch to the device while it computes another."""

    @property
    def name(self) -> str: ...

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[Any]:
        """On a CPU: what `describe` takes, from patches (n, side, side)."""
        ...

    def describe(self, prepared: NDArray[Any]) -> NDArray[Any]:
        """On the device: (n, dim) floats, or uint8 for binary descriptors."""
        ...


def resolve(spec: str, arguments: dict[str, Any], precision: Precision = EXACT) -> DescriptorSpec:
    """Check a `--descriptor` of patches and its arguments; unknown names get the list and the nearest one."""
    return resolve_in(FAMILY, spec, arguments, precision)
