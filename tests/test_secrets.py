"""Secrets that are planted in the environment, in URIs and in errors are in nothing that a run leaves or says."""

import http.client
import io
import json
import os
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import GOLDEN, free_port, wait_for_port
from drivers import Driver, Stop, listeners, wait_until

from raybench.engine.attempts import Failure
from raybench.engine.progress import JsonLines
from raybench.masking import credential_in, masked

PLANTED = "planted"  # is in every secret, and in nothing else
HBENCH = GOLDEN / "hbench_classification/data"
GIVEN = ("run", "hbench-classification", "--benchmarks", HBENCH / "benchmarks", "--shard-size", "12")
GIVEN += ("--data", HBENCH / "hpatches", "--device", "cpu")
SECRETS = {
    "AWS_ACCESS_KEY_ID": "testkey",
    "AWS_SECRET_ACCESS_KEY": "planted/aws+secret",
    "HF_TOKEN": "hf_planted_token",
    "MY_API_KEY": "planted-api-key",
    "PLANTED_PASSWORD": "planted:password",
    "AZURE_STORAGE_KEY": "planted-azure==",
}
ON_RAY = pytest.param("local", marks=[pytest.mark.slow, pytest.mark.ray(own=True)])


def holding(folder):
    """The files below a folder that hold a planted secret."""
    return [path for path in Path(folder).rglob("*") if path.is_file() and PLANTED.encode() in path.read_bytes()]


def ray_session(driver):
    """The folder of the Ray that a driver started, none if it started none."""
    return next(Path("/tmp/ray").glob(f"session_*_{driver.pid}"), None)


@pytest.fixture
def guarded_s3(tmp_path):
    """An S3 server whose key is a planted secret: the environment that opens it, and the folder that it serves."""
    port, folder = free_port(), tmp_path / "s3"
    (folder / "bucket").mkdir(parents=True)
    command = [Path(sys.executable).parent / "rclone", "serve", "s3", folder, "--addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(
        [*map(str, command), "--auth-key", f"testkey,{SECRETS['AWS_SECRET_ACCESS_KEY']}"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "RCLONE_CONFIG": "/dev/null"},
    )
    wait_for_port(port)
    yield {**SECRETS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1"}, folder
    server.terminate()
    server.wait(10)


@pytest.mark.parametrize("ray", ["off", ON_RAY])
def test_a_run_that_succeeds_leaves_no_secret(ray, guarded_s3, tmp_path):
    environment, bucket = guarded_s3
    given = ("--descriptor", "patch_descriptors:Block4", "--out", "s3://bucket/out", "--ray", ray)
    stop = Stop("raybench.engine.run:Run._perform", call=3)
    driver = Driver((*GIVEN, *given), tmp_path / "meeting", stop, env=environment)
    driver.wait_until_stopped()
    lines = driver.left()
    if ray == "local":
        assert PLANTED not in metrics(driver)
    driver.go_on()
    said, errors = driver.process.communicate(timeout=120)
    assert driver.process.returncode == 0, errors
    assert (bucket / "bucket/out/report.html").exists(), "nothing was written"
    assert (bucket / "bucket/out/receipts").exists()
    assert PLANTED not in said + errors
    assert not any(PLANTED in line for line in lines), "a command line tells it"
    assert holding(bucket) == []
    if ray == "local":
        assert list(ray_session(driver).rglob("*.log"))
        assert holding(ray_session(driver)) == []


def metrics(driver):
    """The page of the metrics, once what raybench counts is on it."""
    pages = []

    def have_come():
        for listener in listeners(driver.pid):
            address = f"http://127.0.0.1:{listener.port}/metrics"
            other = suppress(OSError, http.client.HTTPException)  # something else listens there
            with other, urllib.request.urlopen(address, timeout=5) as answer:
                pages.append(answer.read().decode())
        return any("ray_raybench_" in page for page in pages)

    wait_until(have_come, driver.process)
    return "".join(pages)


@pytest.mark.parametrize("ray", ["off", ON_RAY])
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_shard_that_fails_with_secrets_in_its_error_tells_none(ray, debug, tmp_path):
    given = ("--descriptor", "patch_descriptors:Leaking", "--out", tmp_path / "out", "--ray", ray, *debug)
    driver = Driver((*GIVEN, *given), tmp_path / "meeting", env=SECRETS)
    said, errors = driver.process.communicate(timeout=120)
    assert driver.process.returncode == 3
    assert "OSError: GET https://…@host/a?X-Amz-Signature=…&sig=…" in errors
    assert PLANTED not in said + errors
    assert (tmp_path / "out/manifest.json").exists()
    assert holding(tmp_path / "out") == []
    if ray == "local":
        assert list(ray_session(driver).rglob("*.log"))
        assert holding(ray_session(driver)) == []


@pytest.mark.parametrize("endpoint", ["http://me:planted@127.0.0.1:no-port", "http://me:planted@127.0.0.1:1"])
def test_an_endpoint_with_a_login_is_refused_in_one_line_that_does_not_repeat_it(endpoint, tmp_path):
    given = ("--descriptor", "patch_descriptors:Block4", "--out", "s3://bucket/out", "--ray", "off", "--debug")
    driver = Driver((*GIVEN, *given), tmp_path / "meeting", env={**SECRETS, "AWS_ENDPOINT_URL": endpoint})
    said, errors = driver.process.communicate(timeout=200)
    assert driver.process.returncode == 2
    assert "error: AWS_ENDPOINT_URL in the environment carries a login" in errors
    assert "Traceback" in errors, "--debug shows where"
    assert PLANTED not in said + errors


@pytest.fixture
def in_this_process(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--data", "s3://me:planted@bucket/x"), "must not carry credentials"),
        (("--data", "s3://me:pla/planted@bucket/x"), "must not carry credentials"),
        (("--data", "https://host/x?X-Amz-Signature=planted"), "must not carry credentials"),
        (("--out", "me:planted@host/x"), "begins like user:password@host"),
        (("--descriptor", "torchscript:https://me:planted@host/m.pt"), "--descriptor holds a password"),
        (("--descriptor", "torchscript:https://host/m.pt?sig=planted"), "--descriptor holds a password"),
        (("--descriptor-args", '{"hf_token": "planted-one"}'), "hf_token is named like a credential"),
        (("--descriptor-args", '{"deep": [{"apiKey": "planted-one"}]}'), "apiKey is named like a credential"),
        (("--descriptor-args", '{"url": "https://host/?sig=planted"}'), "url holds a password"),
        (("--descriptor-args", '{"size": "xx-planted-api-key-xx"}'), "size holds the value of MY_API_KEY"),
        (("--ray", "ray://me:planted@host:10001"), "--ray holds a password"),
        (("--dta", "s3://me:planted@bucket/x"), "--dta"),
        (("s3://me:planted@bucket/x",), "…@bucket/x"),
    ],
)
@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_a_credential_among_the_arguments_is_refused_and_not_repeated(
    arguments, words, debug, raybench, in_this_process, tmp_path
):
    given = ("--descriptor", "meanstd", "--out", tmp_path / "out", "--ray", "off")
    said = raybench(*GIVEN, *given, *arguments, *debug)
    assert said.code == 2, said.err
    assert any(words in line for line in said.errors)
    assert PLANTED not in said.out + said.err
    assert not (tmp_path / "out").exists()


def test_a_credential_in_a_config_file_is_refused_and_not_repeated(raybench, in_this_process, tmp_path):
    for number, line in enumerate(["data: s3://me:planted@bucket/x", "descriptor-args: {password: planted-one}"]):
        (tmp_path / f"{number}.yaml").write_text(f"{line}\n")
        said = raybench(*GIVEN[:4], "--config", tmp_path / f"{number}.yaml", "--out", tmp_path / "out", "--ray", "off")
        assert said.code == 2
        assert PLANTED not in said.out + said.err


@pytest.mark.parametrize(
    "text",
    [
        "https://me:planted@host/x",
        "s3://planted@host",
        "x?X-Amz-Credential=planted%2Fus&X-Amz-Security-Token=planted",
        "DefaultEndpointsProtocol=https;AccountKey=planted==;",
        "{'Authorization': 'AWS4-HMAC-SHA256 Credential=planted, Signature=planted'}",
        "Bearer planted.token",
        "url('https://host/a?sv=1&sig=planted%3D')",
        "password=planted",
        "the key is planted/aws+secret, the token hf_planted_token.",
    ],
)
def test_masked_words_hold_nothing(text, in_this_process):
    assert PLANTED not in masked(text)


def test_a_failure_is_masked_where_it_happens_since_another_process_does_not_know_the_secrets(in_this_process):
    try:
        raise OSError("refused: hf_planted_token")
    except OSError as error:
        failure = Failure.of(error)
    assert "OSError: refused: …" in failure.cause
    assert PLANTED not in failure.cause + failure.trace


def test_what_is_said_while_a_run_goes_on_is_masked_and_still_json(in_this_process):
    stream = io.StringIO()
    JsonLines(stream).said('Authorization: "planted" https://me:planted@host')
    assert json.loads(stream.getvalue())["event"] == "message"
    assert PLANTED not in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a@2x/b.png",
        "http://host:8080/path/a@2.png",
        "/data/me@home/key=1/token.txt",
        "sorted by key=name, at 3 tokens",
        "https://host/a.png?n=1&page=2",
        "C:/x: y@z",
        "the secret is out; a password is missing",
    ],
)
def test_plain_words_stay_as_they_are(text, in_this_process):
    assert masked(text) == text


def test_arguments_of_a_network_are_no_credentials(in_this_process):
    plain = {
        "cls_token": True,
        "tokens": 16,
        "pool_token": "cls",
        "key": "a-long-name-of-a-thing",
        "path": "/w/keys.npy",
    }
    assert credential_in("--descriptor-args", plain) is None


def test_a_word_of_the_environment_is_no_secret(monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "token")
    assert masked("the token") == "the token"
