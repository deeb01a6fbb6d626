"""What `check` tries of patches: strips or files of vectors read whole, and some patches described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from raybench.errors import ProblemList
from raybench.extract.patches import Extract, ReadVectors
from raybench.extract.trials import batch_words, look_through, try_batch

PATCHES = 8  # in the batch


@dataclass(frozen=True)
class PatchTrial:
    """The stage by which a run would begin, and the items of its source that it would read."""

    stage: Extract | ReadVectors
    wanted: tuple[int, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        return self.stage.descriptor.digest_notes if isinstance(self.stage, Extract) else ()

    def attempt(self, seed: int, problems: ProblemList) -> list[str]:
        looked = look_through(self.wanted, self._read, lambda _, content: content, seed)
        suffix = self.stage.source.suffix
        lines = [
            f"{looked.share} {f'files SEQ/IM{suffix}' if suffix else 'blocks of patches'} read whole",
            *looked.note(problems, self.stage.skip),
        ]
        if isinstance(self.stage, Extract) and looked.good:
            stage, (uri, patches) = self.stage, looked.good[0][1]
            lines.append(try_batch(stage.descriptor, lambda: _described(stage, uri, patches[:PATCHES]), problems))
        return lines

    def _read(self, item: int) -> tuple[str, NDArray[Any]]:
        return next(iter(self.stage.source.read(item, item + 1)))


def _described(stage: Extract, uri: str, patches: NDArray[Any]) -> str:
    """Rows among others of their batch, and again with fewer: half of what one batch of the run's size holds."""
    fewer = max(min(len(patches), stage.batch_size or PATCHES) // 2, 1)
    found, alone = (stage.compute(stage.prepared([(uri, some)]))["vectors"] for some in (patches, patches[:fewer]))
    return batch_words(stage.descriptor, found, alone, "patches")
