"""Candidate pairs: k for each query, and the best over all queries, are those of brute force; golden figures too."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vector_stages import inline_run, stored, vector_set

from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import DataError
from raybench.search import candidates
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.codecs import project_sets
from raybench.search.distances import row_distances
from raybench.search.score_norm import ScoreNorm, parse_norms, query_biases
from raybench.search.set_search import search_sets

GOLDEN = Path(__file__).parents[1] / "golden" / "disc"


def descriptors(count, seed=0, dimension=6, whole=True):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, dimension)) if whole else rng.standard_normal((count, dimension))
    return rows.astype(np.float32)


def every_score(queries, references, metric):
    return np.stack([0.0 - row_distances(np.broadcast_to(q, references.shape), references, metric) for q in queries])


def best_pairs(scores, k):
    query, reference = (index.ravel() for index in np.indices(scores.shape))
    order = np.lexsort((query, reference, -scores.ravel()))[: k * len(scores)]
    return list(zip(query[order].tolist(), reference[order].tolist(), scores.ravel()[order].tolist(), strict=True))


def triples(run, mapped):
    arrays = run.read(mapped, 0)
    return list(zip(*(arrays[name].tolist() for name in ("query", "reference", "score")), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("candidates")


@settings(max_examples=40, deadline=None)
@given(
    queries=st.integers(1, 12),
    references=st.integers(1, 60),
    k=st.integers(1, 4),
    metric=st.sampled_from(["squared_L2", "ip"]),
    whole=st.booleans(),
    seed=st.integers(0, 10**6),
    size=st.integers(1, 60),
    wide=st.booleans(),
)
def test_the_best_pairs_over_all_are_those_of_a_full_sort(
    folder, queries, references, k, metric, whole, seed, size, wide
):
    run = inline_run(folder / "all")
    asked, among = descriptors(queries, seed, whole=whole), descriptors(references, seed + 1, whole=whole)
    found = search_sets(
        run,
        vector_set(run, "queries", asked, 5),
        vector_set(run, "references", among, 13, order=np.random.default_rng(seed).permutation(references)),
        k,
        metric,
        device="cpu",
        shard_size=size,
        global_candidates=wide,
    )
    assert triples(run, global_pairs(run, found)) == best_pairs(every_score(asked, among, metric), k)


def test_queries_that_hold_most_of_the_best_pairs_are_searched_again_and_few_others(tmp_path):
    run = inline_run(tmp_path)
    among = descriptors(500, 1, dimension=8, whole=False)
    asked = descriptors(40, 2, dimension=8, whole=False) * 5
    asked[[7, 31]] *= 0.01  # near the middle, so near to everything
    found = search_sets(
        run,
        vector_set(run, "queries", asked, 9),
        vector_set(run, "references", among, 50),
        3,
        "squared_L2",
        device="cpu",
        global_candidates=True,
    )
    pairs = triples(run, global_pairs(run, found))
    assert pairs == best_pairs(every_score(asked, among, "squared_L2"), 3)
    threshold = candidates.global_threshold(run, found)
    saturated = set(run.read(threshold, 0)["saturated"].tolist())
    assert {7, 31} <= saturated
    assert len(saturated) <= 10  # each has twelve pairs or more among the 120 best that are listed
    assert "pairs-above" in {record.name for record in run.records}


def test_where_every_list_ends_below_the_threshold_nothing_is_searched_again(tmp_path):
    run = inline_run(tmp_path)
    asked = among = np.eye(30, dtype=np.float32) * np.arange(1, 31, dtype=np.float32)[:, None]
    found = search_sets(
        run,
        vector_set(run, "queries", asked),
        vector_set(run, "references", among),
        1,
        "ip",
        device="cpu",
        global_candidates=True,
    )
    assert triples(run, global_pairs(run, found)) == best_pairs(every_score(asked, among, "ip"), 1)
    assert "pairs-above" not in {record.name for record in run.records}


@pytest.mark.parametrize("sizes", [(600, 1_000), (300, 77), (120, 10), (7, 600)])
def test_shards_and_orders_do_not_show_in_either_variant_with_a_norm(tmp_path, sizes):
    shard_size, stored_size = sizes
    asked, among, learnt = (descriptors(n, seed) for n, seed in ((50, 0), (600, 1), (200, 2)))
    bytes_of = []
    for name, size, cut, seed in (("plain", None, 1_000, None), ("cut", shard_size, stored_size, 3)):
        run = inline_run(tmp_path / name)
        order = None if seed is None else np.random.default_rng(seed).permutation(600)
        queries, training = vector_set(run, "queries", asked, cut), vector_set(run, "training", learnt, cut)
        references = vector_set(run, "references", among, cut, order=order)
        (bias,) = query_biases(run, queries, training, [ScoreNorm(0.7, 0, 2)], device="cpu", shard_size=size)
        found = search_sets(run, queries, references, 10, "ip", device="cpu", shard_size=size, global_candidates=True)
        both = nearest_pairs(run, found, bias), global_pairs(run, found, bias)
        bytes_of.append([stored(mapped) for mapped in both])
    assert bytes_of[0] == bytes_of[1]


def test_a_norm_shifts_each_query_and_orders_pairs_over_all_anew(tmp_path):
    run = inline_run(tmp_path)
    asked, among, learnt = (descriptors(n, seed, whole=False) for n, seed in ((20, 0), (100, 1), (30, 2)))
    norms = parse_norms("1.0[0,2];0.5[1,3]")
    queries = vector_set(run, "queries", asked, absent=[4])
    biases = query_biases(run, queries, vector_set(run, "training", learnt, 7), norms, device="cpu")
    found = search_sets(
        run, queries, vector_set(run, "references", among), 4, "ip", device="cpu", global_candidates=True
    )
    there = [number for number in range(20) if number != 4]
    products = np.sort(every_score(asked[there], learnt, "ip"), axis=1)[:, ::-1]
    for bias, (weight, first, last) in zip(biases, ((1.0, 0, 2), (0.5, 1, 3)), strict=True):
        shift = -weight * products[:, first : last + 1].mean(axis=1)
        scores = every_score(asked[there], among, "ip") + shift[:, None]
        expected = [(there[query], reference, score) for query, reference, score in best_pairs(scores, 4)]
        found_pairs = triples(run, global_pairs(run, found, bias))
        assert [pair[:2] for pair in found_pairs] == [pair[:2] for pair in expected]
        np.testing.assert_allclose([pair[2] for pair in found_pairs], [pair[2] for pair in expected], rtol=1e-12)
        listed = triples(run, nearest_pairs(run, found, bias))
        assert len(listed) == 4 * 19
        np.testing.assert_allclose(
            [score for query, _, score in listed if query == 7], np.sort(scores[there.index(7)])[::-1][:4], rtol=1e-12
        )
    searches = [record for record in run.records if record.name == "search"]
    assert len(searches) == 2, "one search of training vectors and one of references serve both norms"


def test_a_norm_beyond_the_training_set_is_one_line(tmp_path):
    run = inline_run(tmp_path)
    queries = vector_set(run, "queries", descriptors(5))
    training = vector_set(run, "training", descriptors(9), absent=[0, 1])
    with pytest.raises(DataError, match=r"score norm 1\.00\[0,7\]: needs 8 training vectors, there are 7"):
        query_biases(run, queries, training, [ScoreNorm(1.0, 0, 7)], device="cpu")


@pytest.mark.slow
def test_ray_with_eight_devices_gives_the_bytes_of_inline(tmp_path, local_ray):
    from raybench.engine.ray_core import RayExecutor

    executor = RayExecutor(Observer(), 2, 8, insist_on_gpus=True, owned=False)
    runs = {
        "inline": inline_run(tmp_path / "inline"),
        "ray": Run(str(tmp_path / "ray" / "out"), str(tmp_path / "ray" / "store"), executor, Observer()),
    }
    seen = set()
    for name, run in runs.items():
        queries, references = (
            vector_set(run, "queries", descriptors(60)),
            vector_set(run, "references", descriptors(900)),
        )
        device = "gpu" if name == "ray" else "cpu"
        found = search_sets(run, queries, references, 5, "squared_L2", device=device, global_candidates=True)
        seen.add(stored(global_pairs(run, found)))
    executor.close()
    assert len(seen) == 1
    lines = next((tmp_path / "ray" / "out" / "receipts").glob("*-pairs-above.jsonl")).read_text().splitlines()
    assert len({json.loads(line)["worker"]["actor"] for line in lines}) >= 8


def golden_figures(pairs, truth):
    """Micro AP, accuracy at 1 and recall at precision 90 of pooled pairs; among equal scores wrong ones come first."""
    right = np.array([(query, reference) in truth for query, reference, _ in pairs])
    score = np.array([pair[2] for pair in pairs])
    order = np.lexsort((right, -score))
    hits = np.cumsum(right[order])
    precision, recall = hits / np.arange(1, len(hits) + 1), hits / len(truth)
    good = recall[precision >= 0.9]
    by_query = {}
    for query, _, value in pairs:
        by_query.setdefault(query, []).append(value)
    first = sum(
        (query, reference) in truth and sum(other >= value for other in by_query[query]) == 1
        for query, reference, value in pairs
    )
    return {
        "uAP": float(precision[right[order]].sum() / len(truth)),
        "accuracy-at-1": first / len(truth),
        "recall-at-p90": float(good.max(initial=0.0)),
    }


@pytest.mark.parametrize("which", ["small", "exact"])
def test_golden_figures_come_out_of_codecs_norms_and_both_kinds_of_candidates(tmp_path, which):
    expected = json.loads((GOLDEN / "expected.json").read_text())
    tolerance = expected["tolerance"]
    run = inline_run(tmp_path)
    sets, names = {}, {}
    for file in ("queries", "refs", "train"):
        arrays = np.load(GOLDEN / "data" / which / f"{file}.npz")
        order = np.argsort(arrays["names"])
        names[file] = arrays["names"][order].astype(str).tolist()
        sets[file] = vector_set(run, file, arrays["embeddings"][order], 37)
    with (GOLDEN / "data" / which / "val_groundtruth_matches.csv").open() as file:
        lines = [line for line in csv.reader(file) if line[0] != "query_id" and line[1]]
    truth = {(names["queries"].index(query), names["refs"].index(reference)) for query, reference in lines}
    for key, figures in expected[f"expected_{which}"].items():
        codec, norm, kind = key.split("|")
        projected = project_sets(run, codec, sets["train"], [sets["queries"], sets["refs"], sets["train"]])
        queries, references, training = projected
        biases = query_biases(run, queries, training, parse_norms(norm), device="cpu")
        found = search_sets(
            run, queries, references, 10, "ip" if biases else "squared_L2", device="cpu", global_candidates=True
        )
        listed = (nearest_pairs if kind == "knn" else global_pairs)(run, found, biases[0] if biases else None)
        seen = golden_figures(triples(run, listed), truth)
        allowed = tolerance.get(f"{which}, codec {codec}", tolerance[which])
        for name, value in figures.items():
            if name in seen:
                within = allowed[name] if isinstance(allowed, dict) else allowed
                assert seen[name] == pytest.approx(value, abs=within), (key, name)
