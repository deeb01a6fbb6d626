"""A GPU whose searches are wrong is found out before a result rests on them; tried with CPUs in its place."""

from functools import partial

import numpy as np
import pytest
import torch

from raybench.descriptors.cuda import GpuFacts
from raybench.errors import ConfigError
from raybench.search.bound import Bound
from raybench.search.by_faiss import ByFaiss
from raybench.search.by_numpy import ByNumpy
from raybench.search.by_torch import ByTorch
from raybench.search.coarse import CoarseScores
from raybench.search.gpu_check import (
    DIMENSION,
    STEPS,
    check_gpu,
    checked_gpu,
    close_rows,
    disagreement,
    exact_nearest,
    proposer_for,
    search_of,
)
from raybench.search.nearest import nearest
from raybench.search.running import References, nearest_along

GPU = GpuFacts(True, "580.82.07", "2.13.0+cu130", "A10G", 21 * 2**30, 22 * 2**30)


class Spoilt(ByFaiss):
    """FAISS whose values and rows are changed on their way, as by a GPU that computes otherwise."""

    def __init__(self, spoil):
        super().__init__(gpu=False)
        self._spoil = spoil

    def lists(self, queries, references, count, distance):
        values, rows = super().lists(queries, references, len(references), distance)
        values = self._spoil(values, distance)
        order = np.argsort(values, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(values, order, axis=1), np.take_along_axis(rows, order, axis=1)


class Failing(ByFaiss):
    def lists(self, queries, references, count, distance):
        raise RuntimeError("CUDA error 35\nand a trace")


class Tf32(ByFaiss):
    """FAISS that multiplies as TF32 does: rows keep ten bits."""

    def lists(self, queries, references, count, distance):
        cut = [(rows.view(np.int32) & np.int32(-(2**13))).view(np.float32) for rows in (queries, references)]
        return super().lists(*cut, count, distance)


def noise(errors):
    """Values that are off by up to so many errors of the bound."""

    def spoil(values, distance):
        most = errors * float(Bound(distance, DIMENSION).errors(np.array([2.0]), 2.0)[0])
        return values + np.random.default_rng(1).uniform(-most, most, values.shape).astype(np.float32)

    return spoil


def by_coarse_scores(kind, queries, references, k, distance):
    whole = References([np.arange(len(references))], [references])
    return nearest_along(queries, whole, k, [distance], kind, ByNumpy)[0].place


class LowScores(CoarseScores):
    """Scores of which every other one is lost, as by sums that are kept in bfloat16."""

    def _products(self, rows):
        products = super()._products(rows).clone()
        products[:, ::2] *= 0.9
        return products


@pytest.mark.parametrize("make", [partial(ByFaiss, gpu=False), partial(ByTorch, "cpu"), ByNumpy])
def test_libraries_within_the_bound_agree_with_float64(make):
    assert disagreement(search_of(make)) == ""


def test_coarse_scores_agree_too_and_are_found_out_where_they_are_wrong():
    assert disagreement(partial(by_coarse_scores, CoarseScores)) == ""
    assert disagreement(partial(by_coarse_scores, LowScores)).startswith("wrong neighbours by")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (partial(Spoilt, noise(4)), "wrong neighbours by squared_L2 for "),
        (partial(Spoilt, noise(1_000)), "wrong neighbours by squared_L2 for 16 of 16 queries"),
        (partial(Tf32, gpu=False), "wrong neighbours by ip for 16 of 16 queries"),
        (partial(Spoilt, lambda values, _: values[:, ::-1]), "wrong neighbours by squared_L2 for 16 of 16 queries"),
        (partial(Spoilt, lambda values, _: values * 0), "failed: leaves 16 of 16 queries open"),
        (partial(Spoilt, lambda values, _: values * np.nan), "failed: leaves 16 of 16 queries open"),
    ],
    ids=["a little off", "far off", "TF32", "other order", "zeros", "not a number"],
)
def test_values_that_the_bound_does_not_allow_are_found_out(make, words):
    assert disagreement(search_of(make)).startswith(words)


def test_values_that_the_bound_allows_are_let_pass():
    assert disagreement(search_of(partial(Spoilt, noise(0.1)))) == ""


@pytest.mark.parametrize("distance", ["squared_L2", "ip"])
@pytest.mark.parametrize("step", STEPS)
def test_the_rows_that_are_tried_stand_close_but_apart(distance, step):
    queries, references = close_rows(distance, step)
    order = exact_nearest(queries, references, distance)
    np.testing.assert_array_equal(order, nearest(queries, references, order.shape[1], distance).place)
    assert (order // 64 == np.arange(len(queries))[:, None]).all()  # each query's own


def test_torch_takes_over_where_faiss_fails_or_disagrees_and_that_is_said():
    by_torch = partial(ByTorch, "cpu")
    for wrong, words in (
        (partial(Failing, gpu=False), "FAISS failed: CUDA error 35"),
        (partial(Spoilt, noise(1_000)), "FAISS wrong neighbours by squared_L2 for 16 of 16 queries"),
        (ByFaiss.on_gpu, "FAISS failed: sees no GPU; is faiss-gpu installed, and faiss-cpu not?"),
    ):
        checked = check_gpu(GPU, {}, {"FAISS": wrong, "torch": by_torch})
        assert checked.make_proposer is by_torch
        assert checked.words == f"{GPU.words}; {words}; searched by torch"


def test_the_first_that_agrees_is_taken():
    checked = check_gpu(GPU, {}, {"FAISS": ByNumpy, "torch": Failing})
    assert checked.make_proposer is ByNumpy
    assert checked.words == "A10G, driver 580.82.07, torch 2.13.0+cu130, 21.0 of 22.0 GB free; searched by FAISS"


def test_a_gpu_on_which_nothing_agrees_is_refused_in_one_line():
    failing = partial(Failing, gpu=False)
    with pytest.raises(
        ConfigError, match=r"FAISS failed: CUDA error 35; torch failed: CUDA error 35; install"
    ) as raised:
        check_gpu(GPU, {}, {"FAISS": failing, "torch": failing})
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigError, match="torch wrong neighbours by"):
        check_gpu(GPU, {"torch": search_of(partial(Tf32, gpu=False))}, {"FAISS": ByNumpy})


def test_a_gpu_that_torch_can_not_use_is_refused_before_anything_is_tried():
    old = GpuFacts(True, "470.57.02", "2.13.0+cu130", problem="The NVIDIA driver on your system is too old")
    full = GpuFacts(True, "580.82.07", "2.13.0+cu130", "A10G", 2**28, 22 * 2**30)
    for facts, words in ((old, r"driver 470\.57\.02 \(The NVIDIA driver .* too old\)"), (full, "256 of 22,528 MB")):
        with pytest.raises(ConfigError, match=words):
            check_gpu(facts, {}, {"FAISS": ByNumpy})


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch sees")
def test_a_real_gpu_is_searched_by_a_library_that_agrees_with_float64():
    checked = checked_gpu()
    assert checked.make_proposer is not None
    assert checked.words.endswith(("searched by FAISS", "searched by torch"))
    assert disagreement(search_of(checked.make_proposer)) == ""


def test_a_logical_gpu_is_searched_on_the_cpu():
    assert check_gpu(GpuFacts(is_there=False), {}, {}).make_proposer is None
    assert isinstance(proposer_for(gpu=True), ByFaiss)  # no test machine has a GPU that torch sees
