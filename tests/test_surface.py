"""What a run shows to others on the machine and in the network: it listens on loopback only, and nothing that it leaves
may be written by everybody."""

import os
import stat
import subprocess
import sys
import tempfile

import pytest
from conftest import GOLDEN
from drivers import Driver, Stop, listeners

from raybench import storage

HBENCH = GOLDEN / "hbench_classification/data"
GIVEN = ("run", "hbench-classification", "--benchmarks", HBENCH / "benchmarks", "--shard-size", "4")
GIVEN += ("--data", HBENCH / "hpatches", "--descriptor", "patch_descriptors:Block4", "--device", "cpu")


@pytest.mark.slow
@pytest.mark.ray(own=True)
def test_a_local_run_listens_on_loopback_only(tmp_path):
    stop = Stop("raybench.engine.stages:publish_shard", "extract", 2)
    driver = Driver((*GIVEN, "--ray", "local", "--out", tmp_path / "out"), tmp_path / "meeting", stop)
    driver.wait_until_stopped()
    found = listeners(driver.pid)
    driver.go_on()
    code, said = driver.ended()
    assert code == 0, said
    assert len(found) > 5, "Ray was not seen listening"
    assert [listener for listener in found if not listener.is_loopback] == []


@pytest.fixture
def everybody_may():
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_all(folder):
    paths = [folder, *folder.rglob("*")]
    return [path for path in paths if not path.is_symlink() and path.stat().st_mode & stat.S_IWOTH]


@pytest.mark.parametrize("ray", ["off", pytest.param("local", marks=[pytest.mark.slow, pytest.mark.ray(own=True)])])
def test_nothing_that_a_run_leaves_may_be_written_by_everybody_whatever_the_umask(ray, everybody_may, tmp_path):
    places = ("--out", tmp_path / "new/out", "--store", tmp_path / "other/store")
    stop = Stop("raybench.engine.run:Run._perform", call=3)
    driver = Driver((*GIVEN, *places, "--ray", ray), tmp_path / "meeting", stop)
    driver.wait_until_stopped()
    assert (tmp_path / "new/out/.driver.json").exists()
    assert open_to_all(tmp_path / "new") == []
    driver.go_on()
    assert driver.ended()[0] == 0
    assert list((tmp_path / "new/out/receipts").iterdir())
    assert list((tmp_path / "other/store").rglob("*.shard"))
    assert open_to_all(tmp_path / "new") + open_to_all(tmp_path / "other") == []


def test_the_demo_makes_nothing_for_everybody_to_write(everybody_may, raybench, tmp_path, monkeypatch):
    def made(out, settings):
        out.mkdir()
        (out / "photo.png").touch()
        return [], out / "report.html"

    monkeypatch.setattr("raybench.demo.tour.run_demo", made)
    assert raybench("demo", "--out", tmp_path / "demo").code == 0
    assert (tmp_path / "demo/photo.png").exists()
    assert open_to_all(tmp_path / "demo") == []


def test_the_node_local_cache_is_its_users_alone_even_if_it_was_made_otherwise(everybody_may, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cache = tmp_path / f"raybench-cache-{os.getuid()}"
    cache.mkdir()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o777
    storage.publish("memory://surface/x", b"content")
    assert storage.fetch("memory://surface/x").parent == cache
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert open_to_all(cache) == []


def test_a_private_umask_stays_private(tmp_path):
    program = "import os, sys; os.umask(0o077); from raybench import storage; storage.publish(sys.argv[1], b'x')"
    subprocess.run([sys.executable, "-c", program, tmp_path / "a/b/x"], check=True)
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b", "a/b/x")]
    assert modes == [0o700, 0o700, 0o600]
