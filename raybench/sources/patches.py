"""Sources of patches: `Strips` hold pixels, `VectorFiles` hold descriptors; keys are `SEQ/IM` in either.

Both list every file of their folder, so that any benchmark over the same folder shares one extraction.
"""

from __future__ import annotations

from collections.abc import Iterable

from raybench.errors import ProblemList, suggestion
from raybench.sources.strips import Strips
from raybench.sources.vector_files import VectorFiles

Source = Strips | VectorFiles


def items_of(source: Source, wanted: Iterable[str], problems: ProblemList) -> dict[str, int]:
    """The items of the wanted keys; a sequence or image that is not there is noted once, with the nearest name."""
    items = {key: item for item, key in enumerate(source.keys)}
    sequences = {key.split("/")[0] for key in source.keys}
    found = {}
    for key in wanted:
        sequence = key.split("/")[0]
        if key in items:
            found[key] = items[key]
        elif sequence not in sequences:
            problems.add(
                f"{source.root}: no sequence {sequence!r}, which the tasks name{suggestion(sequence, sequences)}"
            )
        else:
            problems.add(f"{source.root}: {key}{source.suffix} is missing, which the tasks name")
    return found
