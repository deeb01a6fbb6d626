"""The benchmarks by name: a literal dict. Each module has layout, truth, wiring and table of one of them."""

from __future__ import annotations

from raybench.benchmarks import (
    copydays,
    disc2021,
    hbench_classification,
    hbench_matching,
    hbench_retrieval,
    hpatches_matching,
    hpatches_retrieval,
    hpatches_verification,
    tss,
)
from raybench.benchmarks.job import Benchmark

BENCHMARKS: dict[str, Benchmark] = {
    "hbench-classification": hbench_classification.BENCHMARK,
    "hbench-matching": hbench_matching.BENCHMARK,
    "hbench-retrieval": hbench_retrieval.BENCHMARK,
    "hpatches-verification": hpatches_verification.BENCHMARK,
    "hpatches-matching": hpatches_matching.BENCHMARK,
    "hpatches-retrieval": hpatches_retrieval.BENCHMARK,
    "disc2021": disc2021.BENCHMARK,
    "copydays": copydays.BENCHMARK,
    "tss": tss.BENCHMARK,
}

# Names under which several run at once, each into its own folder below --out, over one store.
FAMILIES: dict[str, tuple[str, ...]] = {
    "hbench": ("hbench-classification", "hbench-matching", "hbench-retrieval"),
    "hpatches": ("hpatches-verification", "hpatches-matching", "hpatches-retrieval"),
}
