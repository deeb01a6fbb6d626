"""Task files for a user's own data: in the published formats, seeded, and true."""

import json

import pytest

from raybench.formats.hbench import read_pairs


@pytest.fixture
def made(raybench, golden, tmp_path):
    def make(protocol, out, *more):
        given = ("--data", golden / "hpatches", "--positives", "40", "--negatives", "90", "--queries", "9", *more)
        said = raybench("tasks", protocol, *given, "--out", tmp_path / out)
        assert said.code == 0, said.err
        return tmp_path / out

    return make


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("protocol", ["hbench", "hpatches"])
def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(made, protocol):
    first, again, other = made(protocol, "a"), made(protocol, "b"), made(protocol, "c", "--seed", "5")
    assert files(first) == files(again)
    assert files(first) != files(other)


def test_classification_lists_hold_true_pairs(made):
    folder = made("hbench", "own") / "classification"
    assert len(list(folder.glob("*.benchmark"))) == 6
    for path in folder.glob("*.pairs"):
        pairs = read_pairs(path.read_bytes(), path.name)
        a, b = ([pairs.images[i] for i in side] for side in (pairs.a_image, pairs.b_image))
        same_sequence = [x.split("/")[0] == y.split("/")[0] for x, y in zip(a, b, strict=True)]
        assert all(x != y for x, y in zip(a, b, strict=True))
        if path.stem.endswith("pos"):
            assert len(pairs) == 40 and pairs.labels.all() and all(same_sequence)
            assert (pairs.a_patch == pairs.b_patch).all()
        else:
            assert len(pairs) == 90 and not pairs.labels.any()
            assert all(same_sequence) if "sameseq" in path.stem else not any(same_sequence)
            assert "diffseq" in path.stem or (pairs.a_patch != pairs.b_patch).all()


def test_the_lists_run(raybench, golden, made, tmp_path):
    given = ("--data", golden / "hpatches", "--descriptor", "patch_descriptors:Block4", "--ray", "off")
    out = tmp_path / "out"
    said = raybench("run", "hbench-classification", *given, "--benchmarks", made("hbench", "own"), "--out", out)
    assert said.code == 0, said.err
    assert len((out / "hbench_classification.csv").read_text().splitlines()) == 1 + 6


def test_retrieval_queries_are_in_their_pool_and_differ(made):
    for path in (made("hbench", "own") / "retrieval").iterdir():
        pool, *queries = path.read_text().splitlines()
        assert len(queries) == len(set(queries)) == 9
        assert all(query.rpartition(".")[0] in pool.split(",") for query in queries)


def test_splits_have_every_file_and_test_sequences_only(made):
    folder = made("hpatches", "own")
    splits = json.loads((folder / "splits.json").read_text())
    assert set(splits) == {"a", "full", "view"}, "illum has one sequence here, too few for pairs between sequences"
    assert "train" not in splits["full"] and not set(splits["a"]["train"]) & set(splits["a"]["test"])
    for name, split in splits.items():
        for kind in ("verif_pos", "verif_neg_intra", "verif_neg_inter", "retr_queries", "retr_distractors"):
            head, *lines = (folder / f"{kind}_split-{name}.csv").read_text().splitlines()
            assert head == ("s,idx" if kind.startswith("retr") else "s1,t1,idx1,s2,t2,idx2")
            assert lines and all(line.split(",")[0] in split["test"] for line in lines)


def test_wrong_input_is_said(raybench, golden, tmp_path):
    said = raybench("tasks", "hbench", "--out", tmp_path / "x")
    assert (said.code, len(said.errors)) == (2, 1)
    said = raybench("tasks", "hbench", "--data", tmp_path / "nowhere", "--out", tmp_path / "x")
    assert said.code == 2 and "does not exist" in said.errors[0]
