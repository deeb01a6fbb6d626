"""Descriptors of OpenCV's contrib modules. Their wheel takes the place of the plain one, so most of this is skipped
here; the slow test puts the wheel into a folder of its own, and runs all of it there and the command line too."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from test_opencv import textured

from raybench.descriptors import CONTRIB_DESCRIPTORS, CONTRIB_INSTALL
from raybench.descriptors.opencv_contrib import Beblid, BoostDesc, Brief, Daisy, Latch, Vgg
from raybench.descriptors.patch_canvas import CHUNK
from raybench.descriptors.patch_descriptors import resolve
from raybench.errors import ConfigError

ROOT = Path(__file__).parent.parent.parent
THERE = hasattr(cv2, "xfeatures2d")
needs_contrib = pytest.mark.skipif(not THERE, reason="this OpenCV is without its contrib modules (xfeatures2d)")
ROWS = {  # bytes of packed bits, or floats
    "vgg": (120, np.float32),
    "boostdesc": (32, np.uint8),
    "beblid": (64, np.uint8),
    "beblid-256": (32, np.uint8),
    "teblid": (64, np.uint8),
    "teblid-256": (32, np.uint8),
    "latch": (32, np.uint8),
    "daisy": (200, np.float32),
    "brief": (32, np.uint8),
}


def described(name, patches):
    descriptor = resolve(name, {}).open()
    return descriptor.describe(descriptor.prepare(patches))


@pytest.mark.skipif(THERE, reason="this OpenCV has its contrib modules")
@pytest.mark.parametrize("name", CONTRIB_DESCRIPTORS)
def test_without_the_contrib_modules_one_line_says_how_to_get_them(name):
    with pytest.raises(ConfigError) as raised:
        resolve(name, {})
    said = str(raised.value)
    assert "\n" not in said and "is without its contrib modules (xfeatures2d)" in said and CONTRIB_INSTALL in said


@pytest.mark.skipif(THERE, reason="this OpenCV has its contrib modules")
def test_a_worker_without_the_contrib_modules_says_the_same():
    with pytest.raises(ConfigError, match="pip uninstall -y opencv-python-headless"):
        Latch().describe(Latch().prepare(textured(2)))


def test_the_lists_and_the_line_name_the_same_wheel():
    wheel = CONTRIB_INSTALL.split("'")[1]
    assert wheel in (ROOT / "constraints.txt").read_text().splitlines()
    assert f'contrib = ["{wheel}"]' in (ROOT / "pyproject.toml").read_text()
    assert set(ROWS) == set(CONTRIB_DESCRIPTORS)


def test_list_says_how_to_get_them(raybench):
    said = raybench("list").out
    assert f"{', '.join(CONTRIB_DESCRIPTORS)}\n    {CONTRIB_INSTALL}\n" in said


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("side", [21, 65, 100])
def test_every_patch_gets_one_row_whatever_its_side(name, side):
    rows = described(name, textured(CHUNK + 3, side))
    assert (rows.shape, rows.dtype) == ((CHUNK + 3, ROWS[name][0]), ROWS[name][1])
    assert np.isfinite(rows.astype(np.float64)).all()
    assert described(name, textured(0, side)).shape == (0, ROWS[name][0])


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
def test_bits_are_compared_by_hamming_distance_and_floats_by_l2(name):
    assert resolve(name, {}).distance == ("hamming" if ROWS[name][1] == np.uint8 else "L2")
    assert resolve(name, {}).name == name


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_the_same_bytes_in_every_batch(name):
    patches = textured(2 * CHUNK + 3)
    whole = described(name, patches)
    assert np.concatenate([described(name, patch[np.newaxis]) for patch in patches]).tobytes() == whole.tobytes()
    assert described(name, patches[::-1])[::-1].tobytes() == whole.tobytes()


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
def test_a_row_does_not_depend_on_the_neighbours(name):
    patch = textured(1)[0]
    rows = set()
    for neighbour in (np.zeros_like(patch), np.full_like(patch, 255), textured(1, seed=7)[0]):
        rows.add(described(name, np.stack([neighbour, patch, neighbour]))[1].tobytes())
    assert len(rows) == 1


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
def test_every_corner_of_the_patch_counts_and_different_patches_differ(name):
    patches = textured(40)
    plain = described(name, patches)
    assert len(np.unique(plain, axis=0)) == 40
    for rows in (slice(0, 20), slice(45, 65)):
        for columns in (slice(0, 20), slice(45, 65)):
            covered = patches.copy()
            covered[:, rows, columns] = 0
            assert (described(name, covered) != plain).any()


@needs_contrib
@pytest.mark.parametrize("name", ROWS)
def test_a_constant_patch_gets_the_same_finite_row_whatever_its_grey(name):
    rows = described(name, np.stack([np.full((65, 65), grey, np.uint8) for grey in (20, 90, 200)]))
    assert np.isfinite(rows.astype(np.float64)).all() and len(np.unique(rows, axis=0)) == 1


@needs_contrib
def test_beblid_of_32_px_is_what_its_author_says_for_32_px():
    """github.com/iago-suarez/BEBLID, issue 4: the keypoint at (16, 16), scale 1."""
    for patch in textured(5, 32):
        _, expected = cv2.xfeatures2d.BEBLID.create(1.0).compute(patch, [cv2.KeyPoint(16.0, 16.0, 32.0, 0.0)])
        np.testing.assert_array_equal(described("beblid", patch[np.newaxis])[0], expected[0])


@needs_contrib
@pytest.mark.parametrize(
    ("kind", "border"), [(Vgg, 60), (BoostDesc, 60), (Beblid, 60), (Latch, 60), (Daisy, 90), (Brief, 60)]
)
def test_a_row_is_what_opencv_gives_for_one_patch_in_a_wide_border(kind, border):
    descriptor = kind()
    prepared = descriptor.prepare(textured(3))
    centre = border + ((descriptor.side_px - 1) / 2 if descriptor.centre_px is None else descriptor.centre_px)
    for patch, row in zip(prepared, descriptor.describe(prepared), strict=True):
        keypoint = cv2.KeyPoint(centre, centre, float(descriptor.side_px), 0.0)
        _, expected = descriptor.feature(cv2.xfeatures2d).compute(np.pad(patch, border, mode="edge"), [keypoint])
        np.testing.assert_array_equal(row, expected[0])


@needs_contrib
def test_each_histogram_of_daisy_has_norm_one():
    norms = np.linalg.norm(described("daisy", textured(4)).reshape(4, 25, 8), axis=2)
    np.testing.assert_allclose(norms, 1, atol=1e-5)


@pytest.fixture(scope="module")
def with_contrib(tmp_path_factory):
    """An environment in which `cv2` is that of the contrib wheel, from a folder of its own."""
    folder = tmp_path_factory.mktemp("contrib")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    said = subprocess.run([*command, CONTRIB_INSTALL.split("'")[1]], capture_output=True, text=True, check=False)
    if said.returncode:
        pytest.skip(f"the wheel can't be had: {said.stderr.strip().splitlines()[-1]}")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}


def run_with(environment, *command):
    said = subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return said.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_the_contrib_wheel_all_of_them_beat_meanstd_at_every_noise(with_contrib, tmp_path):
    from raybench.demo.hpatches import make_hpatches

    quick = ("-q", "-p", "no:cacheprovider", "-m", "not slow", Path(__file__))
    assert " failed" not in run_with(with_contrib, "pytest", *quick)
    make_hpatches(tmp_path)
    given = ("--data", tmp_path / "hpatches", "--benchmarks", tmp_path / "benchmarks")

    def table(name, *where):
        out = tmp_path / "-".join(map(str, (name, *where)))  # with a store of its own
        words = ("run", "hbench-matching", *given, "--descriptor", name, "--out", out, *where)
        run_with(with_contrib, "raybench", *words)
        return (out / "hbench_matching.csv").read_bytes()

    def maps(content):
        return {row["task"]: float(row["map"]) for row in csv.DictReader(content.decode().splitlines())}

    tables = {name: table(name, "--ray", "off") for name in ("meanstd", *ROWS)}
    found = {name: maps(content) for name, content in tables.items()}
    least = found.pop("meanstd")
    assert {task.split("_")[1] for task in least} == {"easy", "hard", "tough"}
    for name, own in found.items():
        assert all(own[task] > least[task] for task in least), (name, own, least)
    means = {name: np.mean(list(own.values())) for name, own in found.items()}
    assert min(means, key=means.get) == "brief" and max(means, key=means.get) in ("vgg", "latch")
    assert table("beblid", "--ray", "local", "--cpus", 2) == tables["beblid"]
