"""What `check` says of a small batch: rows that rest on the rest of it, or on chance, are refused."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from conftest import GOLDEN

from raybench.descriptors.patch_descriptors import resolve
from raybench.errors import DataError, ProblemList
from raybench.extract.patch_trial import PatchTrial
from raybench.extract.patches import Extract
from raybench.extract.trials import batch_words
from raybench.sources.strips import Strips

ROWS = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
SPEC = dataclasses.replace(resolve("sift", {}), name="mine")


def test_rows_that_are_the_same_alone_are_good():
    assert batch_words(SPEC, ROWS, ROWS[:4], "patches") == "8 patches, 16 values each"


def test_the_noise_of_half_precision_is_no_difference():
    assert batch_words(SPEC, ROWS, ROWS[:4].astype(np.float16), "patches")


def test_a_bit_that_flips_is_no_difference():
    bits = np.random.default_rng(0).integers(0, 256, (8, 32)).astype(np.uint8)
    flipped = bits[:4].copy()
    flipped[:, 0] ^= 128
    assert batch_words(SPEC, bits, flipped, "patches")


@pytest.mark.parametrize("alone", [ROWS[:4] - ROWS[:4].mean(0), ROWS[4:], ROWS[:4, :8]])
def test_rows_that_differ_alone_are_refused(alone):
    with pytest.raises(DataError, match="descriptor mine: gives patches other rows"):
        batch_words(SPEC, ROWS, alone, "patches")


def test_rows_that_are_all_the_same_are_told():
    same = np.ones((8, 4), np.float32)
    assert "all the same" in batch_words(SPEC, same, same[:4], "patches")


def problems_of(kind, batch_size):
    strips = Strips.scan(str(GOLDEN / "hbench_classification/data/hpatches"))
    stage = Extract(strips, resolve(f"patch_descriptors:{kind}", {}), "cpu", batch_size)
    problems = ProblemList()
    PatchTrial(stage, (0, 1, 2)).attempt(0, problems)
    return problems.lines


@pytest.mark.parametrize("batch_size", [None, 2, 3, 4, 8])
def test_patches_whose_rows_depend_on_their_batch_are_refused_for_every_batch_size(batch_size):
    (line,) = problems_of("MinusBatchMean", batch_size)
    assert line.startswith("descriptor block4: gives patches other rows when others are in their batch")
    assert problems_of("Block4", batch_size) == []


@pytest.mark.parametrize("batch_size", [None, 1, 4])
def test_so_are_those_that_depend_on_their_strip(batch_size):
    assert len(problems_of("MinusStripMean", batch_size)) == 1


def test_batches_of_one_have_no_others():
    assert problems_of("MinusBatchMean", 1) == []
