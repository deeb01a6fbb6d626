"""Samples of copy detection: a draw of every query once is the table, another is what its queries alone would give."""

import numpy as np
import pytest
from conftest import GOLDEN

from raybench.benchmarks.images.figures import asked_results, overall_micro_ap
from raybench.benchmarks.images.samples import SampleOf, sample_overall, sample_strong
from raybench.formats.names import Names
from raybench.metrics.micro_ap import TruePairs
from raybench.metrics.partials import NO_REFERENCE, TopK
from raybench.metrics.samples import sample_of
from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.samples import read_samples
from raybench.table import figure_cells

QUERIES, K = 9, 4


class Found:
    """Results of nine queries among six originals, with equal distances and places that are empty."""

    name = "Flat"

    def read(self):
        random = np.random.default_rng(4)
        reference = np.stack([random.permutation(6)[:K] for _ in range(QUERIES)])
        distance = np.sort(random.integers(0, 4, (QUERIES, K)).astype(np.float64), axis=1)
        reference[5, 3] = NO_REFERENCE
        return TopK(np.arange(QUERIES), distance, reference)


NAMES = Names.of([f"q{number}" for number in range(QUERIES)])
TRUTH = TruePairs.of(np.array([0, 1, 2, 3, 3, 5, 6, 7]), np.array([0, 1, 2, 3, 4, 5, 0, 1]))  # query 3 has two


def drawn_results(times):
    """Overall uAP of the queries that were drawn, each as often as it was."""
    found = asked_results(Found().read(), TRUTH)
    rows = np.repeat(np.arange(len(found.query)), times[found.query])
    return overall_micro_ap(found.relevant[rows], found.distance[rows], found.reference[rows], len(rows))


def test_overall_figures_of_a_draw_are_those_of_its_queries():
    sample = sample_of(sample_overall(SampleOf(Found(), "overall"), TRUTH, NAMES))
    for times in [np.ones(QUERIES, np.int64), *sample.units.draws(30, 0)]:
        assert sample.draw(times).tolist() == [drawn_results(times)]
    assert sample.items_by_unit.tolist() == [1, 1, 1, 1, 0, 1, 1, 1, 0]  # each query that has an original counts once


def test_figures_of_the_strong_block_are_means_over_its_queries():
    strong = np.array([1, 3, 6])
    sample = sample_of(sample_strong(SampleOf(Found(), "strong"), TRUTH, strong, NAMES))
    found = asked_results(Found().read(), TRUTH)
    each = found.average_precision[np.searchsorted(found.query, strong)]
    for times in sample.units.draws(10, 0):
        weights = times[strong]
        expected = (each * weights).sum() / weights.sum() if weights.sum() else np.nan
        assert sample.draw(times)[0] == pytest.approx(expected, nan_ok=True)


def test_samples_of_copydays_give_the_main_table_again(raybench, tmp_path):
    given = ("--features", GOLDEN / "copydays/data", "--codecs", "Flat", "--ray", "off", "--progress", "none")
    assert raybench("run", "copydays", "--out", tmp_path, *given).code == 0
    manifest = finished_manifest(str(tmp_path))
    stored = read_samples(str(tmp_path), manifest)
    found = {}
    for sample in stored.samples:
        found.update(zip(sample.figures, sample.draw(np.ones(len(sample.units), np.int64)), strict=True))
    cells = figure_cells(read_tables(str(tmp_path), manifest)[0], ("codec",), {"strong_mAP", "overall_uAP"})
    assert {(one.row, one.figure): value for one, value in found.items()} == {
        (cell.row, cell.figure): pytest.approx(cell.value, rel=1e-15) for cell in cells
    }
    assert stored.kind == "queries" and list(stored.data) == ["distractors"]
