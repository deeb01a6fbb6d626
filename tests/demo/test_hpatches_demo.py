import hashlib
import sys

import cv2
import numpy as np
import pytest

from raybench.demo import photos
from raybench.demo.hpatches import JITTERS, SEQUENCES, _carried, _jittered, make_hpatches
from raybench.descriptors.opencv import Sift
from raybench.descriptors.pixels import MeanStd, Resize
from raybench.errors import ConfigError

PATCHES = 15
IMAGES = ["ref"] + [f"{level}{change}" for level in "eht" for change in range(1, 6)]
KINDS, LEVELS = ("diffseq", "sameseq"), ("easy", "hard", "tough")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    make_hpatches(folder, patches=PATCHES)
    return folder


def lines(folder, name):
    return (folder / "benchmarks" / "classification" / name).read_text().splitlines()


def pairs(folder, name):
    return [line.split(",") for line in lines(folder, name)]


def strip(folder, sequence, image):
    read = cv2.imread(str(folder / "hpatches" / sequence / f"{image}.png"), cv2.IMREAD_UNCHANGED)
    return read.reshape(-1, 65, 65)


def digests(folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def trec_ap(distances, labels):
    ranked = labels[np.argsort(distances, kind="stable")]
    return (np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[ranked == 1].mean()


@pytest.fixture(scope="module")
def average_precision(made):
    def table(descriptor):
        rows = {}
        for sequence in SEQUENCES:
            for image in IMAGES:
                patches = strip(made, sequence, image)
                for index, row in enumerate(descriptor.describe(descriptor.prepare(patches))):
                    rows[f"{sequence}.{image}.{index}"] = row
        result = {}
        for kind in KINDS:
            for level in LEVELS:
                task = [pair for name in lines(made, f"demo_{kind}_{level}.benchmark") for pair in pairs(made, name)]
                distances = np.array([np.linalg.norm(rows[a] - rows[b]) for a, b, _ in task])
                result[kind, level] = trec_ap(distances, np.array([int(label) for _, _, label in task]))
        return result

    return {descriptor.name: table(descriptor) for descriptor in (MeanStd(), Resize(), Sift())}


def test_there_are_four_sequences_of_light_and_four_of_viewpoint(made):
    names = sorted(path.name for path in (made / "hpatches").iterdir())
    assert names == sorted(SEQUENCES)
    assert [name[:2] for name in names] == ["i_"] * 4 + ["v_"] * 4


def test_every_sequence_has_sixteen_grey_strips_of_square_patches(made):
    for sequence in SEQUENCES:
        assert {path.stem for path in (made / "hpatches" / sequence).iterdir()} == set(IMAGES)
        assert {strip(made, sequence, image).shape for image in IMAGES} == {(PATCHES, 65, 65)}


def test_the_patches_show_something(made):
    deviations = np.concatenate([strip(made, sequence, "ref").std(axis=(1, 2)) for sequence in SEQUENCES])
    assert np.median(deviations) > 15


def test_each_task_is_a_list_of_positives_and_one_of_negatives(made):
    for kind in KINDS:
        for level in LEVELS:
            expected = [f"demo_{level}_pos.pairs", f"demo_{kind}_neg.pairs"]
            assert lines(made, f"demo_{kind}_{level}.benchmark") == expected


@pytest.mark.parametrize("level", LEVELS)
def test_positives_are_one_point_in_two_images_of_their_level(made, level):
    positives = pairs(made, f"demo_{level}_pos.pairs")
    assert len(positives) == len({(a, b) for a, b, _ in positives}) == 600
    for a, b, label in positives:
        (sequence_a, image_a, k_a), (sequence_b, image_b, k_b) = a.split("."), b.split(".")
        assert label == "1" and (sequence_a, k_a) == (sequence_b, k_b) and image_a != image_b
        assert {image_a[0], image_b[0]} <= {"r", level[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_negatives_are_two_points_of_one_sequence_or_of_two(made, kind):
    negatives = pairs(made, f"demo_{kind}_neg.pairs")
    assert len(negatives) == 3000
    for a, b, label in negatives:
        (sequence_a, _, k_a), (sequence_b, _, k_b) = a.split("."), b.split(".")
        assert label == "0" and (sequence_a, k_a) != (sequence_b, k_b)
        assert (sequence_a == sequence_b) == (kind == "sameseq")


def test_every_signature_names_a_patch_that_exists(made):
    listed = [path.name for path in (made / "benchmarks" / "classification").glob("*.pairs")]
    for name in listed:
        for a, b, _ in pairs(made, name):
            for signature in (a, b):
                sequence, image, k = signature.split(".")
                assert sequence in SEQUENCES and image in IMAGES and 0 <= int(k) < PATCHES


def test_the_same_seed_gives_the_same_bytes(made, tmp_path):
    make_hpatches(tmp_path, patches=PATCHES)
    assert digests(tmp_path) == digests(made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["meanstd", "resize", "sift"])
def test_easy_is_easier_than_hard_and_hard_than_tough(average_precision, name, kind):
    easy, hard, tough = (average_precision[name][kind, level] for level in LEVELS)
    assert easy > hard > tough


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", LEVELS)
def test_sift_beats_resize_and_resize_beats_meanstd(average_precision, kind, level):
    meanstd, resize, sift = (average_precision[name][kind, level] for name in ("meanstd", "resize", "sift"))
    assert sift > resize + 0.04
    assert resize > meanstd + 0.04


def test_no_task_is_solved(average_precision):
    assert max(average_precision["sift"].values()) < 0.995


@pytest.mark.parametrize(("level", "published"), [("e", 0.85), ("h", 0.72)])
def test_the_jitter_overlaps_as_published(level, published):
    region = np.array([[1.0, 0, 0], [0, 1, 0]])
    grid = np.mgrid[-1:1:101j, -1:1:101j].reshape(2, -1)
    circle = np.linalg.norm(grid, axis=0) < 0.5
    overlaps = []
    for frame in _jittered(np.tile(region, (300, 1, 1)), JITTERS[level], np.random.default_rng(0)):
        ellipse = np.linalg.norm(np.linalg.solve(frame[:, :2], grid - frame[:, 2:]), axis=0) < 0.5
        overlaps.append((circle & ellipse).sum() / (circle | ellipse).sum())
    assert np.median(overlaps) == pytest.approx(published, abs=0.015)


def test_a_region_is_carried_by_the_homographys_slope():
    homography = np.array([[1.1, 0.1, 5], [-0.05, 0.9, 3], [1e-4, 2e-4, 1]])

    def seen(point):
        x, y, w = homography @ [*point, 1]
        return np.array([x / w, y / w])

    frame = np.array([[[20.0, -5, 100], [5, 20, 60]]])
    carried = _carried(frame, homography)[0]
    step = 1e-4
    for axis in (0, 1):
        slope = (seen([100, 60] + step * frame[0, :, axis]) - seen([100, 60])) / step
        np.testing.assert_allclose(carried[:, axis], slope, rtol=1e-4)
    np.testing.assert_allclose(carried[:, 2], seen([100, 60]))


def test_one_patch_a_sequence_is_too_few(tmp_path):
    with pytest.raises(ConfigError, match="patches=1: expected at least 2"):
        make_hpatches(tmp_path, patches=1)


def test_every_photo_is_in_colour_and_large_enough():
    for name, photo in photos.load_photos().items():
        assert photo.dtype == np.uint8 and photo.ndim == 3 and photo.shape[2] == 3 and min(photo.shape[:2]) > 150, name


def test_without_scikit_image_the_demo_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(ConfigError, match=r"pip install 'raybench\[demo\]'"):
        photos.load_photos()
