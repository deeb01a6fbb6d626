"""Runs of very many shards: what the driver holds stays the same, and what is done is found in seconds."""

import json
import shutil
import subprocess
import sys
import time
from itertools import cycle, islice

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SHARDS = 20_000
PAGE = 1_000  # names that an S3 server lists per request


@pytest.mark.ray(own=True)
@pytest.mark.parametrize("gpus", [0, 2])
def test_twenty_thousand_shards_through_ray_leave_memory_and_open_files_of_the_driver_as_they_were(tmp_path, gpus):
    """100,000 are the same command with another number; tests/README.md has their figures."""
    command = [sys.executable, "-m", "long_run", str(SHARDS), str(tmp_path / "out"), str(gpus)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout.splitlines()[-1])
    samples = found["samples"]
    assert samples[-1]["shards"] == SHARDS == found["computed"] == found["attempts"]
    settled = samples[len(samples) // 4 :]
    assert max(one["files"] for one in settled) - min(one["files"] for one in settled) <= 2
    assert settled[-1]["rss_mb"] - settled[0]["rss_mb"] < 12, samples
    print(
        f"{1_000 * found['wall_seconds'] / SHARDS:.2f} ms per shard, {found['driver_cpu_seconds']:.1f} s of the driver"
    )


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A finished run of 20,000 shards, one per pair, and its arguments but for where it is."""
    from conftest import GOLDEN

    golden = GOLDEN / "hbench_classification/data"
    folder = tmp_path_factory.mktemp("many")
    tasks = folder / "benchmarks/classification"
    tasks.mkdir(parents=True)
    for name, source, count in (("pos", "mini_easy_pos", 5_000), ("neg", "mini_sameseq_neg_e", SHARDS - 5_000)):
        lines = (golden / f"benchmarks/classification/{source}.pairs").read_text().splitlines(keepends=True)
        (tasks / f"many_{name}.pairs").write_text("".join(islice(cycle(lines), count)))
    (tasks / "many.benchmark").write_text("many_pos.pairs\nmany_neg.pairs\n")
    (tasks / "many.labels").write_text("1\n" * 5_000 + "0\n" * (SHARDS - 5_000))
    given = ["run", "hbench-classification", "--features", golden / "descriptors/block4", "--ray", "off"]
    given += ["--benchmarks", folder / "benchmarks", "--shard-size", "1", "--progress", "none"]
    command = [sys.executable, "-m", "small_shards", "1", *map(str, given), "--out", str(folder / "out")]
    subprocess.run(command, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("raybench.search.pairs.PAIRS_PER_SHARD", 1)
        yield folder, given


def call_off(manifest):
    """The manifest of a run that was ended right before its end."""
    found = json.loads(manifest.read_text())
    assert found["status"] == "done"
    manifest.write_text(json.dumps({**found, "status": "running"}))


def computed(manifest):
    stages = json.loads(manifest.read_text())["stages"]
    assert max(stage["shards"] for stage in stages) == SHARDS
    return sum(stage["computed"] for stage in stages if stage["shards"] > 2)  # but for files for people


def test_a_finished_run_on_disk_is_found_done_and_a_stopped_one_resumed_in_seconds(many, raybench):
    """Two seconds by the clock of a quiet machine (0.6 and 0.5 were seen); here by CPU, with room for a slow one."""
    folder, given = many
    started = time.process_time()
    said = raybench(*given, "--out", folder / "out")
    assert "done already" in said.err
    assert time.process_time() - started < 8
    call_off(folder / "out/manifest.json")
    started = time.process_time()
    assert raybench(*given, "--out", folder / "out").code == 0
    assert time.process_time() - started < 8
    assert computed(folder / "out/manifest.json") == 0


def test_a_finished_run_on_s3_is_found_by_a_handful_of_requests_and_resumed_by_one_list(
    many, s3, raybench, tmp_path_factory, monkeypatch
):
    """Each request of a far store takes a tenth of a second: their number is what counts, never one per shard."""
    from aiobotocore.httpsession import AIOHTTPSession

    folder, given = many
    bucket = next(tmp_path_factory.getbasetemp().glob("s3*")) / "many"
    shutil.copytree(folder / "out/stages", bucket / "stages")
    where = ("--out", "s3://many/out", "--store", "s3://many/stages")
    requests = []
    send = AIOHTTPSession.send

    async def counted(self, request):
        requests.append(f"{request.method} {request.url}")
        return await send(self, request)

    monkeypatch.setattr(AIOHTTPSession, "send", counted)
    assert raybench(*given, *where).code == 0
    assert computed(bucket / "out/manifest.json") == 0
    requests.clear()
    assert "done already" in raybench(*given, *where).err
    assert 0 < len(requests) < 20, requests
    requests.clear()
    call_off(bucket / "out/manifest.json")
    started = time.monotonic()
    assert raybench(*given, *where).code == 0
    print(f"resumed in {time.monotonic() - started:.1f} s by {len(requests)} requests")
    assert computed(bucket / "out/manifest.json") == 0
    lists = [one for one in requests if "list-type" in one]
    assert SHARDS / PAGE <= len(lists) < SHARDS / PAGE + 30, lists
    others = [one for one in requests if one not in lists and ".driver.json" not in one]  # the lease goes by the clock
    assert len(others) < 60, others
