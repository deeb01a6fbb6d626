"""Every golden figure of the 2017 HPatches protocol, through the command line; and what its three benchmarks share."""

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from conftest import GOLDEN

DESCRIPTORS = {"verification": "block20", "matching": "block20", "retrieval": "grey16"}
INLINE = ("--ray", "off")
EXECUTORS = {"inline": INLINE, "ray": ("--device", "cpu", "--cpus", "2")}


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def executor(request):
    if request.param != "inline":
        request.getfixturevalue("local_ray")
    return EXECUTORS[request.param]


def data_of(task):
    return GOLDEN / f"hpatches_{task}" / "data"


def features_of(task):
    return data_of(task) / "descriptors" / DESCRIPTORS[task]


def run(raybench, task, out, *given):
    entry = () if "--features" in given or "--data" in given else ("--features", features_of(task))
    tasks = () if "--tasks" in given else ("--tasks", data_of(task) / "tasks")
    said = raybench("run", f"hpatches-{task}", *tasks, *entry, "--out", out, *given)
    assert said.code == 0, said.err
    return said


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def table(out, task):
    return rows(out / f"hpatches_{task}.csv")


def assert_golden(out, task, distance):
    said = json.loads((GOLDEN / f"hpatches_{task}" / "expected.json").read_text())
    {"verification": assert_verified, "matching": assert_matched, "retrieval": assert_retrieved}[task](
        out, said[f"expected_{distance}"], said["tolerance"]
    )


def assert_verified(out, expected, tolerance):
    found = table(out, "verification")
    assert [(row["noise"], row["negatives"]) for row in found] == [
        (noise, kind) for kind in ("intra", "inter") for noise in ("e", "h", "t", "mean")
    ]
    for row in found:
        levels = [expected[noise][row["negatives"]] for noise in "eht" if row["noise"] in (noise, "mean")]
        for column, figure in (("auc_balanced", "balanced_auc"), ("ap_imbalanced", "imbalanced_ap")):
            mean = np.mean([level[figure] for level in levels])
            assert float(row[column]) == pytest.approx(mean, abs=tolerance)


def assert_matched(out, expected, tolerance):
    found = table(out, "matching")
    assert [row["noise"] for row in found] == ["e", "h", "t", "mean"]
    for row in found:
        assert float(row["map"]) == pytest.approx(expected[f"map_{row['noise']}"], abs=tolerance)
    pairs = rows(out / "tables/per_pair.csv")
    assert len(pairs) == 45
    for row in pairs:
        figures = expected["per_pair"][row["sequence"]][row["noise"]][row["image"]]
        assert float(row["ap"]) == pytest.approx(figures["ap"], abs=tolerance)
        assert float(row["success_rate"]) == pytest.approx(figures["success_rate"], abs=tolerance)


def assert_retrieved(out, expected, tolerance):
    found = table(out, "retrieval")
    assert len(found) == 28
    for row in found:
        levels = [expected["map"][noise][row["pool"]] for noise in "eht" if row["noise"] in (noise, "mean")]
        assert float(row["map"]) == pytest.approx(np.mean(levels), abs=tolerance)
    queries = pyarrow.parquet.read_table(out / "tables/per_query.parquet").to_pylist()
    assert len(queries) == expected["n_queries"] * 21
    for row in queries:
        if row["pool"] in (100, 20_000):
            figure = expected[f"per_query_ap_at_{row['pool']}"][row["noise"]][row["query"]]
            assert row["ap"] == pytest.approx(figure, abs=tolerance)


@pytest.mark.parametrize("task", DESCRIPTORS)
def test_figures_from_descriptors_are_the_published_ones(raybench, tmp_path, executor, task):
    run(raybench, task, tmp_path / "out", "--distance", "L2", *executor)
    assert_golden(tmp_path / "out", task, "L2")


@pytest.mark.parametrize("task", DESCRIPTORS)
def test_figures_with_another_distance_are_the_published_ones(raybench, tmp_path, task):
    run(raybench, task, tmp_path / "out", "--distance", "L1", "--ray", "off")
    assert_golden(tmp_path / "out", task, "L1")


@pytest.mark.parametrize("task", ["verification", "matching"])
def test_figures_from_patch_strips_are_the_published_ones(raybench, tmp_path, executor, task):
    strips = ("--data", data_of(task) / "hpatches", "--descriptor", "patch_descriptors:Block20")
    run(raybench, task, tmp_path / "out", *strips, *executor)
    assert_golden(tmp_path / "out", task, "L2")


@pytest.mark.parametrize("post_processing", ["none", "pcapl"])
@pytest.mark.parametrize("task", DESCRIPTORS)
def test_tables_are_byte_equal_for_every_shard_size_and_executor(raybench, tmp_path, local_ray, task, post_processing):
    tables = set()
    on_ray = "default" if post_processing == "pcapl" else "7"  # a Ray run of many small shards takes seconds
    for name, size in (("inline", "7"), ("inline", "100"), ("inline", "default"), ("ray", on_ray)):
        out = tmp_path / f"{name}-{size}"
        cut = () if size == "default" else ("--shard-size", size)
        run(raybench, task, out, "--post-processing", post_processing, *cut, *EXECUTORS[name])
        files = [out / f"hpatches_{task}.csv", *sorted((out / "tables").glob("*"))]
        tables.add(tuple(file.read_bytes() for file in files))
    assert len(tables) == 1


def test_retrieval_is_byte_equal_for_every_tile(raybench, tmp_path, monkeypatch):
    tables = set()
    for references, queries in ((None, None), (10, 3), (64, 5), (1, 14)):
        if references:
            monkeypatch.setattr("raybench.search.count_closer.CLOSER_REFERENCES", references)
            monkeypatch.setattr("raybench.search.count_closer.CLOSER_QUERIES", queries)
        out = tmp_path / str(references)
        run(raybench, "retrieval", out, *INLINE)
        tables.add(((out / "hpatches_retrieval.csv").read_bytes(), (out / "tables/per_query.parquet").read_bytes()))
    assert len(tables) == 1


def packed_bits(task, folder):
    """The golden descriptors cut to signs, eight to a byte, and the same one a value."""
    for file in features_of(task).glob("*/*.csv"):
        vectors = np.loadtxt(file, delimiter=",", ndmin=2)
        bits = (vectors > np.median(vectors)).astype(np.uint8)
        for kind, values in (("packed", np.packbits(bits, axis=1)), ("bits", bits)):
            target = folder / kind / file.parent.name / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(target, values, fmt="%d", delimiter=",")


@pytest.mark.parametrize("task", DESCRIPTORS)
def test_bit_packed_descriptors_give_the_figures_of_l1_on_their_bits(raybench, tmp_path, task):
    packed_bits(task, tmp_path)
    run(raybench, task, tmp_path / "a", "--features", tmp_path / "packed", "--distance", "hamming", *INLINE)
    run(raybench, task, tmp_path / "b", "--features", tmp_path / "bits", "--distance", "L1", *INLINE)
    assert table(tmp_path / "a", task) == table(tmp_path / "b", task)


@pytest.mark.parametrize("task", DESCRIPTORS)
def test_masked_l1_is_l1_of_values_times_their_mask(raybench, tmp_path, task):
    rng = np.random.default_rng(0)
    for file in features_of(task).glob("*/*.csv"):
        vectors = np.loadtxt(file, delimiter=",", ndmin=2)
        mask = rng.integers(0, 2, vectors.shape)
        for kind, values in (("masked", np.hstack([vectors, mask])), ("plain", vectors * mask)):
            target = tmp_path / kind / file.parent.name / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            np.savetxt(target, values, fmt="%.4f", delimiter=",")
    run(raybench, task, tmp_path / "a", "--features", tmp_path / "masked", "--distance", "masked_L1", *INLINE)
    run(raybench, task, tmp_path / "b", "--features", tmp_path / "plain", "--distance", "L1", *INLINE)
    assert table(tmp_path / "a", task) == table(tmp_path / "b", task)


def test_several_splits_share_one_extraction_and_each_has_its_rows(raybench, tmp_path):
    tasks = tmp_path / "tasks"
    tasks.mkdir()
    own = json.loads((data_of("matching") / "tasks/splits/splits.json").read_text())["mini"]
    splits = {name: {**own, "name": name} for name in ("a", "b", "c")}
    splits["b"]["test"] = own["test"][:1]
    (tasks / "splits.json").write_text(json.dumps(splits))
    out = tmp_path / "out"
    run(raybench, "matching", out, "--tasks", tasks, "--split", "a,b", *INLINE)
    assert [row["split"] for row in table(out, "matching")] == ["a"] * 4 + ["b"] * 4
    run(raybench, "matching", tmp_path / "all", "--tasks", tasks, "--split", "c", "--split", "a", *INLINE)
    assert [row["split"] for row in table(tmp_path / "all", "matching")] == ["a"] * 4 + ["c"] * 4
    own_rows = [row for row in rows(out / "tables/by_sequence.csv") if row["split"] == "b"]
    assert [row["map"] for row in own_rows] == [row["map"] for row in table(out, "matching")[4:]]


def test_by_default_every_split_that_has_its_files_runs_and_the_others_are_named(raybench, tmp_path):
    import shutil

    tasks = shutil.copytree(data_of("verification") / "tasks", tmp_path / "tasks")
    splits = json.loads((tasks / "splits/splits.json").read_text())
    (tasks / "splits/splits.json").write_text(json.dumps({"other": splits["mini"], **splits}))
    said = run(raybench, "verification", tmp_path / "out", "--tasks", tasks, *INLINE)
    assert {row["split"] for row in table(tmp_path / "out", "verification")} == {"mini"}
    assert "left out: other" in said.out


@pytest.mark.parametrize(
    ("task", "limited"), [("verification", "pairs"), ("matching", "test seq"), ("retrieval", "que")]
)
def test_a_limit_is_said(raybench, tmp_path, task, limited):
    said = run(raybench, task, tmp_path / "out", "--limit", "2", *INLINE)
    assert f"LIMITED: only the first 2 {limited}" in said.out


def test_repeated_pairs_are_counted_unless_the_job_says_otherwise(raybench, tmp_path):
    plain = run(raybench, "verification", tmp_path / "a", *INLINE)
    once = run(raybench, "verification", tmp_path / "b", "--dedup-pairs", *INLINE)
    assert "22 lines repeat a pair of their list and are counted" in plain.out
    assert "22 lines repeat a pair of their list and are left out" in once.out
    assert table(tmp_path / "a", "verification") != table(tmp_path / "b", "verification")


def test_three_benchmarks_over_one_store_extract_once(raybench, tmp_path):
    strips = ("--data", data_of("verification") / "hpatches", "--descriptor", "patch_descriptors:Block20")
    shared = (*strips, "--store", tmp_path / "store", "--tasks", tmp_path / "tasks", *INLINE)
    make_retrieval_lists(data_of("verification") / "tasks", tmp_path / "tasks")
    extracted = []
    for task in ("matching", "verification", "retrieval"):
        run(raybench, task, tmp_path / task, *shared)
        stages = json.loads((tmp_path / task / "manifest.json").read_text())["stages"]
        extracted += [stage["computed"] for stage in stages if stage["name"] == "extract"]
    assert extracted == [3, 0, 0]


def test_all_three_run_at_once_with_the_figures_that_each_has_alone(raybench, tmp_path):
    make_retrieval_lists(data_of("verification") / "tasks", tmp_path / "tasks")
    given = ("--tasks", tmp_path / "tasks", "--features", features_of("verification"), *INLINE)
    said = raybench("run", "hpatches", *given, "--out", tmp_path / "all", "--dedup-pairs")
    assert said.code == 0, said.err
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == sorted(
        ["stages", *(f"hpatches-{task}" for task in DESCRIPTORS)]
    )
    for task in DESCRIPTORS:
        own = ("--dedup-pairs",) if task == "verification" else ()
        run(raybench, task, tmp_path / task, *given, *own)
        name = f"hpatches_{task}.csv"
        assert (tmp_path / "all" / f"hpatches-{task}" / name).read_bytes() == (tmp_path / task / name).read_bytes()


def make_retrieval_lists(tasks, target):
    """The verification lists, and a few queries and distractors beside them."""
    import shutil

    shutil.copytree(tasks, target)
    for name, patches in (("queries", (0, 1)), ("distractors", (2, 3, 4, 5))):
        lines = [f"{s},{i}\n" for s in ("i_cliff", "v_barn", "v_moor") for i in patches]
        (target / f"retr_{name}_split-mini.csv").write_text("s,idx\n" + "".join(lines))


def test_views_by_type_and_sequence_have_the_means_of_their_members(raybench, tmp_path):
    run(raybench, "matching", tmp_path / "m", *INLINE)
    pairs = rows(tmp_path / "m/tables/per_pair.csv")
    for row in rows(tmp_path / "m/tables/by_type.csv"):
        own = [
            float(p["ap"]) for p in pairs if p["sequence"][0] == row["type"][0] and row["noise"] in (p["noise"], "mean")
        ]
        assert float(row["map"]) == pytest.approx(np.mean(own), abs=1e-12)
    run(raybench, "retrieval", tmp_path / "r", *INLINE)
    queries = pyarrow.parquet.read_table(tmp_path / "r/tables/per_query.parquet").to_pylist()
    for row in rows(tmp_path / "r/tables/by_sequence.csv"):
        member = (row["sequence"], int(row["pool"]))
        own = [
            q["ap"] for q in queries if (q["sequence"], q["pool"]) == member and row["noise"] in (q["noise"], "mean")
        ]
        assert float(row["map"]) == pytest.approx(np.mean(own), abs=1e-12)


def test_the_users_descriptor_gives_the_golden_vectors_from_the_strips():
    from patch_descriptors import Block20
    from PIL import Image

    for task in ("verification", "matching"):
        for strip in sorted((data_of(task) / "hpatches").glob("*/*.png")):
            patches = np.asarray(Image.open(strip)).reshape(-1, 65, 65)
            expected = np.loadtxt(features_of(task) / strip.parent.name / f"{strip.stem}.csv", delimiter=",")
            assert np.array_equal(Block20().describe(patches), expected)


def test_the_published_files_parse_where_they_are():
    from raybench.formats.hpatches import read_reference_patches, read_splits

    real = Path(__file__).parents[4] / "shared/data/hpatches_tasks"
    if not real.is_dir():
        pytest.skip(f"{real} is not here")
    splits = read_splits((real / "splits.json").read_bytes(), "splits.json")
    assert {name: (len(split.train), len(split.test)) for name, split in splits.items()} == {
        **dict.fromkeys("abc", (76, 40)),
        "illum": (0, 57),
        "view": (0, 59),
        "full": (0, 116),
    }
    for kind, count in (("queries", 10_000), ("distractors", 20_000)):
        file = real / f"retr_{kind}_split-a.csv"
        listed = read_reference_patches(file.read_bytes(), str(file))
        assert len(listed) == count
        assert set(listed.sequences) <= set(splits["a"].test)
