"""The benchmarks by name: a literal dict. Each module has layout, truth, wiring and table of one of them."""

from __future__ import annotations

from raybench.benchmarks.copies import copydays, disc2021
from raybench.benchmarks.hbench import classification as hbench_classification
from raybench.benchmarks.hbench import matching as hbench_matching
from raybench.benchmarks.hbench import retrieval as hbench_retrieval
from raybench.benchmarks.hpatches import matching as hpatches_matching
from raybench.benchmarks.hpatches import retrieval as hpatches_retrieval
from raybench.benchmarks.hpatches import verification as hpatches_verification
from raybench.benchmarks.job import Benchmark
from raybench.benchmarks.tss import tss

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
