"""The published figures of DISC and Copydays, from a plain search, through raybench's readers and metrics.

The search is numpy in float64, so that only formats, codecs and metrics are on trial.
"""

import json

import numpy as np
import pytest
from conftest import GOLDEN

from raybench.benchmarks.images.figures import overall_micro_ap, query_ap, relevant_results
from raybench.errors import ProblemList
from raybench.formats.copydays import CopydaysLayout
from raybench.formats.disc import read_ground_truth
from raybench.formats.disc_predictions import check_predictions, match_tables, read_block
from raybench.metrics.micro_ap import Predictions, TruePairs, score_pooled
from raybench.search.codecs import Transforms
from raybench.sources.named_vectors import NamedVectors

DISC = json.loads((GOLDEN / "disc" / "expected.json").read_text())
COPYDAYS = json.loads((GOLDEN / "copydays" / "expected.json").read_text())


def read(path, normalise):
    problems = ProblemList()
    source = NamedVectors.scan([str(path)], normalise, problems)
    assert not problems.lines
    place, vectors = source.rows.read(0, len(source))
    ordered = np.empty_like(vectors)
    ordered[place] = vectors
    return source.names, ordered


def projected(codec, training, *sets):
    """What the codec makes of each set, as the published tools do it."""
    if codec == "Flat":
        return [rows.astype(np.float64) for rows in (*sets, training)]
    trained = Transforms(codec, training.shape[1]).trained(training)
    return [trained.apply(rows).astype(np.float64) for rows in (*sets, training)]


def scores_of(queries, references, training, norm):
    """(queries, references): minus squared distance, or the normalised inner product."""
    if norm == "None":
        return -((queries[:, None] - references[None]) ** 2).sum(axis=2)
    weight, _, rest = norm.partition("[")
    first, last = (int(number) for number in rest.rstrip("]").split(","))
    near = -np.sort(-(queries @ training.T), axis=1)[:, first : last + 1]
    return queries @ references.T - float(weight) * near.mean(axis=1, keepdims=True)


def predictions_of(scores, candidates, k=10):
    query, reference = np.divmod(np.arange(scores.size), scores.shape[1])
    if candidates == "global":
        best = np.lexsort((query, reference, -scores.reshape(-1)))[: k * len(scores)]
        return Predictions(query[best], reference[best], scores.reshape(-1)[best])
    best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    query = np.repeat(np.arange(len(scores)), best.shape[1])
    return Predictions(query, best.ravel(), scores[query, best.ravel()])


@pytest.fixture(scope="module", params=["small", "exact"])
def disc(request):
    folder = GOLDEN / "disc" / "data" / request.param
    sets = {name: read(folder / f"{name}.npz", "stem") for name in ("queries", "refs", "train")}
    file = "val_groundtruth_matches.csv"
    truth = read_ground_truth((folder / file).read_bytes(), file)
    problems = ProblemList()
    pairs = TruePairs.of(*truth.indices(sets["queries"][0], sets["refs"][0], problems))
    assert not problems.lines
    return request.param, {name: rows for name, (_, rows) in sets.items()}, pairs


def test_disc_figures_are_the_published_ones(disc):
    kind, sets, truth = disc
    expected = DISC[f"expected_{kind}"]
    assert len(expected) == {"small": 30, "exact": 6}[kind]
    for key, figures in expected.items():
        codec, norm, candidates = key.split("|")
        rows = projected(codec, sets["train"], sets["queries"], sets["refs"])
        found = score_pooled(truth, predictions_of(scores_of(*rows, norm), candidates))
        small = {"uAP": 1e-5 if codec == "L2norm,PCAW24,Flat" else 1e-6}
        tolerance = small if kind == "small" else {}
        named = {
            "uAP": found.micro_ap,
            "accuracy-at-1": found.accuracy_at_1,
            "recall-at-p90": found.at_precision[0].recall,
        }
        for figure, value in figures.items():
            assert named[figure] == pytest.approx(value, rel=0, abs=tolerance.get(figure, 1e-9)), (key, figure)


def test_figures_of_predictions_are_the_published_ones():
    folder, expected = GOLDEN / "disc" / "data" / "small", DISC["expected_predictions"]
    file = "val_groundtruth_matches.csv"
    truth = read_ground_truth((folder / file).read_bytes(), file)
    with (folder / "predictions.csv").open("rb") as stream:
        checked = check_predictions(stream, "predictions.csv")
        tables = match_tables(truth, checked)
        *names, score = read_block(stream, checked.blocks[0], "predictions.csv")
    pairs = TruePairs.of(tables.true_query, tables.true_reference)
    query, reference = tables.queries.indices(names[0]), tables.references.indices(names[1])
    found = score_pooled(pairs, Predictions(query, reference, score))
    assert (len(query), len(pairs)) == (expected["n_predictions"], expected["n_gt"])
    assert found.micro_ap == pytest.approx(expected["average_precision"], rel=0, abs=1e-9)
    assert found.at_precision[0].recall == pytest.approx(expected["recall_at_p90"], rel=0, abs=1e-9)
    assert found.at_precision[0].threshold == expected["threshold_at_p90"]
    assert found.accuracy_at_1 == pytest.approx(expected["recall_at_rank1"], rel=0, abs=1e-9)
    assert found.recall_at_10 == pytest.approx(expected["recall_at_rank10"], rel=0, abs=1e-9)


@pytest.fixture(scope="module")
def copydays():
    folder = GOLDEN / "copydays" / "data"
    names, rows = read(folder / "copydays.npz", "path")
    problems = ProblemList()
    layout = CopydaysLayout.of(names, "copydays.npz", problems)
    assert not problems.lines
    assert not layout.missing
    return layout, rows, read(folder / "distractors.npz", "stem")[1], read(folder / "train.npz", "stem")[1]


@pytest.mark.parametrize("codec", COPYDAYS["expected"])
def test_copydays_figures_are_the_published_ones(copydays, codec):
    layout, images, distractors, training = copydays
    queries, others, _ = projected(codec, training, images, distractors)
    database = np.concatenate([queries[layout.originals], others])
    distances = ((queries[:, None] - database[None]) ** 2).sum(axis=2)
    reference = np.argsort(distances, axis=1, kind="stable")[:, :100]
    distance = np.take_along_axis(distances, reference, axis=1)

    truth = TruePairs.of(layout.true_query, layout.true_original)
    relevant = relevant_results(truth, np.arange(len(queries)), reference)
    positives = np.bincount(truth.query, minlength=len(queries))
    ap = query_ap(relevant, positives)
    expected = COPYDAYS["expected"][codec]
    assert list(layout.blocks) == list(expected["blocks"])
    for block, value in expected["blocks"].items():
        assert ap[layout.blocks[block]].mean() == pytest.approx(value, rel=0, abs=1e-9), block
    overall = overall_micro_ap(relevant, distance, reference, len(queries))
    assert overall == pytest.approx(expected["overall_uAP"], rel=0, abs=2e-6)
