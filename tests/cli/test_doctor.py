"""`raybench doctor`: one table that says what is there, hangs on nothing, fails on nothing and shows no secret."""

import os
import signal
import time

import pytest
from conftest import free_port

from raybench.cli.findings import credentials, endpoint, examined
from raybench.cli.probes import GOOD, LOOK, NONE, STORAGE, ask

SECRET = "wJalrXUtnFEMI-planted"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """What is found with keys, an endpoint that nobody serves, a folder and one that is not there."""
    folder = tmp_path_factory.mktemp("doctor")
    environment = {
        "AWS_ACCESS_KEY_ID": f"id-{SECRET}",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://me:{SECRET}@127.0.0.1:{free_port()}",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        found = examined((str(folder), str(folder / "nowhere")), with_ray=False)
    assert list(folder.iterdir()) == []
    return {what: (words, state) for what, words, state in found}, folder


def test_versions_libraries_and_room_are_there(rows):
    found, _ = rows
    for what in ("raybench", "python", "numpy", "ray", "torch", "faiss", "opencv", "memory", "room in .", "s3fs"):
        assert found[what][1] == GOOD, found[what]
    assert found["torch"][0].startswith("2.") and "CPU" in found["faiss"][0]


def test_a_folder_is_tried_and_one_that_is_not_there_is_marked(rows):
    found, folder = rows
    assert found[str(folder)] == ("written, listed, read and deleted a small file", GOOD)
    words, state = found[str(folder / "nowhere")]
    assert "no folder" in words and state == LOOK


def test_credentials_are_named_never_shown_and_a_dead_endpoint_is_marked(raybench, monkeypatch, rows):
    found, _ = rows
    assert found["S3 credentials"] == ("set: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY", GOOD)
    assert found["S3 endpoint"][1] == LOOK and "refused" in found["S3 endpoint"][0]
    monkeypatch.setattr(
        "raybench.cli.findings.examined", lambda uris, ray: [(what, *row) for what, row in found.items()]
    )
    for kind in ("table", "markdown"):
        said = raybench("doctor", "--format", kind)
        assert said.code == 0
        assert "AWS_SECRET_ACCESS_KEY" in said.out and SECRET not in said.out + said.err
    assert said.out.startswith("| what | found | state |\n|---|---|---|\n| raybench |")


def test_half_a_key_is_marked_and_none_is_no_fault(tmp_path):
    assert credentials({"AWS_ACCESS_KEY_ID": "x"}, tmp_path) == ("set: AWS_ACCESS_KEY_ID", LOOK)
    assert credentials({}, tmp_path) == ("none set here", NONE)
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").touch()
    assert credentials({}, tmp_path) == ("set: ~/.aws/credentials", GOOD)


def test_no_endpoint_is_asked_where_the_environment_names_none():
    assert endpoint({}).state == NONE
    assert endpoint({"AWS_ENDPOINT_URL": "http://127.0.0.1:notaport"}).state == LOOK


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path):
    program = (
        f"import subprocess, time; child = subprocess.Popen(['sleep', '60']); open({str(tmp_path / 'pid')!r}, 'w')"
    )
    program += ".write(str(child.pid)); time.sleep(60)"
    started = time.monotonic()
    answer = ask(program, seconds=1.0)
    assert (answer.words, answer.state) == ("no answer within 1 s", LOOK)
    assert time.monotonic() - started < 10
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _is_there(child):
        time.sleep(0.02)
    assert not _is_there(child)


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_what_dies_is_marked_with_its_last_words():
    assert ask("import nosuchlibrary", seconds=10).words == "ModuleNotFoundError: No module named 'nosuchlibrary'"
    died = ask(f"import os, signal; os.kill(os.getpid(), {int(signal.SIGSEGV)})", seconds=10)
    assert (died.words, died.state) == ("ended with -11", LOOK)


def test_a_bucket_is_tried_with_a_small_file_that_does_not_stay(s3):
    bucket = s3.bucket("doctored")
    answer = ask(STORAGE, f"{bucket}/runs", seconds=30)
    assert answer.state == GOOD, answer.words
    assert not [path for path in (s3.folder / "doctored").rglob("*") if path.is_file()]
    missing = ask(STORAGE, "s3://no-such-bucket/runs", seconds=30)
    assert missing.state == LOOK and "s3://no-such-bucket/runs" in missing.words
