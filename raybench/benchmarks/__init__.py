"""The benchmarks by name: a literal dict. Each module has layout, truth, wiring and table of one of them."""

from __future__ import annotations

from raybench.benchmarks.copies.copydays import BENCHMARK as COPYDAYS
from raybench.benchmarks.copies.disc2021 import BENCHMARK as DISC2021
from raybench.benchmarks.hbench.classification import BENCHMARK as HBENCH_CLASSIFICATION
from raybench.benchmarks.hbench.matching import BENCHMARK as HBENCH_MATCHING
from raybench.benchmarks.hbench.retrieval import BENCHMARK as HBENCH_RETRIEVAL
from raybench.benchmarks.hpatches.matching import BENCHMARK as HPATCHES_MATCHING
from raybench.benchmarks.hpatches.retrieval import BENCHMARK as HPATCHES_RETRIEVAL
from raybench.benchmarks.hpatches.verification import BENCHMARK as HPATCHES_VERIFICATION
from raybench.benchmarks.job import Benchmark
from raybench.benchmarks.tss.tss import BENCHMARK as TSS

BENCHMARKS: dict[str, Benchmark] = {
    "hbench-classification": HBENCH_CLASSIFICATION,
    "hbench-matching": HBENCH_MATCHING,
    "hbench-retrieval": HBENCH_RETRIEVAL,
    "hpatches-verification": HPATCHES_VERIFICATION,
    "hpatches-matching": HPATCHES_MATCHING,
    "hpatches-retrieval": HPATCHES_RETRIEVAL,
    "disc2021": DISC2021,
    "copydays": COPYDAYS,
    "tss": TSS,
}

# Names under which several run at once, each into its own folder below --out, over one store.
FAMILIES: dict[str, tuple[str, ...]] = {
    "hbench": ("hbench-classification", "hbench-matching", "hbench-retrieval"),
    "hpatches": ("hpatches-verification", "hpatches-matching", "hpatches-retrieval"),
}
