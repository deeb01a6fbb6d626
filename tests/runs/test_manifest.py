"""The manifest: read back as written, and the judge of whether a folder may be resumed."""

import dataclasses
import json

import pytest

from raybench.errors import DataError, ManifestMismatch
from raybench.runs.manifest import FILE_NAME, Manifest, read_manifest, refuse_other_run, versions

ASKED = Manifest(
    benchmark="hbench-classification",
    arguments={"descriptor": "sift", "limit": 100, "descriptor_args": {"scale": 1.5}},
    execution={"cpus": 2},
    inputs={"patches": "abc"},
)
DONE = dataclasses.replace(ASKED, status="done", files=["t.csv"], notes=["naïve → λ"], cluster={"nodes": 1})


def test_a_manifest_reads_back_as_it_was_published(tmp_path):
    DONE.publish(str(tmp_path))
    assert read_manifest(str(tmp_path)) == DONE


def test_a_manifest_is_json_for_people(tmp_path):
    DONE.publish(str(tmp_path))
    text = (tmp_path / FILE_NAME).read_text()
    assert json.loads(text)["arguments"]["descriptor"] == "sift"
    assert "naïve → λ" in text


def test_a_folder_without_manifest_has_none(tmp_path):
    assert read_manifest(str(tmp_path)) is None
    assert read_manifest(str(tmp_path / "missing")) is None


def test_a_new_folder_below_one_called_bucket_has_no_manifest(tmp_path):
    assert read_manifest(str(tmp_path / "my-bucket")) is None


def test_the_same_arguments_are_not_refused():
    refuse_other_run(DONE, dataclasses.replace(ASKED, execution={"cpus": 64}, inputs={}), "out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"descriptor": "orb", "limit": 100}, "descriptor sift → orb"),
        ({"descriptor": "sift"}, "limit 100 → (none)"),
        ({"descriptor": "sift", "limit": 100, "shard_size": 4}, "shard-size (none) → 4"),
        ({"descriptor": "orb", "limit": 7}, "descriptor sift → orb; limit 100 → 7"),
    ],
)
def test_a_mismatch_names_the_arguments_that_differ(arguments, words):
    there = dataclasses.replace(DONE, arguments={"descriptor": "sift", "limit": 100})
    with pytest.raises(ManifestMismatch) as caught:
        refuse_other_run(there, dataclasses.replace(ASKED, arguments=arguments), "some/out")
    assert str(caught.value).startswith(f"some/out: holds a run with other arguments ({words});")


def test_a_mismatch_names_another_benchmark():
    with pytest.raises(ManifestMismatch, match=r"\(benchmark hbench-classification → tss\)"):
        refuse_other_run(DONE, dataclasses.replace(ASKED, benchmark="tss", arguments={"auto_flip": True}), "out")


def test_a_finished_run_with_the_same_arguments_and_inputs_is_done(tmp_path):
    DONE.publish(str(tmp_path))
    assert read_manifest(str(tmp_path)).is_done_as(ASKED)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "running"},
        {"inputs": {"patches": "other"}},
        {"arguments": {}},
        {"benchmark": "tss"},
        {"versions": {**versions(), "raybench": "0.0.0"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_run_that_differs_is_not_done(change):
    assert not dataclasses.replace(DONE, **change).is_done_as(ASKED)


def test_versions_of_other_packages_do_not_undo_a_run():
    assert dataclasses.replace(DONE, versions={**versions(), "numpy": "1.0"}).is_done_as(ASKED)


def test_versions_name_raybench_python_and_numpy():
    assert {"raybench", "python", "numpy"} <= versions().keys()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"7", b"\xff\xfe", b'{"benchmark": "x"}', b'{"colour": "red"}'],
    ids=["empty", "cut short", "a list", "a number", "no text", "fields missing", "fields unknown"],
)
def test_a_broken_manifest_is_an_error_that_says_what_to_do(tmp_path, content):
    (tmp_path / FILE_NAME).write_bytes(content)
    with pytest.raises(DataError, match=r"manifest.json: no raybench manifest .*--overwrite"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize(
    "change",
    [
        *({"arguments": None}, {"versions": {}}, {"inputs": []}, {"files": None}, {"files": ["../x"]}),
        *({"stages": [one]} for one in ("extract", {"name": "extract"}, {"name": "extract", "digest": "../x"})),
    ],
    ids=str,
)
def test_a_manifest_with_fields_of_the_wrong_kind_is_an_error_too(tmp_path, change):
    (tmp_path / FILE_NAME).write_text(json.dumps({**dataclasses.asdict(DONE), **change}))
    with pytest.raises(DataError, match="no raybench manifest"):
        read_manifest(str(tmp_path))
