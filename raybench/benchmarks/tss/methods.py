"""Flow methods: the protocol, and the stage that computes flows of pairs, both ways.

A flow method is a class with a `name` and one method. What it returns for a pair must not depend on which other pairs
stand in the batch, beyond float rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.trees import FlowPair, FlowsAndMasks, ImagesOfPair, TreeImages
from raybench.descriptors import FLOW_METHODS, OF_PAIRS, kinds_but
from raybench.descriptors.own_errors import blamed_on_class
from raybench.descriptors.specs import DescriptorSpec, Family, resolve_in
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError, OutOfReach
from raybench.formats.flo import FlowField, write_flo
from raybench.formats.shardfile import Arrays

PAIRS_PER_FLOWING = 4  # in a shard, of 800 x 600: 31 MB of flow
PAIRS_PER_BATCH = 4

ImagesOrReason = ImagesOfPair | str  # a pair's images, or why they can't be read


class FlowMethod(Protocol):
    """What every flow method has. Optional: `flows(pairs)` for batches, `uses_gpu`, `version`, `digest`,
    `to(device)`."""

    @property
    def name(self) -> str: ...

    def flow(self, image1: NDArray[np.uint8], image2: NDArray[np.uint8]) -> NDArray[Any]:
        """Flow (height, width, 2) from one RGB image (height, width, 3) into another, which may have another size."""
        ...


def resolve_flow(spec: str, arguments: dict[str, Any]) -> DescriptorSpec:
    """Check a `--descriptor` that names a flow method."""
    return resolve_in(Family(FLOW_METHODS, {}, ("flow",), kinds_but(OF_PAIRS)), spec, arguments)


def flows_of(method: Any, pairs: Sequence[ImagesOfPair], batch_size: int) -> list[NDArray[Any]]:
    """The flow of each pair: in batches if the method has `flows`, else one by one."""
    if not hasattr(method, "flows"):
        return [np.asarray(method.flow(*pair)) for pair in pairs]
    found: list[NDArray[Any]] = []
    for start in range(0, len(pairs), batch_size):
        found.extend(np.asarray(flow) for flow in method.flows(list(pairs[start : start + batch_size])))
    return found


@dataclass(frozen=True)
class DenseFlow:
    """The stage that computes flows. With `skip`, images that can't be read give no flow but the reason."""

    pairs: tuple[FlowPair, ...]
    images: TreeImages
    method: DescriptorSpec
    device: str
    batch_size: int | None
    skip: bool = False

    name = "dense-flow"
    version = 1

    @property
    def digest(self) -> str:
        parts = (self.images, self.method, self.device, self.batch_size, self.skip)
        return digest_of(self.name, self.version, *parts)

    @property
    def on_device(self) -> bool:
        return self.device == "gpu"

    @cached_property
    def _opened(self) -> Any:
        return self.method.placed(self.method.open(), gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_opened"}

    def load(self, shard: Shard) -> list[tuple[str, ImagesOrReason]]:
        return [(pair.name, self._images(pair)) for pair in self.pairs[shard.start : shard.stop]]

    def compute(self, payload: list[tuple[str, ImagesOrReason]]) -> Arrays:
        usable = [(name, images) for name, images in payload if not isinstance(images, str)]
        both = [(name, way) for name, (a, b) in usable for way in ((a, b), (b, a))]
        with blamed_on_class(self.method.target):
            found = flows_of(self._opened, [way for _, way in both], self.batch_size or PAIRS_PER_BATCH)
        if len(found) != len(both):
            raise DataError(f"{self._said(both[0][0])}: {len(found)} flows for {len(both)} pairs; expected one each")
        flows = iter([self._checked(name, flow) for (name, _), flow in zip(both, found, strict=True)])
        nothing = np.zeros((0, 0, 2), np.float32)
        fields = [nothing if isinstance(images, str) else next(flows) for _, images in payload for _ in (1, 2)]
        reasons = [images if isinstance(images, str) else "" for _, images in payload]
        return {
            "values": np.concatenate([field.reshape(-1) for field in fields]),
            "sizes": np.array([field.shape[:2] for field in fields], np.int64),
            "reasons": np.array(reasons),
        }

    def keys(self, shard: Shard) -> str:
        first, last = self.pairs[shard.start].name, self.pairs[shard.stop - 1].name
        return first if first == last else f"{first} … {last}"

    def _images(self, pair: FlowPair) -> ImagesOrReason:
        try:
            return self.images.read(pair)
        except DataError as error:
            if not self.skip or isinstance(error, OutOfReach):
                raise
            return str(error)

    def _said(self, name: str) -> str:
        return f"{name}: flow method {self.method.name}"

    def _checked(self, name: str, flow: NDArray[Any]) -> FlowField:
        if flow.ndim != 3 or flow.shape[2] != 2 or not flow.size or flow.dtype.kind != "f":
            raise DataError(
                f"{self._said(name)} gave {flow.dtype} of shape {flow.shape}; expected floats (height, width, 2)"
            )
        if np.isnan(flow).any():
            raise DataError(f"{self._said(name)} gave NaN; mark unknown flow by values beyond 1e9")
        return flow.astype(np.float32, copy=False)


@dataclass(frozen=True)
class ComputedFlows:
    """The flows of a stage by pair."""

    mapped: Mapped
    places: dict[str, int]  # of pairs, by name
    pairs_per_shard: int

    @property
    def digest(self) -> str:
        return self.mapped.digest

    def read(self, pair: FlowPair) -> FlowsAndMasks:
        """Both flows of a pair, without masks; raises DataError if its images could not be read."""
        index, place = divmod(self.places[pair.name], self.pairs_per_shard)
        arrays = self.mapped.read(index)
        if arrays["reasons"][place]:
            raise DataError(str(arrays["reasons"][place]))
        sizes = arrays["sizes"]
        ends = np.cumsum(2 * sizes.prod(axis=1))
        first, second = (
            arrays["values"][ends[k] - 2 * sizes[k].prod() : ends[k]].reshape(*sizes[k], 2)
            for k in (2 * place, 2 * place + 1)
        )
        return FlowsAndMasks((first, second), None)


def compute_flows(run: Run, stage: DenseFlow, shard_size: int | None) -> ComputedFlows:
    """Flows of every pair in both directions."""
    size = shard_size or PAIRS_PER_FLOWING
    places = {pair.name: place for place, pair in enumerate(stage.pairs)}
    return ComputedFlows(run.map(stage, len(stage.pairs), size), places, size)


@dataclass(frozen=True)
class FlowFile:
    """A `.flo` file to write: a pair's flow from its image 1, or from its image 2."""

    pair: FlowPair
    side: int

    @property
    def name(self) -> str:
        return f"{self.pair.name}/flow{self.side}.flo"


def write_flows(run: Run, flows: ComputedFlows, pairs: Sequence[FlowPair]) -> None:
    """Write `results/GROUP/PAIR/flow1.flo` and `flow2.flo` of these pairs."""
    run.write("results/{name}", flow_file, [FlowFile(pair, side) for pair in pairs for side in (1, 2)], flows)


def flow_file(file: FlowFile, flows: ComputedFlows) -> bytes:
    """The bytes of a flow that was computed."""
    read = flows.read(file.pair).flows
    assert read is not None
    return write_flo(read[file.side - 1])
