"""What to cite: raybench itself, and the paper of each benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from raybench.citation import bibtex
from raybench.runs.report.markup import Html, element

HPATCHES = (
    "V. Balntas, K. Lenc, A. Vedaldi, K. Mikolajczyk. HPatches: A Benchmark and Evaluation of Handcrafted and Learned "
    "Local Descriptors. CVPR 2017."
)
PAPERS = {
    "hbench": HPATCHES,
    "hpatches": HPATCHES,
    "disc2021": (
        "M. Douze, G. Tolias, E. Pizzi, Z. Papakipos, L. Chanussot, F. Radenovic, T. Jenicek, M. Maximov, "
        "L. Leal-Taixé, I. Elezi, O. Chum, C. Canton Ferrer. The 2021 Image Similarity Dataset and "
        "Challenge. arXiv:2106.09672, 2021."
    ),
    "copydays": (
        "M. Douze, H. Jégou, H. Sandhawalia, L. Amsaleg, C. Schmid. Evaluation of GIST descriptors for web-scale image "
        "search. CIVR 2009."
    ),
    "revisited": (
        "F. Radenović, A. Iscen, G. Tolias, Y. Avrithis, O. Chum. Revisiting Oxford and Paris: Large-Scale Image "
        "Retrieval Benchmarking. CVPR 2018."
    ),
    "tss": (
        "T. Taniai, S. N. Sinha, Y. Sato. Joint Recovery of Dense Correspondence and Cosegmentation in Two Images. "
        "CVPR 2016."
    ),
}


def citations(benchmarks: Sequence[str]) -> Html:
    """The papers of these benchmarks, each once, and raybench as BibTeX."""
    papers = dict.fromkeys(PAPERS[family] for name in benchmarks if (family := name.split("-")[0]) in PAPERS)
    return element(
        "div",
        element("ul", [element("li", paper) for paper in papers]) if papers else None,
        element("pre", bibtex(), tabindex=0),
    )
