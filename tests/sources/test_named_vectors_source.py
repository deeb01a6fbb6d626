"""Named vectors as a source: places by name, digests by content, every problem before compute."""

import pickle

import h5py
import numpy as np
import pytest
import torch

from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import ProblemList
from raybench.extract.vector_set import read_set
from raybench.formats.names import Names, common_names, strings
from raybench.sources.named_vectors import NamedVectors, find_vectors, note_dimensions


def save(path, names, vectors, compressed=False):
    (np.savez_compressed if compressed else np.savez)(path, names=np.array(names), embeddings=vectors)
    return str(path)


def save_hdf5(path, names, vectors):
    with h5py.File(path, "w") as out:
        out["vectors"], out["image_names"] = vectors, np.array([name.encode() for name in names])
    return str(path)


def scan(*uris, normalise="stem", **options):
    problems = ProblemList()
    source = NamedVectors.scan([str(uri) for uri in uris], normalise, problems, **options)
    return source, problems.lines


def vectors_of(count, dimension=4, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dimension)).astype(np.float32)


def gathered(folder, source, shard_size):
    """Every vector at its place, through the stage."""
    run = Run(str(folder), str(folder / "stages"), InlineExecutor(Observer()), Observer())
    read = read_set(run, source, "references", shard_size)
    out = np.full((len(read), source.dimension), np.nan, np.float32)
    for shard in range(len(read.mapped.shards)):
        index, vectors = read.read(shard)
        out[index] = vectors
    return read, out


def test_places_are_in_name_order_whatever_the_order_of_the_file(tmp_path):
    vectors = vectors_of(3)
    source, problems = scan(save(tmp_path / "refs.npz", ["x/R3.jpg", "R1.png", "y/R2"], vectors))
    assert not problems
    assert [source.names[place] for place in range(3)] == ["R1", "R2", "R3"]
    _, rows = gathered(tmp_path, source, 2)
    assert np.array_equal(rows, vectors[[1, 2, 0]])


@pytest.mark.parametrize("shard_size", [1, 7, 100, None])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_set_may_lie_in_several_files_and_be_cut_anyhow(tmp_path, shard_size, compressed):
    vectors = vectors_of(50)
    names = [f"R{number:02d}" for number in np.random.default_rng(1).permutation(50)]
    files = [
        save(tmp_path / "a.npz", names[:20], vectors[:20], compressed),
        save_hdf5(tmp_path / "b.h5", names[20:23], vectors[20:23]),
        save(tmp_path / "c.npz", names[23:], vectors[23:], compressed),
    ]
    source, problems = scan(*files)
    assert not problems
    _, rows = gathered(tmp_path, source, shard_size)
    assert np.array_equal(rows, vectors[np.argsort(names)])


def test_paths_are_kept_where_they_are_the_names(tmp_path):
    file = save(tmp_path / "copydays.npz", ["strong/b.jpg", "./original/a.jpg"], vectors_of(2))
    source, _ = scan(file, normalise="path")
    assert [source.names[place] for place in range(2)] == ["original/a.jpg", "strong/b.jpg"]


def test_the_digest_is_of_content_and_of_how_names_are_made(tmp_path):
    vectors = vectors_of(2)
    one = save(tmp_path / "one.npz", ["a", "b"], vectors)
    same = save(tmp_path / "same.npz", ["a", "b"], vectors)
    other = save(tmp_path / "other.npz", ["a", "b"], vectors + 1)
    digests = [scan(file)[0].digest for file in (one, same, other)] + [scan(one, normalise="path")[0].digest]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_source_pickles_without_its_open_file(tmp_path):
    vectors = vectors_of(5)
    source, _ = scan(save(tmp_path / "refs.npz", list("edcba"), vectors))
    source.rows.read(0, 2)
    back = pickle.loads(pickle.dumps(source))
    index, rows = back.rows.read(1, 3)
    assert (index.tolist(), rows.tolist()) == ([3, 2], vectors[1:3].tolist())
    assert back.names.digest == source.names.digest


def test_every_problem_of_every_file_is_said_at_once(tmp_path):
    bad = vectors_of(4)
    bad[1, 2], bad[3, 0] = np.nan, np.inf
    first = save(tmp_path / "first.npz", ["a", "b", "c", "d"], bad)
    second = tmp_path / "second.npz"
    np.savez(second, features=vectors_of(2))
    third = tmp_path / "missing.h5"
    source, problems = scan(first, second, third)
    assert source is None
    assert problems == [
        f"{first}: row 1 (b): NaN or infinite value; mend the descriptor",
        f"{first}: row 3 (d): NaN or infinite value; mend the descriptor",
        f"{second}: no array vectors or embeddings, holds features; rename or add it",
        f"{second}: no array image_names or names, holds features; rename or add it",
        f"{third}: does not exist; expected a file of vectors",
    ]


def test_names_that_are_double_or_missing_and_other_dimensions_are_said(tmp_path):
    first = save(tmp_path / "first.npz", ["a.jpg", "b", ""], vectors_of(3))
    second = save(tmp_path / "second.npz", ["c", "x/a.png"], vectors_of(2, dimension=5))
    source, problems = scan(first, second)
    assert source is None
    assert problems == [
        f"{second}: row 1: name 'a' stands in {first}: row 0, too; names must differ",
        f"{first}: row 2: no name (1 such rows)",
        f"{second}: dimension 5, {first} has 4; all must be the same",
    ]


def test_bad_values_and_names_that_come_twice_are_said_together(tmp_path):
    bad = vectors_of(3)
    bad[1, 0] = np.nan
    file = save(tmp_path / "refs.npz", ["a", "b", "a"], bad)
    source, problems = scan(file)
    assert source is None
    assert problems == [
        f"{file}: row 1 (b): NaN or infinite value; mend the descriptor",
        f"{file}: row 2: name 'a' stands in {file}: row 0, too; names must differ",
    ]


def test_many_bad_rows_are_counted(tmp_path):
    file = save(tmp_path / "refs.npz", [f"R{row}" for row in range(20)], np.full((20, 2), np.nan, np.float32))
    _, problems = scan(file)
    assert len(problems) == 6
    assert problems[-1] == f"{file}: 20 rows with NaN or infinite values in all, 5 are shown"


def test_sister_sets_of_another_dimension_are_said(tmp_path):
    queries, _ = scan(save(tmp_path / "queries.npz", ["a"], vectors_of(1, dimension=3)))
    references, _ = scan(save(tmp_path / "refs.npz", ["b"], vectors_of(1, dimension=4)))
    problems = ProblemList()
    note_dimensions([queries, None, references], problems)
    assert problems.lines == [f"{tmp_path}/refs.npz: dimension 4, {tmp_path}/queries.npz has 3; all must be the same"]


def test_a_file_of_a_set_is_found_by_any_of_its_names(tmp_path):
    save(tmp_path / "refs.npz", ["a"], vectors_of(1))
    (tmp_path / "training").mkdir()
    for name in ("b.npz", "a.npz"):
        save(tmp_path / "training" / name, ["a"], vectors_of(1))
    problems = ProblemList()
    assert find_vectors(str(tmp_path), ("references", "refs"), problems) == [f"{tmp_path}/refs.npz"]
    assert find_vectors(str(tmp_path), ("training",), problems) == [f"{tmp_path}/training/{x}.npz" for x in "ab"]
    assert find_vectors(str(tmp_path), ("distractors",), problems, wanted=False) == []
    assert not problems.lines
    assert find_vectors(str(tmp_path), ("queries",), problems) == []
    assert problems.lines == [
        f"{tmp_path}: no queries.h5 (or .hdf5, .npz, .parquet, .pt); there are refs.npz, training/a.npz, training/b.npz"
    ]


def test_two_files_for_one_set_are_one_too_many(tmp_path):
    save(tmp_path / "refs.npz", ["a"], vectors_of(1))
    save_hdf5(tmp_path / "refs.h5", ["a"], vectors_of(1))
    problems = ProblemList()
    find_vectors(str(tmp_path), ("references", "refs"), problems)
    assert problems.lines == [f"{tmp_path}: several files for references (refs.h5, refs.npz); keep one"]


def test_a_set_under_two_of_its_names_is_one_too_many(tmp_path):
    save(tmp_path / "refs.npz", ["a"], vectors_of(1))
    save(tmp_path / "references.npz", ["a"], vectors_of(1))
    problems = ProblemList()
    find_vectors(str(tmp_path), ("references", "refs"), problems)
    assert problems.lines == [f"{tmp_path}: several files for references (references.npz, refs.npz); keep one"]


def sscd_file(path, **changed):
    """Two references, two queries (one of which was seen twice), one training image, as `disc_eval` leaves them."""
    tensors = {
        "embeddings": torch.from_numpy(vectors_of(6)),
        "split": torch.tensor([0, 1, 0, 2, 1, 1]),
        "image_num": torch.tensor([7, 3, 2, 5, 1, 1]),
        "instance_id": torch.tensor([1, 3, 0, 4, 2, 2]),
    }
    torch.save({key: value for key, value in {**tensors, **changed}.items() if value is not None}, path)
    return str(path)


def test_the_parts_of_an_sscd_file_are_three_sets(tmp_path):
    file = sscd_file(tmp_path / "predictions.pt")
    parts = {part: scan(file, part=part)[0] for part in ("queries", "references", "training")}
    found = {part: [source.names[place] for place in range(len(source))] for part, source in parts.items()}
    assert found == {"queries": ["Q00001", "Q00003"], "references": ["R000002", "R000007"], "training": ["T000005"]}
    _, queries = gathered(tmp_path, parts["queries"], 1)
    _, references = gathered(tmp_path, parts["references"], None)
    assert np.array_equal(queries, vectors_of(6)[[4, 1]])
    assert np.array_equal(references, vectors_of(6)[[2, 0]])
    assert len({source.digest for source in parts.values()}) == 3


def test_an_sscd_file_without_names_takes_those_of_the_data_set(tmp_path):
    file = tmp_path / "copydays.pt"
    torch.save({"embeddings": torch.from_numpy(vectors_of(3)), "instance_id": torch.tensor([2, 0, 1])}, file)
    source, problems = scan(file, normalise="path", names=strings(["original/a.jpg", "strong/a.jpg", "crops/10/a.jpg"]))
    assert not problems
    assert [source.names[place] for place in range(3)] == ["crops/10/a.jpg", "original/a.jpg", "strong/a.jpg"]
    _, rows = gathered(tmp_path, source, 2)
    assert np.array_equal(rows, vectors_of(3)[[0, 1, 2]])
    _, problems = scan(file, normalise="path", names=strings(["original/a.jpg"]))
    assert problems == [f"{file}: 3 images, the data set has 1; are they of the same data?"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"embeddings": None}, "no array embeddings, holds image_num, instance_id, split; rename or add it"),
        ({"split": None}, "no array split, holds embeddings, image_num, instance_id; rename or add it"),
        ({"split": torch.zeros(3)}, "split is torch.float32 of shape (3,), expected 6 whole numbers"),
        ({"split": torch.zeros(6, dtype=torch.int64)}, "no image of split 1 (queries)"),
        (
            {"embeddings": torch.zeros(6)},
            "embeddings are torch.float32 of shape (6,), expected float32 (images, dimension)",
        ),
    ],
)
def test_what_is_wrong_with_an_sscd_file_is_said(tmp_path, changed, said):
    file = sscd_file(tmp_path / "predictions.pt", **changed)
    assert scan(file, part="queries")[1] == [f"{file}: {said}"]


def test_one_broken_file_of_three_sets_is_said_once(tmp_path):
    file = tmp_path / "predictions.pt"
    file.write_text("no tensors\n")
    problems = ProblemList()
    for part in ("queries", "references", "training"):
        assert NamedVectors.scan([str(file)], "stem", problems, part=part) is None
    assert [line.partition(" (")[0] for line in problems.lines] == [
        f"{file}: no file of tensors, or it holds more than those"
    ]


class Mischief:
    def __reduce__(self):
        return (print, ("executed",))


def test_nothing_in_an_sscd_file_is_executed(tmp_path, capsys):
    file = tmp_path / "predictions.pt"
    torch.save({"embeddings": Mischief()}, file)
    assert scan(file, part="queries")[1][0].startswith(f"{file}: no file of tensors, or it holds more than those")
    assert "executed" not in capsys.readouterr().out


def test_an_sscd_file_of_the_old_kind_is_read(tmp_path):
    file = tmp_path / "train.pt"
    tensors = {"embeddings": torch.from_numpy(vectors_of(2)), "instance_id": torch.arange(2)}
    torch.save(tensors, file, _use_new_zipfile_serialization=False)
    source, problems = scan(file)
    assert not problems
    assert len(source) == 2


def test_names_in_training_and_elsewhere_are_listed():
    training, queries = Names.of(["T1", "Q2", "T3"]), Names.of(["Q1", "Q2", "T3"])
    assert common_names(training, queries) == ["Q2", "T3"]
    assert common_names(training, Names.of(["a"])) == []
