"""The demo's flow pairs: the published layout, flow that is true there and back, and the order of methods."""

import numpy as np
import pytest

from raybench.benchmarks.tss import trees
from raybench.benchmarks.tss.rules_vc import known, warped
from raybench.demo.tss import TSS_SUBJECTS, make_tss


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    make_tss(folder)
    found = trees.list_truth(str(folder / "Dataset"))
    pairs = list(trees.look_at_truth(found, list(found.files), images=True).values())
    assert not found.problems
    return folder, trees.TruthTree.of(found, pairs, False), trees.TreeImages.of(found, pairs, False)


def test_there_are_two_groups_with_one_mirrored_pair_each(made):
    _, truth, _ = made
    for group in ("homography", "warp"):
        flips = [pair.flip for pair in truth.pairs if pair.group == group]
        assert (len(flips), sum(flips)) == (len(TSS_SUBJECTS), 1)
    assert len({truth.read(pair).flows[1].shape for pair in truth.pairs}) == 3


def test_going_there_and_back_ends_where_it_started(made):
    _, truth, _ = made
    for pair in truth.pairs:
        flows = truth.read(pair).flows
        for flow, back in (flows, flows[::-1]):
            returned = warped(back, flow, 1e10)
            both = known(flow) & known(returned) & (np.abs(returned) < 1e6).all(axis=2)
            assert both.sum() > 0.9 * known(flow).sum(), pair.name
            assert np.percentile(np.hypot(*(flow + returned)[both].T), 95) < 0.1, pair.name


def test_the_thing_is_where_the_mask_is_and_looks_alike_in_both_images(made):
    _, truth, images = made
    for pair in truth.pairs:
        side, (first, second) = truth.read(pair), images.read(pair)
        assert np.array_equal(known(side.flows[0]), side.masks[0] > 0)
        seen = warped(second.astype(np.float32), side.flows[0], 0.0).mean(axis=2)
        inside = side.masks[0] > 0
        likeness = np.corrcoef(seen[inside], first.mean(axis=2)[inside])[0, 1]
        apart = np.corrcoef(second.mean(axis=2)[:240, :288].ravel(), first.mean(axis=2)[:240, :288].ravel())[0, 1]
        assert likeness > 0.95 > apart, pair.name


def test_making_it_twice_gives_the_same_bytes(made, tmp_path):
    folder, _, _ = made
    make_tss(tmp_path)
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.*"))
    assert len(files) == 2 * len(TSS_SUBJECTS) * 8
    assert all((folder / file).read_bytes() == (tmp_path / file).read_bytes() for file in files)


@pytest.mark.slow
def test_methods_stand_in_the_order_that_their_effort_promises(made, raybench, tmp_path):
    import csv

    folder, _, _ = made
    found = {}
    for method in ("zero", "farneback", "dense-sift"):
        given = ("--data", folder / "Dataset", "--descriptor", method, "--out", tmp_path / method, "--ray", "off")
        assert raybench("run", "tss", *given).code == 0
        (found[method],) = [
            row for row in csv.DictReader((tmp_path / method / "tss.csv").open()) if row["group"] == "mean"
        ]
    figures = [float(found[method]["T5_no_flip"]) for method in found]
    assert figures == sorted(figures)
    assert figures[-1] > 0.9
    assert all(float(row["T5"]) < float(row["T5_no_flip"]) for row in found.values())  # mirrored pairs defeat all
