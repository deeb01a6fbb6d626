"""Codecs: what is refused and how it is said, training that no cut changes, projection shard by shard, failures."""

import os
import re
import subprocess
import sys

import faiss
import numpy as np
import pytest
from vector_stages import inline_run, vector_set

from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.search import codecs
from raybench.search.codecs import (
    CodecFailed,
    Transforms,
    codec_problems,
    default_codecs,
    project_sets,
    sampled_rows,
    trains,
)


def descriptors(count, seed=0, dimension=24):
    return np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)


@pytest.mark.parametrize(
    ("codec", "dimension", "training", "said"),
    [
        ("PCAW24", 24, 300, r"ends in 'PCAW24'; it must end in Flat, since search is exact"),
        ("PCAW24,L2norm", None, None, r"ends in 'L2norm'; it must end in Flat"),
        ("flat", None, None, r"ends in 'flat'; it must end in Flat"),
        ("", None, None, r"codec '': ends in ''; it must end in Flat"),
        ("PCAWW24,Flat", 24, 300, r"'PCAWW24' can't stand before Flat; expected vector transforms"),
        ("IVF16,Flat", 24, 300, r"'IVF16' can't stand before Flat"),
        ("HNSW32,Flat", None, None, r"'HNSW32' can't stand before Flat"),
        ("PCA12,IVF16,HNSW32,Flat", 24, 300, r"'IVF16', 'HNSW32' can't stand before Flat"),
        ("IDMap,Flat", 24, 300, r"'IDMap' can't stand"),
        ("Flat,Flat", 24, 300, r"'Flat' can't stand"),
        ("SQ8,Flat", 24, 300, r"'SQ8' can't stand"),
        ("PCA16, L2norm,Flat", 24, 300, r"' L2norm' can't stand .* without spaces"),
        ("PCAW99999999999,Flat", 24, 300, r"'PCAW99999999999' can't stand"),
        ("PCA0,Flat", None, None, r"PCA to dimension 0; give at least 1"),
        ("PCAW32,L2norm,Flat", 24, 300, r"PCA to dimension 32 of vectors of dimension 24; give at most 24"),
        ("PCA12,PCA16,Flat", 24, 300, r"PCA to dimension 16 of vectors of dimension 12; give at most 12"),
        ("ITQ32,Flat", 24, 300, r"ITQ to dimension 32 of vectors of dimension 24"),
        ("OPQ5_16,Flat", 24, 300, r"OPQ of dimension 16 in 5 parts; the dimension must be a multiple"),
        ("OPQ7,Flat", 24, 300, r"OPQ of dimension 24 in 7 parts"),
        ("PCAW24,Flat", 24, 24, r"PCA to dimension 24 needs 25 training vectors or more, there are 24"),
        ("PCA16,Flat", None, 15, r"PCA to dimension 16 needs 16 training vectors or more, there are 15"),
        ("ITQ16,Flat", 24, 15, r"ITQ to dimension 16 needs 16 training vectors or more"),
        ("OPQ4,Flat", 24, 255, r"OPQ needs 256 training vectors or more, there are 255"),
    ],
)
def test_a_wrong_codec_is_one_line_that_says_why(codec, dimension, training, said):
    (line,) = codec_problems(codec, dimension, training)
    assert line.startswith(f"codec {codec!r}: ")
    assert "\n" not in line
    assert re.search(said, line), line


@pytest.mark.parametrize(
    "codec",
    [
        "Flat",
        "L2norm,Flat",
        "PCAW24,L2norm,Flat",
        "L2norm,PCA12,Flat",
        "RR12,Flat",
        "RR,Flat",
        "OPQ4_12,Flat",
        "ITQ,Flat",
    ],
)
def test_a_right_codec_has_no_problems_with_and_without_dimension(codec):
    assert codec_problems(codec, 24, 300) == codec_problems(codec) == []


@pytest.mark.parametrize("codec", ["ITQ,Flat", "L2norm,ITQ,Flat"])
def test_a_bare_itq_needs_as_many_training_vectors_as_the_dimension_once_that_is_known(codec):
    assert codec_problems(codec, None, 300) == []
    assert codec_problems(codec, 256, 300) == []
    (problem,) = codec_problems(codec, 512, 300)
    assert "ITQ to dimension 512 needs 512 training vectors" in problem


def test_only_codecs_that_learn_train():
    assert [trains(codec) for codec in ("Flat", "L2norm,Flat", "RR12,Flat", "Pad30,Flat")] == [False] * 4
    assert [trains(codec) for codec in ("PCA4,Flat", "L2norm,PCAW4,Flat", "OPQ4,Flat", "ITQ,Flat")] == [True] * 4


def test_default_codecs_are_the_published_lists():
    assert default_codecs(512, normalised=True) == ("Flat", "PCAW512,L2norm,Flat")
    assert default_codecs(64, normalised=False) == (
        "Flat",
        "L2norm,Flat",
        "PCAW64,L2norm,Flat",
        "L2norm,PCAW64,Flat",
    )


def rows_of(projected):
    out = {}
    for shard in range(len(projected.mapped.shards)):
        index, vectors = projected.read(shard)
        out.update(zip(index.tolist(), vectors.tolist(), strict=True))
    return out


def test_sets_are_projected_as_faiss_does_and_keep_their_places(tmp_path):
    run = inline_run(tmp_path)
    training, queries = descriptors(300), descriptors(50, 1)
    order = np.random.default_rng(0).permutation(50)
    sets = [vector_set(run, "queries", queries, 7, order=order, absent=[3, 11]), vector_set(run, "training", training)]
    asked, learnt = project_sets(run, "PCAW24,L2norm,Flat", sets[1], sets)
    assert (asked.role, asked.count, len(asked.mapped.shards)) == ("queries", 50, 8)
    index = faiss.index_factory(24, "PCAW24,L2norm,Flat")
    index.train(training)
    theirs = np.frombuffer(index.sa_encode(queries), np.float32).reshape(50, 24)
    found = rows_of(asked)
    assert sorted(found) == [place for place in range(50) if place not in (3, 11)]
    ours, theirs = np.array([found[place] for place in sorted(found)]), theirs[sorted(found)]
    signs = np.sign((ours * theirs).sum(axis=0))  # which way an axis points means nothing
    np.testing.assert_allclose(ours * signs, theirs, atol=1e-4)
    assert len(rows_of(learnt)) == 300


@pytest.mark.parametrize(
    "codec", ["PCA16,Flat", "PCAW24,Flat", "L2norm,PCAW20,Flat", "PCAR12,Flat", "PCAWR12,L2norm,Flat"]
)
def test_principal_axes_keep_the_products_that_faiss_gives(codec):
    rows = descriptors(300)
    index = faiss.index_factory(24, codec)
    index.train(rows)
    theirs = np.frombuffer(index.sa_encode(rows), np.float32).reshape(300, -1)
    ours = Transforms(codec, 24).trained(rows).apply(rows)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-4)


def test_a_small_axis_is_whitened_as_exact_arithmetic_has_it():
    spread = np.geomspace(1, 1e-3, 24)
    rows = (np.random.default_rng(0).normal(size=(400, 24)) * spread + 3).astype(np.float32)
    white = Transforms("PCAW24,Flat", 24).trained(rows).apply(rows).astype(np.float64) * np.sqrt(len(rows))
    np.testing.assert_allclose(np.cov(white.T, bias=True), np.eye(24), atol=1e-3)


def test_what_does_not_fill_its_dimensions_is_not_finite_on_any_machine():
    flat = descriptors(300)
    flat[:, 5] = flat[:, 4]
    assert not Transforms("PCAW24,Flat", 24).trained(flat).is_finite
    assert Transforms("PCAW23,Flat", 24).trained(flat).is_finite


def test_flat_gives_the_sets_themselves_and_computes_nothing(tmp_path):
    run = inline_run(tmp_path)
    one = vector_set(run, "queries", descriptors(5))
    before = len(run.records)
    assert project_sets(run, "Flat", None, [one]) == (one,)
    assert len(run.records) == before


def test_codecs_that_do_not_learn_need_no_training_set(tmp_path):
    run = inline_run(tmp_path)
    (projected,) = project_sets(run, "L2norm,Flat", None, [vector_set(run, "queries", descriptors(5))])
    np.testing.assert_allclose(np.linalg.norm(list(rows_of(projected).values()), axis=1), 1, atol=1e-6)
    with pytest.raises(ValueError, match="needs training vectors"):
        project_sets(run, "PCA4,Flat", None, [projected])


def test_neither_cut_nor_order_of_the_training_set_changes_what_is_learnt(tmp_path):
    training = descriptors(300)
    learnt = set()
    for number, (size, seed) in enumerate([(300, None), (100, 1), (7, 2)]):
        run = inline_run(tmp_path / str(number))
        order = None if seed is None else np.random.default_rng(seed).permutation(300)
        one = vector_set(run, "training", training, size, order=order)
        (projected,) = project_sets(run, "PCAW20,L2norm,Flat", one, [one])
        learnt.add(np.array([row for _, row in sorted(rows_of(projected).items())], np.float32).tobytes())
    assert len(learnt) == 1


def test_a_sample_of_a_large_training_set_is_seeded_and_does_not_depend_on_shards(tmp_path, monkeypatch):
    monkeypatch.setattr(codecs, "ROWS_PER_DIMENSION", 4)
    run = inline_run(tmp_path)
    training = descriptors(300)
    cuts = [
        vector_set(run, "training", training, size, order=order, absent=range(40))
        for size, order in ((300, None), (33, np.random.default_rng(0).permutation(300)))
    ]
    samples = {seed: {sampled_rows(one, seed).tobytes() for one in cuts} for seed in (0, 1)}
    assert [len(found) for found in samples.values()] == [1, 1]
    assert samples[0] != samples[1]
    rows = sampled_rows(cuts[0], 0)
    assert rows.shape == (96, 24)
    places = [int(np.flatnonzero((training == row).all(axis=1))[0]) for row in rows]
    assert places == sorted(set(places)) and places[0] >= 40


def test_a_codec_whose_projection_is_not_finite_fails_and_others_go_on(tmp_path):
    run = inline_run(tmp_path)
    flat = descriptors(300)
    flat[:, 6:] = 0  # whitening divides by the variance of these directions, or by less, as eigenvalues are rounded
    training = vector_set(run, "training", flat)
    with pytest.raises(CodecFailed, match=r"^codec 'PCAW24,Flat': not finite"):
        project_sets(run, "PCAW24,Flat", training, [training])
    assert project_sets(run, "PCAW6,Flat", training, [training])


def test_too_small_a_training_set_is_a_failed_codec_where_nobody_checked_before(tmp_path):
    run = inline_run(tmp_path)
    training = vector_set(run, "training", descriptors(10))
    with pytest.raises(CodecFailed, match="needs 25 training vectors or more, there are 10"):
        project_sets(run, "PCAW24,Flat", training, [training])


def test_a_training_set_of_which_nothing_is_left_is_a_failed_codec(tmp_path):
    run = inline_run(tmp_path)
    for number, absent in ((0, ()), (10, range(10))):
        training = vector_set(run, "training", descriptors(number), absent=absent)
        with pytest.raises(CodecFailed, match="there are 0"):
            project_sets(run, "PCA4,Flat", training, [vector_set(run, "queries", descriptors(5))])


def test_values_that_overflow_fail_the_codec(tmp_path):
    run = inline_run(tmp_path)
    training, huge = vector_set(run, "training", descriptors(300)), np.sign(descriptors(20, 1)) * np.float32(3e38)
    with pytest.raises(CodecFailed, match="not finite for references"):
        project_sets(run, "PCA12,Flat", training, [vector_set(run, "references", huge)])


def test_ray_and_inline_give_the_same_bytes_and_a_failure_crosses_processes(tmp_path, local_ray):
    from raybench.engine.ray_core import RayExecutor

    executor = RayExecutor(Observer(), 2, 0, insist_on_gpus=False, owned=False)
    runs = [
        inline_run(tmp_path / "inline"),
        Run(str(tmp_path / "ray" / "out"), str(tmp_path / "ray" / "store"), executor, Observer()),
    ]
    for run in runs:
        training = vector_set(run, "training", descriptors(300), 50)
        assert project_sets(run, "PCAW24,L2norm,Flat", training, [training])
        with pytest.raises(CodecFailed):
            project_sets(run, "PCAW25,Flat", training, [training])
    executor.close()
    files = [
        {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name / "store").rglob("*.shard")}
        for name in ("inline", "ray")
    ]
    assert files[0] == files[1]


def test_training_is_the_same_however_many_threads_the_environment_offers():
    code = (
        "import numpy as np; from raybench.search.codecs import Transforms; from raybench.formats import shardfile; "
        "from raybench.digests import digest_of_bytes; "
        "rows = np.random.default_rng(0).standard_normal((3000, 96)).astype(np.float32); "
        "print(digest_of_bytes(shardfile.encode(Transforms('PCAW64,Flat', 96).trained(rows).to_arrays())))"
    )
    seen = set()
    for threads in ("1", "2"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        command = [sys.executable, "-c", code]
        seen.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(seen) == 1
