"""A search over sets in shards finds what brute force in float64 finds, for every cut, order, executor and device."""

import json

import numpy as np
import pytest
from vector_stages import inline_run, stored, vector_set

from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import DataError
from raybench.search.candidates import global_pairs, nearest_pairs
from raybench.search.distances import row_distances
from raybench.search.set_search import search_sets
from raybench.search.tiles import Tiles, room_for


def descriptors(count, dimension=16, seed=0, whole=False):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-2, 3, (count, dimension)) if whole else rng.standard_normal((count, dimension))
    return rows.astype(np.float32)


def brute_force(queries, references, k, metric):
    found = []
    for number, query in enumerate(queries):
        distances = row_distances(np.broadcast_to(query, references.shape), references, metric)
        order = np.lexsort((np.arange(len(references)), distances))[:k]
        found += [(number, int(place), 0.0 - distances[place]) for place in order]
    return found


def triples(arrays):
    return list(zip(*(arrays[name].tolist() for name in ("query", "reference", "score")), strict=True))


@pytest.mark.parametrize("metric", ["squared_L2", "ip"])
@pytest.mark.parametrize("whole", [False, True], ids=["floats", "tied whole numbers"])
def test_the_nearest_of_each_query_are_those_of_brute_force(tmp_path, metric, whole):
    run = inline_run(tmp_path)
    queries, references = descriptors(70, whole=whole), descriptors(900, seed=1, whole=whole)
    found = search_sets(
        run, vector_set(run, "queries", queries), vector_set(run, "references", references), 7, metric, device="cpu"
    )
    assert triples(run.read(nearest_pairs(run, found), 0)) == brute_force(queries, references, 7, metric)


@pytest.mark.parametrize("global_candidates", [False, True])
def test_more_neighbours_than_there_are_cost_no_more_than_all(tmp_path, global_candidates):
    run = inline_run(tmp_path)
    queries, references = descriptors(5), descriptors(30, seed=1)
    sets = vector_set(run, "queries", queries), vector_set(run, "references", references)
    found = search_sets(run, *sets, 10**9, "squared_L2", device="cpu", global_candidates=global_candidates)
    everything = brute_force(queries, references, 30, "squared_L2")
    assert triples(run.read(nearest_pairs(run, found), 0)) == everything
    if global_candidates:
        pairs = triples(run.read(global_pairs(run, found), 0))
        assert sorted(pairs) == sorted(everything)
        assert "pairs-above" not in {record.name for record in run.records}


@pytest.mark.parametrize("metric", ["squared_L2", "ip"])
def test_one_two_five_and_any_shards_in_any_order_give_the_same_bytes(tmp_path, metric):
    run = inline_run(tmp_path)
    queries, references = descriptors(90, whole=True), descriptors(600, seed=1, whole=True)
    asked = vector_set(run, "queries", queries, 33, order=np.random.default_rng(2).permutation(90))
    shuffled = vector_set(run, "references", references, 77, order=np.random.default_rng(3).permutation(600))
    straight = vector_set(run, "references", references, 600)
    seen = {
        stored(nearest_pairs(run, search_sets(run, asked, among, 10, metric, device="cpu", shard_size=size)))
        for size in (600, 300, 120, 7, 1_000, None)
        for among in (straight, shuffled)
    }
    assert len(seen) == 1
    assert triples(run.read(nearest_pairs(run, search_sets(run, asked, straight, 10, metric, device="cpu")), 0)) == (
        brute_force(queries, references, 10, metric)
    )


def test_skipped_images_are_neither_asked_for_nor_found(tmp_path):
    run = inline_run(tmp_path)
    queries, references = descriptors(20), descriptors(200, seed=1)
    asked = vector_set(run, "queries", queries, 6, absent=[3, 4, 5, 0, 1, 2, 19])  # two whole shards but for some
    among = vector_set(run, "references", references, 30, absent=range(50, 120))
    pairs = run.read(nearest_pairs(run, search_sets(run, asked, among, 200, "squared_L2", device="cpu")), 0)
    there = [number for number in range(20) if number not in (0, 1, 2, 3, 4, 5, 19)]
    assert sorted(set(pairs["query"].tolist())) == there
    expected = [
        pair
        for pair in brute_force(queries, references, 200, "squared_L2")
        if pair[0] in there and not 50 <= pair[1] < 120
    ]
    assert triples(pairs) == expected


def test_images_that_were_never_planned_leave_the_places_of_others_alone(tmp_path):
    run = inline_run(tmp_path)
    queries, references = descriptors(20), descriptors(200, seed=1)
    kept = np.random.default_rng(0).permutation(150)  # the last fifty were left out before anything was described
    among = [vector_set(run, "some", references, 30, order=kept), vector_set(run, "more", references[:9])]
    pairs = run.read(
        nearest_pairs(
            run, search_sets(run, vector_set(run, "queries", queries), among, 20, "squared_L2", device="cpu")
        ),
        0,
    )
    whole = np.concatenate([references[:150], references[:9]])
    expected = [
        (query, place if place < 150 else place + 50, score)
        for query, place, score in brute_force(queries, whole, 20, "squared_L2")
    ]
    assert triples(pairs) == expected


def test_several_sets_are_searched_as_one_behind_the_other(tmp_path):
    run = inline_run(tmp_path)
    queries, references = descriptors(30), descriptors(300, seed=1)
    asked = [vector_set(run, "originals", queries[:10], 4), vector_set(run, "copies", queries[10:], 100)]
    among = [vector_set(run, "originals", references[:57], 10), vector_set(run, "distractors", references[57:], 100)]
    pairs = run.read(nearest_pairs(run, search_sets(run, asked, among, 5, "squared_L2", device="cpu")), 0)
    assert triples(pairs) == brute_force(queries, references, 5, "squared_L2")


def test_packed_bits_are_searched_by_hamming_distance(tmp_path):
    run = inline_run(tmp_path)
    bits = np.random.default_rng(0).integers(0, 256, (300, 8)).astype(np.uint8)
    pairs = run.read(
        nearest_pairs(
            run,
            search_sets(
                run,
                vector_set(run, "queries", bits[:9]),
                vector_set(run, "references", bits),
                4,
                "squared_L2",
                device="cpu",
            ),
        ),
        0,
    )
    hamming = np.bitwise_count(bits[pairs["query"]] ^ bits[pairs["reference"]]).sum(axis=1)
    assert pairs["score"].tolist() == (-4.0 * hamming).tolist()
    assert pairs["score"][::4].tolist() == [0.0] * 9


def test_inline_and_ray_with_any_devices_give_the_same_bytes(tmp_path, local_ray):
    from raybench.engine.ray_core import RayExecutor

    queries, references = descriptors(300, whole=True), descriptors(2_000, seed=1, whole=True)
    seen = set()
    for name, gpus in (("inline", 0), ("cpus", 0), ("gpus", 8)):
        run = inline_run(tmp_path / name)
        executor = None
        if name != "inline":
            executor = RayExecutor(Observer(), 2, gpus, insist_on_gpus=gpus > 0, owned=False)
            run = Run(str(tmp_path / name / "out"), str(tmp_path / name / "store"), executor, Observer())
        asked, among = vector_set(run, "queries", queries), vector_set(run, "references", references, 500)
        device = "gpu" if gpus else "cpu"
        seen.add(stored(nearest_pairs(run, search_sets(run, asked, among, 10, "squared_L2", device=device))))
        if executor is not None:
            executor.close()
    assert len(seen) == 1
    lines = next((tmp_path / "gpus" / "out" / "receipts").glob("*-search.jsonl")).read_text().splitlines()
    workers = [json.loads(line)["worker"] for line in lines]
    assert len({worker["actor"] for worker in workers}) >= 8
    assert all(worker["device"].startswith("gpu ") for worker in workers)
    assert all(worker["device"].endswith("(logical): no GPU that torch sees") for worker in workers)


@pytest.mark.parametrize(("queries", "references"), [(1, 1), (1, 32), (1_000, 300), (10_000, 100_000), (5, 2_000_000)])
@pytest.mark.parametrize("k", [1, 40, 3_000])
def test_runs_cover_every_pair_once_and_are_enough_for_eight_actors(queries, references, k):
    tiles = Tiles.of_runs(queries, references, k, None)
    assert sum(len(rows) * len(columns) for rows, columns in map(tiles.at, range(len(tiles)))) == queries * references
    assert len(tiles) >= (8 if references >= 32 else 1)
    assert max(len(rows) * room_for(k) for rows in tiles.tile_rows()) <= 2**24
    assert max(len(columns) for _, columns in map(tiles.at, range(len(tiles)))) <= 131_072


@pytest.mark.parametrize(("queries", "references"), [(1, 1), (1, 32), (1_000, 300), (10_000, 100_000), (5, 2_000_000)])
def test_tiles_cover_every_pair_once_and_are_enough_for_eight_actors(queries, references):
    tiles = Tiles.over(queries, references, None)
    assert sum(len(rows) * len(columns) for rows, columns in map(tiles.at, range(len(tiles)))) == queries * references
    assert len(tiles) >= (8 if references >= 32 else 1)
    assert max(len(rows) for rows, _ in map(tiles.at, range(len(tiles)))) <= 2_048
    assert max(len(columns) for _, columns in map(tiles.at, range(len(tiles)))) <= 32_768


def test_as_many_neighbours_are_found_as_are_asked_for(tmp_path):
    run = inline_run(tmp_path)
    asked, among = vector_set(run, "queries", descriptors(3)), vector_set(run, "references", descriptors(3_000, seed=1))
    found = search_sets(run, asked, among, 2_000, "squared_L2", device="gpu")
    assert triples(run.read(nearest_pairs(run, found), 0)) == brute_force(
        descriptors(3), descriptors(3_000, seed=1), 2_000, "squared_L2"
    )


def test_sets_of_different_dimension_are_refused(tmp_path):
    run = inline_run(tmp_path)
    asked, among = vector_set(run, "queries", descriptors(3, 8)), vector_set(run, "references", descriptors(9, 16))
    with pytest.raises(DataError, match="queries have dimension 8, references 16; both must come from one descriptor"):
        search_sets(run, asked, among, 1, "squared_L2", device="cpu")


def test_an_empty_set_is_refused(tmp_path):
    run = inline_run(tmp_path)
    asked = vector_set(run, "queries", descriptors(3))
    with pytest.raises(DataError, match="references: no vectors"):
        search_sets(run, asked, vector_set(run, "references", descriptors(0)), 1, "squared_L2", device="cpu")
