"""Image pairs x flow method -> flows in both directions, in shards of pairs; `FlowFields` is the handle on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.benchmarks.tss.methods import ImagePair, flows_of
from raybench.benchmarks.tss.scoring import Side
from raybench.benchmarks.tss.trees import TruthSet
from raybench.descriptors import DescriptorSpec, moved
from raybench.digests import digest_of
from raybench.engine.export import Export
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.formats.flo import write_flo
from raybench.formats.shardfile import Arrays

PAIRS_PER_SHARD = 4  # of 800 x 600: 31 MB of flow
PAIRS_PER_BATCH = 4

MaybePair = tuple[str, ImagePair | str]  # a pair's key, and its images or why they can't be read


@dataclass(frozen=True)
class DenseFlow:
    """The stage that computes flows. With `skip`, images that can't be read give no flow but the reason."""

    images: TruthSet
    method: DescriptorSpec
    device: str
    batch_size: int | None
    skip: bool = False

    name = "dense-flow"
    version = 1

    @property
    def digest(self) -> str:
        keys = [pair.key for pair in self.images.pairs]
        parts = (keys, self.images.image_digest, self.method.digest, self.device, self.batch_size, self.skip)
        return digest_of(self.name, self.version, *parts)

    @property
    def on_device(self) -> bool:
        return self.device == "gpu"

    @cached_property
    def _opened(self) -> Any:
        return moved(self.method.open(), gpu=self.on_device)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_opened"}

    def load(self, shard: Shard) -> list[MaybePair]:
        return [(self.images.pairs[item].key, self._images(item)) for item in range(shard.start, shard.stop)]

    def compute(self, payload: list[MaybePair]) -> Arrays:
        usable = [(key, images) for key, images in payload if not isinstance(images, str)]
        both = [(key, way) for key, (a, b) in usable for way in ((a, b), (b, a))]
        found = flows_of(self._opened, [way for _, way in both], self.batch_size or PAIRS_PER_BATCH)
        if len(found) != len(both):
            raise DataError(f"{self._said(both[0][0])}: {len(found)} flows for {len(both)} pairs; expected one each")
        flows = iter([self._checked(key, flow) for (key, _), flow in zip(both, found, strict=True)])
        nothing = np.zeros((0, 0, 2), np.float32)
        fields = [nothing if isinstance(images, str) else next(flows) for _, images in payload for _ in (1, 2)]
        reasons = [images if isinstance(images, str) else "" for _, images in payload]
        return {
            "values": np.concatenate([field.reshape(-1) for field in fields]),
            "sizes": np.array([field.shape[:2] for field in fields], np.int64),
            "reasons": np.array(reasons),
        }

    def keys(self, shard: Shard) -> str:
        first, last = self.images.pairs[shard.start].key, self.images.pairs[shard.stop - 1].key
        return first if first == last else f"{first} … {last}"

    def _images(self, item: int) -> ImagePair | str:
        try:
            return self.images.images(item)
        except DataError as error:
            if not self.skip:
                raise
            return str(error)

    def _said(self, key: str) -> str:
        return f"{key}: flow method {self.method.name}"

    def _checked(self, key: str, flow: NDArray[Any]) -> NDArray[np.float32]:
        if flow.ndim != 3 or flow.shape[2] != 2 or not flow.size or flow.dtype.kind != "f":
            raise DataError(
                f"{self._said(key)} gave {flow.dtype} of shape {flow.shape}; expected floats (height, width, 2)"
            )
        if np.isnan(flow).any():
            raise DataError(f"{self._said(key)} gave NaN; mark unknown flow by values beyond 1e9")
        return flow.astype(np.float32, copy=False)


@dataclass(frozen=True)
class FlowFields:
    """Computed flows by pair."""

    mapped: Mapped
    keys: tuple[str, ...]
    pairs_per_shard: int

    @property
    def digest(self) -> str:
        return self.mapped.digest

    def result(self, item: int) -> Side:
        """Both flows of a pair, without masks; raises DataError if its images could not be read."""
        arrays = self.mapped.read(item // self.pairs_per_shard)
        place = item % self.pairs_per_shard
        if arrays["reasons"][place]:
            raise DataError(str(arrays["reasons"][place]))
        sizes = arrays["sizes"]
        ends = np.cumsum(2 * sizes.prod(axis=1))
        flows = [
            arrays["values"][ends[k] - 2 * sizes[k].prod() : ends[k]].reshape(*sizes[k], 2)
            for k in (2 * place, 2 * place + 1)
        ]
        return Side((flows[0], flows[1]), None)

    def uri(self, item: int, file: str) -> str:
        """What to call a flow in an error."""
        return f"{self.keys[item]}/{file} (computed)"


def compute_flows(run: Run, stage: DenseFlow, shard_size: int | None) -> FlowFields:
    """Flows of every pair in both directions."""
    size = shard_size or PAIRS_PER_SHARD
    pairs = stage.images.pairs
    return FlowFields(run.map(stage, len(pairs), size), tuple(pair.key for pair in pairs), size)


def export_flows(run: Run, fields: FlowFields, items: Iterable[int]) -> list[str]:
    """Write `results/GROUP/PAIR/flow1.flo` and `flow2.flo` of these pairs; their names."""
    places = tuple((item, side) for item in items for side in (0, 1))
    names = [f"results/{fields.keys[item]}/flow{side + 1}.flo" for item, side in places]
    run.export(Export("flow-files", fields.digest, partial(_flow_file, fields, places), tuple(names)), names)
    return names


def _flow_file(fields: FlowFields, places: tuple[tuple[int, int], ...], number: int) -> bytes:
    item, side = places[number]
    flows = fields.result(item).flows
    assert flows is not None
    return write_flo(flows[side])
