"""What `check` tries of a flow method: images of pairs read whole, and the flow between the corners of one pair."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.benchmarks.tss.methods import DenseFlow
from raybench.benchmarks.tss.trees import ImagesOfPair
from raybench.errors import ProblemList
from raybench.extract.trials import look_through, try_batch

CORNER_PX = 160  # side of what is cut from both images: a whole pair may take a network half a minute on a CPU


@dataclass(frozen=True)
class FlowTrial:
    """The stage by which a run would begin."""

    stage: DenseFlow
    notes: tuple[str, ...]

    def attempt(self, seed: int, problems: ProblemList) -> list[str]:
        stage = self.stage
        items = range(len(stage.pairs))
        looked = look_through(items, lambda item: stage.images.read(stage.pairs[item]), lambda _, found: found, seed)
        lines = [f"images of {looked.share} pairs read whole", *looked.note(problems, stage.skip)]
        if looked.good:
            item, images = looked.good[0]
            lines.append(try_batch(stage.method, lambda: self._flow(item, images), problems))
        return lines

    def _flow(self, item: int, images: ImagesOfPair) -> str:
        first, second = (image[:CORNER_PX, :CORNER_PX] for image in images)
        sizes = self.stage.compute([(self.stage.pairs[item].name, (first, second))])["sizes"]
        return f"flow of {sizes[0, 1]}x{sizes[0, 0]} px between corners of {first.shape[1]}x{first.shape[0]} px"
