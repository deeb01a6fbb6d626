"""Which files run code, and where that is said; and that weights and vectors, however they are written, run none."""

import pickle
from pathlib import Path

import pytest
import torch

from raybench.benchmarks import BENCHMARKS

TRUST = "only use files you trust"


class Payload:
    """Unpickled by a careless reader it makes a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


def write_zip(path, value):
    torch.save(value, path)


def write_legacy(path, value):
    torch.save(value, path, _use_new_zipfile_serialization=False)


def write_pickle(path, value):
    path.write_bytes(pickle.dumps(value))


@pytest.mark.parametrize("write", [write_zip, write_legacy, write_pickle])
@pytest.mark.parametrize("kind", ["sscd", "torchscript", "onnx", "features"])
def test_a_pickle_in_the_place_of_a_model_or_of_vectors_is_not_run(raybench, copies, tmp_path, write, kind):
    mark, file = tmp_path / "it ran", tmp_path / "file.pt"
    write(file, {"embeddings": Payload(mark)})
    if kind == "features":
        given = ("--features", file, "--ground-truth", copies / "disc/val_groundtruth_matches.csv")
    else:
        given = ("--data", copies / "disc", "--descriptor", f"{kind}:{file}")
        given += ("--backbone", "TV_RESNET18", "--dims", "16") if kind == "sscd" else ()
    said = raybench("check", "disc2021", *given)
    assert said.code == 2 and str(file) in said.err and not mark.exists()
    if write is write_pickle:
        pickle.loads(file.read_bytes())
        assert mark.exists()  # the payload works


def test_help_says_what_runs_code(raybench):
    for benchmark in BENCHMARKS:
        words = " ".join(raybench("run", benchmark, "--help").out.split())
        assert "module:Class and torchscript:URI run code from that file" in words and TRUST in words


def test_the_list_says_of_each_kind_of_descriptor_whether_it_runs_code(raybench):
    said = raybench("list").out.splitlines()
    for line in said:
        if line.strip().startswith(("module:Class", "torchscript:URI")):
            assert TRUST in line
        if line.strip().startswith(("sscd:URI", "onnx:URI")):
            assert "runs no code" in line
    assert sum(TRUST in line for line in said) == 5


def test_the_published_tools_flags_say_it_too(capsys):
    from raybench.cli.sscd_flags import disc_arguments

    with pytest.raises(SystemExit):
        disc_arguments(["--help"])
    assert TRUST in " ".join(capsys.readouterr().out.split())
