"""The published sets by name: a literal dict."""

from __future__ import annotations

from raybench.datasets.image_sets import COPYDAYS, DISC2021, REVISITOP1M, ROXFORD5K, RPARIS6K, TSS
from raybench.datasets.parts import PublishedSet
from raybench.datasets.patch_sets import HBENCH_TASKS, HPATCHES, HPATCHES_TASKS, LIBERTY, NOTREDAME, YOSEMITE

PUBLISHED: dict[str, PublishedSet] = {
    "hpatches": HPATCHES,
    "hbench-tasks": HBENCH_TASKS,
    "hpatches-tasks": HPATCHES_TASKS,
    "disc2021": DISC2021,
    "copydays": COPYDAYS,
    "tss": TSS,
    "roxford5k": ROXFORD5K,
    "rparis6k": RPARIS6K,
    "revisitop1m": REVISITOP1M,
    "liberty": LIBERTY,
    "notredame": NOTREDAME,
    "yosemite": YOSEMITE,
}
