"""The benchmarks by name: a literal dict of what each is and where. Nothing is imported before it is opened.

Each module has layout, truth, wiring and table of one of them.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from raybench.benchmarks.job import Benchmark


@dataclass(frozen=True)
class Listed:
    """A benchmark as lists and help show it: its `module:NAME`, what it is, what it takes."""

    where: str
    summary: str
    needs: str

    def open(self) -> Benchmark:
        """The benchmark itself, imported now: help and lists do without numpy and what else it brings."""
        module, _, name = self.where.partition(":")
        found: Benchmark = getattr(importlib.import_module(module), name)
        return found


NEEDS_2016 = "--benchmarks, and --data with --descriptor, or --features, or --results"
NEEDS_2017 = "--tasks, and --data with --descriptor, or --features"

BENCHMARKS: dict[str, Listed] = {
    "hbench-classification": Listed(
        "raybench.benchmarks.hbench.classification:BENCHMARK",
        "HPatches 2016 patch classification: TREC AP and ROC AUC of listed pairs",
        NEEDS_2016,
    ),
    "hbench-matching": Listed(
        "raybench.benchmarks.hbench.matching:BENCHMARK",
        "HPatches 2016 image matching: AP of nearest neighbours over pairs of images",
        NEEDS_2016,
    ),
    "hbench-retrieval": Listed(
        "raybench.benchmarks.hbench.retrieval:BENCHMARK",
        "HPatches 2016 image and patch retrieval: AP over the 50 nearest patches of a pool",
        NEEDS_2016,
    ),
    "hpatches-verification": Listed(
        "raybench.benchmarks.hpatches.verification:BENCHMARK",
        "HPatches 2017 patch verification: ROC AUC (balanced) and trapezoid AP (imbalanced) of listed pairs",
        NEEDS_2017,
    ),
    "hpatches-matching": Listed(
        "raybench.benchmarks.hpatches.matching:BENCHMARK",
        "HPatches 2017 image matching: trapezoid AP and success rate of nearest neighbours",
        NEEDS_2017,
    ),
    "hpatches-retrieval": Listed(
        "raybench.benchmarks.hpatches.retrieval:BENCHMARK",
        "HPatches 2017 patch retrieval: trapezoid AP of five views in pools of 100 to 20,000",
        NEEDS_2017,
    ),
    "patch-pairs": Listed(
        "raybench.benchmarks.pairs.patch_pairs:BENCHMARK",
        "listed pairs of one's own patches, or of Brown's PhotoTour: FPR95, TREC AP and ROC AUC",
        "--pairs, and --data with --descriptor, or --features; or --results (finished distances or scores)",
    ),
    "disc2021": Listed(
        "raybench.benchmarks.images.disc2021:BENCHMARK",
        "DISC2021 copy detection: pooled µAP over codecs and score normalisations",
        "--data (DISC root) and --descriptor, or --features (vectors), or --results predictions.csv",
    ),
    "copydays": Listed(
        "raybench.benchmarks.images.copydays:BENCHMARK",
        "Copydays with distractors: mAP of strong copies, pooled uAP, mAP of every block",
        "--data (Copydays root), --distractors and --descriptor, or --features (vectors)",
    ),
    "image-retrieval": Listed(
        "raybench.benchmarks.images.image_retrieval:BENCHMARK",
        "retrieval of your own images: mAP, precision, recall, nDCG of each query's ranking, pooled µAP",
        "--queries, --references and --ground-truth, of images with --descriptor, of vectors without; or --features",
    ),
    "revisited": Listed(
        "raybench.benchmarks.images.revisited:BENCHMARK",
        "Revisited Oxford and Paris, or your own set in that layout: mAP and mP@k of easy, medium, hard; also with R1M",
        "--data (root of SET/jpg and SET/gnd_SET.json) and --descriptor, or --features (vectors)",
    ),
    "tss": Listed(
        "raybench.benchmarks.tss.tss:BENCHMARK",
        "TSS dense flow and cosegmentation: flow accuracy (T5 = PCK@0.05) and SegIUR of image pairs",
        "--data (Dataset), and --results (Results), or --descriptor with a flow method",
    ),
}

# Names under which several run at once, each into its own folder below --out, over one store.
FAMILIES: dict[str, tuple[str, ...]] = {
    "hbench": ("hbench-classification", "hbench-matching", "hbench-retrieval"),
    "hpatches": ("hpatches-verification", "hpatches-matching", "hpatches-retrieval"),
}
