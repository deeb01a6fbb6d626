"""Every public reader against damaged input: values or an error of ours, never another exception, a hang, a crash, or
more memory than a stated limit. `campaign` says how inputs are made and read."""

import pytest
from fuzz.campaign import ALL_INPUTS, campaign, shares
from fuzz.readers import READERS
from fuzz.worker import MOST_BYTES, STORED, outcome, stored_inputs

FAULTY_SEED = 413  # of which the first eight inputs are of each kind


def failures(found):
    return [line for tally in found.values() for line in tally.failures]


@pytest.mark.seconds
def test_damaged_input_gives_values_or_an_error_of_ours():
    found = campaign(shares(2_000), seed=11)
    assert not failures(found)
    assert all(tally.own_errors + tally.values == tally.inputs for tally in found.values())
    assert all(tally.peak_bytes < MOST_BYTES for tally in found.values())


@pytest.mark.slow
@pytest.mark.timeout(3_600)
def test_fifty_thousand_damaged_inputs_give_values_or_an_error_of_ours():
    found = campaign(shares(ALL_INPUTS), seed=12)
    assert sum(tally.inputs for tally in found.values()) >= ALL_INPUTS
    assert not failures(found)
    for name, tally in found.items():
        assert tally.own_errors + tally.values == tally.inputs
        assert tally.own_errors or name == "whole numbers", f"no input of {name} was refused: is it damaged at all?"
        assert tally.peak_bytes < MOST_BYTES


@pytest.mark.seconds
def test_inputs_that_once_failed_are_refused_or_read():
    stored = {name: len(inputs) for name, inputs in stored_inputs().items()}
    assert sum(stored.values()) > 50
    found = campaign(stored, STORED)
    assert not failures(found)
    assert max(tally.peak_bytes for tally in found.values()) < 2**28


@pytest.mark.parametrize("name", READERS)
def test_what_is_damaged_is_read_when_it_is_whole(name, tmp_path):
    for data in READERS[name].seeds():
        letter, words = outcome(name, data, tmp_path)
        assert letter == "v" or name in ("sscd weights", "hbench .results, holes"), words


@pytest.mark.seconds
def test_a_hang_a_crash_a_bomb_and_a_foreign_exception_are_each_found():
    found = campaign({"faulty": 8}, seed=FAULTY_SEED)["faulty"]
    words = " ".join(found.failures)
    assert all(fault in words for fault in ("hangs", "crashes by SIGSEGV", "MemoryError", "KeyError"))
    assert (found.own_errors, found.values, len(found.failures)) == (2, 2, 4)
