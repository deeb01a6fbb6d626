"""image-retrieval: every figure beside a plain second implementation, by the command line; cuts, executors, samples."""

import csv
import json
import os
import shutil
import tarfile
import zipfile

import numpy as np
import plain_retrieval as plain
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import GOLDEN, outputs_of_every_plan
from PIL import Image

from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.samples import read_samples
from raybench.table import figure_cells

GOLDEN_SAID = json.loads((GOLDEN / "image_retrieval/expected.json").read_text())
INLINE = ("--ray", "off", "--progress", "none")
NORM = "1.0[0,2]"
MAIN = ["uAP", "mAP", "mAP_at_10", "precision_at_1", "precision_at_10", "recall_at_1", "recall_at_10"]
GRADES = {
    "none": [""],
    "words": ["positive", "hard", "junk"],
    "numbers": ["0", "1", "2", "0.5", "7"],
}


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def run(raybench, out, *given):
    said = raybench("run", "image-retrieval", "--out", out, *given)
    assert said.code == 0, said.err
    return said


class OwnData:
    """Whole-numbered vectors with many ties, and random truth; queries without relevant references among them."""

    def __init__(self, folder, seed, kind, queries=14, references=60, training=9, dimension=4):
        random = np.random.default_rng(seed)
        self.folder, self.kind = folder, kind
        self.sets = {
            role: random.integers(-2, 3, (count, dimension)).astype(np.float32)
            for role, count in (("queries", queries), ("references", references), ("training", training))
        }
        self.grades = [{} for _ in range(queries)]
        for query in range(queries - 3):  # two have nothing, one is listed without a reference
            chosen = random.choice(references, int(random.integers(1, 20)), replace=False)
            self.grades[query] = {int(one): str(random.choice(GRADES[kind])) or "positive" for one in chosen}
        self.grades[0][3] = {"none": "positive", "words": "hard", "numbers": "3"}[kind]
        folder.mkdir(parents=True, exist_ok=True)
        for role, rows in self.sets.items():
            order = random.permutation(len(rows))
            names = np.array([f"{role[0]}{number:03}" for number in order])
            np.savez(folder / f"{role}.npz", names=names, vectors=rows[order])
        self.write_truth(folder / "truth.csv")

    def lines(self):
        for query, own in enumerate(self.grades):
            for reference, grade in own.items():
                yield f"q{query:03}", f"r{reference:03}", grade
        yield f"q{len(self.grades) - 1:03}", "", ""

    def write_truth(self, path):
        columns = 2 if self.kind == "none" else 3
        head = ["query", "reference", "grade"][:columns]
        path.write_text("".join(",".join(line[:columns]) + "\n" for line in [head, *self.lines()]))

    @property
    def given(self):
        return (*self.named("queries", "references"), *self.truth)

    @property
    def truth(self):
        return "--ground-truth", self.folder / "truth.csv"

    def named(self, *roles):
        return [word for role in roles for word in (f"--{role}", self.folder / f"{role}.npz")]

    def scores(self, norm=None):
        training = self.sets["training"]
        return plain.scores_of(self.sets["queries"], self.sets["references"], training, norm)


@pytest.mark.parametrize("kind", GRADES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_figure_is_that_of_a_plain_second_implementation(seed, kind, raybench, tmp_path):
    data = OwnData(tmp_path / "data", seed, kind)
    run(raybench, tmp_path / "out", *data.given, *data.named("training"), "--k", "4", *INLINE)
    main = {row["score_norm"]: row for row in rows_of(tmp_path / "out/image_retrieval.csv")}
    every = {row["score_norm"]: row for row in rows_of(tmp_path / "out/tables/retrieval_figures.csv")}
    pooled = {
        (row["score_norm"], row["candidates"]): float(row["uAP"])
        for row in rows_of(tmp_path / "out/tables/retrieval_variants.csv")
    }
    ties = {(row["row"], row["figure"]): row for row in rows_of(tmp_path / "out/tables/ties.csv")}
    assert list(main) == ["None", "1.00[0,2]"]
    for name, norm in (("None", None), ("1.00[0,2]", (1.0, 0, 2))):
        scores = data.scores(norm)
        expected = plain.mean_figures(scores, data.grades)
        for figure, cell in every[name].items():
            if figure not in ("codec", "score_norm"):
                assert float(cell) == pytest.approx(expected[figure], abs=1e-12), figure
        for figure in ("queries", *MAIN[1:]):
            assert main[name][figure] == every[name][figure]
        assert main[name]["uAP"] == str(pooled[name, "knn"])
        assert pooled[name, "knn"] == pytest.approx(plain.micro_ap(scores, data.grades, 4), abs=1e-12)
        assert pooled[name, "global"] == pytest.approx(plain.micro_ap(scores, data.grades, 4, over_all=True), abs=1e-12)
        ends = [plain.mean_figures(plain.tied_orders(scores, data.grades, best), data.grades) for best in (False, True)]
        for figure in MAIN[1:]:
            found = ties.get((f"Flat | {name}", figure), {"worst": expected[figure], "best": expected[figure]})
            assert [float(found["worst"]), float(found["best"])] == pytest.approx([end[figure] for end in ends]), figure


@pytest.mark.parametrize("kind", GOLDEN_SAID["expected"])
def test_golden_figures_of_trec_eval(kind, raybench, tmp_path):
    data = GOLDEN / "image_retrieval/data"
    run(raybench, tmp_path, "--features", data, "--ground-truth", data / f"{kind}.csv", *INLINE)
    row = rows_of(tmp_path / "tables/retrieval_figures.csv")[0]
    assert (row["codec"], row["score_norm"]) == ("Flat", "None")
    for figure, value in GOLDEN_SAID["expected"][kind].items():
        assert float(row[figure]) == pytest.approx(value, abs=GOLDEN_SAID["tolerance"]), figure


def test_the_main_table_has_the_promised_columns_and_flat_alone_by_default(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "none")
    said = run(raybench, tmp_path / "out", *data.given, *INLINE)
    header = (tmp_path / "out/image_retrieval.csv").read_text().splitlines()[0]
    assert header == f"codec,score_norm,queries,{','.join(MAIN)}"
    (row,) = rows_of(tmp_path / "out/image_retrieval.csv")
    assert (row["codec"], row["score_norm"]) == ("Flat", "None")
    assert "3 of 14 queries have no relevant reference" in said.out
    assert "uAP: step AP over the 10 best candidates of each query in one pool" in said.out


def test_the_note_says_how_many_candidates_of_all_there_are(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "none")
    said = run(raybench, tmp_path / "out", *data.given, "--global-candidates", "true", "--k", "3", *INLINE)
    assert "uAP: step AP over the best pairs of all, 3 times as many as queries, in one pool" in said.out


def test_figures_of_single_queries_are_kept(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 2, "words")
    run(raybench, tmp_path / "out", *data.given, *INLINE)
    found = pq.read_table(tmp_path / "out/tables/per_query.parquet").to_pylist()
    assert [row["query"] for row in found] == [f"q{number:03}" for number in range(14)]
    for row, scores, own in zip(found, data.scores(), data.grades, strict=True):
        expected = plain.query_figures(scores, own)
        assert row["junk"] == sum(grade == "junk" for grade in own.values())
        if expected is None:
            assert row["positives"] == 0 and all(np.isnan(row[name]) for name in ("ap", "p_at_1", "r_at_10", "ndcg"))
        else:
            pairs = {"ap": "mAP", "ap_at_10": "mAP_at_10", "p_at_5": "precision_at_5", "r_at_1": "recall_at_1"}
            for name, figure in {**pairs, "ndcg": "nDCG", "positives": "positives"}.items():
                assert row[name] == pytest.approx(expected[figure], abs=1e-12), name


def test_truth_in_parquet_with_names_spelled_with_suffixes_gives_the_same_bytes(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "numbers")
    run(raybench, tmp_path / "csv", *data.given, *INLINE)
    columns = list(zip(*data.lines(), strict=True))
    grades = [float(grade) if grade else None for grade in columns[2]]
    table = {"query": [f"{name}.jpg" for name in columns[0]], "reference": columns[1], "grade": grades}
    pq.write_table(pa.table(table), tmp_path / "truth.parquet")
    sets = data.named("queries", "references")
    run(raybench, tmp_path / "parquet", *sets, "--ground-truth", tmp_path / "truth.parquet", *INLINE)
    for name in ("image_retrieval.csv", "tables/retrieval_figures.csv"):
        assert (tmp_path / "csv" / name).read_bytes() == (tmp_path / "parquet" / name).read_bytes()


def test_a_folder_of_vectors_is_as_good_as_three_files(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "words")
    run(raybench, tmp_path / "files", *data.given, *data.named("training"), *INLINE)
    run(raybench, tmp_path / "folder", "--features", data.folder, *data.truth, *INLINE)
    shutil.move(data.folder / "truth.csv", data.folder / "ground_truth.csv")
    run(raybench, tmp_path / "data-folder", "--data", data.folder, *INLINE)
    tables = [(tmp_path / out / "image_retrieval.csv").read_bytes() for out in ("files", "folder", "data-folder")]
    assert len(set(tables)) == 1


def test_neither_shards_nor_executors_change_a_byte(local_ray, raybench, tmp_path):
    data = OwnData(tmp_path / "data", 3, "words", references=150)
    given = (*data.given, *data.named("training"), "--codecs", "Flat;PCAW3,L2norm,Flat", "--progress", "none")
    assert len(outputs_of_every_plan(lambda out, *more: run(raybench, out, *given, *more), tmp_path)) == 1


def test_a_draw_of_every_query_once_is_the_table(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 4, "numbers")
    run(raybench, tmp_path / "out", *data.given, *data.named("training"), "--bootstrap", "20", *INLINE)
    manifest = finished_manifest(str(tmp_path / "out"))
    stored = read_samples(str(tmp_path / "out"), manifest)
    found = {}
    for sample in stored.samples:
        found.update(zip(sample.figures, sample.draw(np.ones(len(sample.units), np.int64)), strict=True))
    cells = figure_cells(read_tables(str(tmp_path / "out"), manifest)[0], ("codec", "score_norm"), set(MAIN))
    assert {(one.row, one.figure): value for one, value in found.items()} == {
        (cell.row, cell.figure): pytest.approx(cell.value, rel=1e-14) for cell in cells
    }
    assert stored.kind == "queries" and list(stored.data) == ["references"]


def test_a_set_that_is_searched_within_itself_finds_no_image_by_itself(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 5, "none")
    rows, names = data.sets["references"][:30], [f"r{number:03}" for number in range(30)]
    np.savez(tmp_path / "all.npz", names=names, vectors=rows)
    truth = {(one, (one + 1) % 30) for one in range(20)} | {(4, 4), (7, 7)}
    (tmp_path / "truth.csv").write_text("".join(f"r{one:03},r{other:03}\n" for one, other in sorted(truth)))
    both = ("--queries", tmp_path / "all.npz", "--references", tmp_path / "all.npz")
    said = run(raybench, tmp_path / "out", *both, "--ground-truth", tmp_path / "truth.csv", *INLINE)
    assert "30 queries are among the references themselves" in said.out
    grades = [{query: "junk"} | {r: "positive" for q, r in truth if q == query != r} for query in range(30)]
    scores = plain.scores_of(rows, rows)
    expected = plain.mean_figures(scores, grades) | {"uAP": plain.micro_ap(scores, grades, 10)}
    (row,) = rows_of(tmp_path / "out/image_retrieval.csv")
    assert {name: float(row[name]) for name in MAIN} == pytest.approx({name: expected[name] for name in MAIN})
    assert not [
        row for row in rows_of(tmp_path / "out/results/predictions.csv") if row["query_id"] == row["reference_id"]
    ]


def test_a_limited_run_takes_the_first_queries_and_says_so(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "words")
    said = run(raybench, tmp_path / "out", *data.given, "--limit", "5", *INLINE)
    assert "LIMITED: the first 5 queries" in said.out
    assert len(pq.read_table(tmp_path / "out/tables/per_query.parquet")) == 5


def test_a_limit_that_leaves_no_labelled_query_gives_empty_figures(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "none")
    (data.folder / "truth.csv").write_text("query,reference\nq009,r001\n")
    run(raybench, tmp_path / "out", *data.given, "--limit", "3", *INLINE)
    (row,) = rows_of(tmp_path / "out/image_retrieval.csv")
    assert [row[name] for name in MAIN] == [""] * len(MAIN)


@pytest.fixture(scope="module")
def pictures(copies, tmp_path_factory):
    """Folders of real pictures, and truth with several matches of a query and junk."""
    folder = tmp_path_factory.mktemp("own")
    for old, new in (("val_query", "queries"), ("val_ref", "references"), ("training", "training")):
        shutil.copytree(copies / "disc" / old, folder / new)
    lines = [line for line in (copies / "disc/val_groundtruth_matches.csv").read_text().split()[1:] if line[-1] != ","]
    known = {line.split(",")[0]: line.split(",")[1] for line in lines}
    more = [f"{query},R000{number:03},{kind}" for number, query in enumerate(known) for kind in ("hard", "junk")]
    more = [line for line in more if line.split(",")[1] != known[line.split(",")[0]] and line.endswith("junk")]
    text = ["query,reference,grade", *(f"{line},positive" for line in lines), *more]
    (folder / "ground_truth.csv").write_text("\n".join(text) + "\n")
    return folder


def of_pictures(folder):
    return (
        *("--queries", folder / "queries", "--references", folder / "references", "--training", folder / "training"),
        *("--ground-truth", folder / "ground_truth.csv", "--descriptor", "thumbnail", *INLINE),
    )


def test_pictures_their_exported_vectors_and_rescored_features_give_equal_tables(pictures, raybench, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(pictures, folder)
    codecs = ("--codecs", "Flat;PCAW16,L2norm,Flat")
    run(raybench, tmp_path / "a", *of_pictures(folder), *codecs, "--export-descriptors")
    exported = [f"--{role}={tmp_path}/a/results/{role}.h5" for role in ("queries", "references", "training")]
    truth = ("--ground-truth", folder / "ground_truth.csv")
    run(raybench, tmp_path / "b", *exported, *truth, *codecs, *INLINE)
    shutil.move(folder, tmp_path / "away")
    said = raybench("rescore", tmp_path / "a", "--out", tmp_path / "c", *INLINE)
    assert said.code == 0, said.err
    for name in ("image_retrieval.csv", "tables/retrieval_figures.csv", "tables/retrieval_thresholds.csv"):
        assert len({(tmp_path / out / name).read_bytes() for out in "abc"}) == 1, name
    assert (tmp_path / "a/pictures/missed.jpg").stat().st_size and not (tmp_path / "b/pictures").exists()
    (case, *_) = retrieval_cases_of(tmp_path / "a", "Q00000", queries=str(tmp_path / "away/queries"))
    assert case.unit == "Q00000"


def retrieval_cases_of(out, *units, **instead):
    from raybench.benchmarks import BENCHMARKS

    manifest = finished_manifest(str(out))
    arguments = {key: str(value).replace("/data/", "/away/") for key, value in manifest.arguments.items() if value}
    tables = read_tables(str(out), manifest)
    return BENCHMARKS["image-retrieval"].open().cases(str(out), arguments | instead, tables, units)


def packed(folder, kind, where):
    """The pictures of a folder as an archive or a list, named one by one in the latter."""
    paths = sorted(folder.iterdir())
    target = where / f"{folder.name}{kind}"
    if kind == ".tar":
        with tarfile.open(target, "w") as archive:
            for path in paths:
                archive.add(path, path.name)
    elif kind == ".zip":
        with zipfile.ZipFile(target, "w") as archive:
            for path in paths:
                archive.write(path, path.name)
    elif kind == ".csv":
        target.write_text("".join(f"{line}\n" for line in ["uri", *paths]))
    else:
        rows = {"uri": [f"file://{path}" for path in paths], "name": [path.stem for path in paths]}
        pq.write_table(pa.table(rows), target)
    return target


def test_pictures_in_a_folder_archives_and_lists_give_equal_tables(pictures, raybench, tmp_path):
    run(raybench, tmp_path / "folder", *of_pictures(pictures))
    for kind in (".tar", ".zip", ".csv", ".parquet"):
        where = tmp_path / f"in{kind}"
        where.mkdir()
        for role in ("queries", "references", "training"):
            packed(pictures / role, kind, where)
        shutil.copy(pictures / "ground_truth.csv", where)
        run(raybench, tmp_path / f"out{kind}", "--data", where, "--descriptor", "thumbnail", *INLINE)
        for name in ("image_retrieval.csv", "tables/retrieval_figures.csv", "results/predictions.csv"):
            assert (tmp_path / f"out{kind}" / name).read_bytes() == (tmp_path / "folder" / name).read_bytes(), kind
        (drawn,) = retrieval_cases_of(tmp_path / f"out{kind}", "Q00000")
        assert all(panel.jpeg for panel in drawn.panels)


def test_truth_in_parquet_is_remembered_where_the_images_are_gone(pictures, raybench, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(pictures, folder)
    rows = rows_of(folder / "ground_truth.csv")
    pq.write_table(pa.Table.from_pylist(rows), folder / "ground_truth.parquet")
    (folder / "ground_truth.csv").unlink()
    given = ("--data", folder, "--descriptor", "thumbnail", *INLINE)
    run(raybench, tmp_path / "a", *given)
    shutil.rmtree(folder)
    said = raybench("rescore", tmp_path / "a", "--out", tmp_path / "b", *INLINE)
    assert said.code == 0, said.err
    tables = [(tmp_path / out / "image_retrieval.csv").read_bytes() for out in "ab"]
    assert tables[0] == tables[1]


def test_pictures_of_one_name_in_several_folders_are_told_apart_by_their_folders(pictures, raybench, tmp_path):
    images = sorted((pictures / "references").iterdir())
    for number, image in enumerate(images[:12]):
        place = tmp_path / "set" / ("cat", "dog")[number % 2] / f"{number // 2}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, place)
    (tmp_path / "truth.csv").write_text("cat/0.jpg,cat/1\ndog/0,dog/1.jpg\n")
    both = ("--queries", tmp_path / "set", "--references", tmp_path / "set", "--ground-truth", tmp_path / "truth.csv")
    run(raybench, tmp_path / "out", *both, "--descriptor", "thumbnail", *INLINE)
    (row,) = rows_of(tmp_path / "out/image_retrieval.csv")
    assert row["queries"] == "2"
    assert rows_of(tmp_path / "out/results/predictions.csv")[0]["query_id"].startswith("cat/")


def test_queries_that_a_list_takes_from_the_references_keep_their_figures_when_the_images_are_gone(
    pictures, raybench, tmp_path
):
    folder = tmp_path / "data"
    shutil.copytree(pictures / "references", folder / "references")
    paths = sorted((folder / "references").iterdir())
    (tmp_path / "few.csv").write_text("uri,name\n" + "".join(f"file://{path},q{path.stem}\n" for path in paths[:5]))
    pairs = [(f"q{paths[number].stem}", paths[number + 1].stem) for number in range(5)]
    (tmp_path / "truth.csv").write_text("".join(f"{query},{reference}\n" for query, reference in pairs))
    sets = ("--queries", tmp_path / "few.csv", "--references", folder / "references")
    truth = ("--ground-truth", tmp_path / "truth.csv")
    said = run(raybench, tmp_path / "a", *sets, *truth, "--descriptor", "thumbnail", *INLINE)
    assert "5 queries are among the references themselves" in said.out
    found = {(row["query_id"], row["reference_id"]) for row in rows_of(tmp_path / "a/results/predictions.csv")}
    assert not found & {(f"q{path.stem}", path.stem) for path in paths}
    shutil.rmtree(folder)
    said = raybench("rescore", tmp_path / "a", "--out", tmp_path / "b", *INLINE)
    assert said.code == 0, said.err
    assert (tmp_path / "a/image_retrieval.csv").read_bytes() == (tmp_path / "b/image_retrieval.csv").read_bytes()


def test_sets_of_equal_names_sizes_and_times_are_told_apart_by_what_they_hold(raybench, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (2, 6, 20, 20, 3)).astype(np.uint8)
    for name, images in zip(("queries", "references", "copy"), noise[[0, 1, 0]], strict=True):
        (tmp_path / name).mkdir()
        for number, image in enumerate(images):
            path = tmp_path / name / f"{number}.bmp"
            Image.fromarray(image).save(path)
            os.utime(path, ns=(1, 1))
    (tmp_path / "truth.csv").write_text("0,1\n1,2\n2,0\n")
    truth = ("--ground-truth", tmp_path / "truth.csv", "--descriptor", "thumbnail")
    tables = {}
    for references, *how in (("references",), ("references", "--verify-inputs"), ("copy",), ("queries",)):
        out = tmp_path / "-".join(["out", references, *how])
        run(
            raybench,
            out,
            "--queries",
            tmp_path / "queries",
            "--references",
            tmp_path / references,
            *truth,
            *how,
            *INLINE,
        )
        tables[references, *how] = (out / "image_retrieval.csv").read_bytes()
    assert tables["references",] == tables["references", "--verify-inputs"] != tables["queries",]
    assert tables["copy",] == tables["queries",]


def test_copies_of_references_in_another_folder_count_as_other_images(pictures, raybench, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    names = [path.name for path in sorted((pictures / "references").iterdir())[:3]]
    for name in names:
        shutil.copy2(pictures / "references" / name, few / name)
    stems = [name.removesuffix(".jpg") for name in names]
    (tmp_path / "truth.csv").write_text(f"{stems[0]},{stems[1]}\n")
    given = ("--references", pictures / "references", "--ground-truth", tmp_path / "truth.csv")
    said = run(raybench, tmp_path / "out", "--queries", few, *given, "--descriptor", "thumbnail", *INLINE)
    assert "3 names stand in queries and in references" in said.out


def test_an_unreadable_picture_is_skipped_where_asked_and_its_pairs_are_left_out(pictures, raybench, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(pictures, folder)
    first = rows_of(folder / "ground_truth.csv")[0]
    (folder / "references" / f"{first['reference']}.jpg").write_bytes(b"no picture")
    said = raybench("run", "image-retrieval", "--out", tmp_path / "fails", *of_pictures(folder))
    assert said.code == 2 and f"{first['reference']}.jpg" in said.err
    lines = (folder / "ground_truth.csv").read_text().splitlines()
    (folder / "ground_truth.csv").write_text("\n".join([*lines, f"Q00005,{first['reference']},junk"]) + "\n")
    said = run(raybench, tmp_path / "out", *of_pictures(folder), "--on-bad-input", "skip")
    assert "SKIPPED: 1 images could not be read; 1 true pairs are left out with them." in said.out
    whole = run(raybench, tmp_path / "whole", *of_pictures(pictures))
    assert "SKIPPED" not in whole.out
    counts = [int(rows_of(tmp_path / out / "image_retrieval.csv")[0]["queries"]) for out in ("whole", "out")]
    assert counts[0] - counts[1] in (0, 1)


def test_training_images_that_are_references_too_are_counted(pictures, raybench, tmp_path):
    folder = tmp_path / "data"
    shutil.copytree(pictures, folder)
    shutil.copy(folder / "references/R000011.jpg", folder / "training/R000011.jpg")
    said = run(raybench, tmp_path / "out", *of_pictures(folder))
    assert "LEAKAGE: 1 names stand in training and in references (R000011)" in said.out
    assert "LEAKAGE: 1 references have a descriptor that a training image has, too" in said.out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--references", "r.npz", "--ground-truth", "t.csv"), ["no queries", "--queries"]),
        (("--queries", "q.npz", "--references", "r.npz"), ["no --ground-truth", "query,reference"]),
        (("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "no.csv"), ["no.csv", "does not exist"]),
        (("--queries", "q.npz", "--references", "no.npz", "--ground-truth", "t.csv"), ["no.npz", "does not exist"]),
        (("--queries", "q.npz", "--references", "no.parquet", "--ground-truth", "t.csv"), ["no.parquet", "not exist"]),
        (("--queries", "q.npz", "--references", "other.npz", "--ground-truth", "t.csv"), ["dimension 3", "has 4"]),
        (
            ("--queries", "q.npy", "--references", "images", "--ground-truth", "t.csv"),
            ["q.npy: has no names", "give .npz, .h5 or .parquet"],
        ),
        (("--queries", "q.npz", "--references", "images", "--ground-truth", "t.csv"), ["a mixture", "q.npz", "images"]),
        (("--queries", "images", "--references", "images", "--ground-truth", "t.csv"), ["need a --descriptor"]),
        (
            ("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "t.csv", "--descriptor", "thumbnail"),
            ["--descriptor: would do nothing with vectors"],
        ),
        (
            ("--features", "here", "--queries", "q.npz", "--ground-truth", "t.csv"),
            ["--queries: would do nothing with --features"],
        ),
        (
            ("--queries", "none", "--references", "images", "--ground-truth", "i.csv", "--descriptor", "thumbnail"),
            ["none", "does not exist", "images"],
        ),
        (("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "unknown.csv"), ["line 2", "'r999'"]),
        (("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "grade.csv"), ["line 1: grade 'god'"]),
        (
            ("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "twice.csv"),
            ["line 1 and line 2", "twice"],
        ),
        (("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "mixed.csv"), ["a word", "a number"]),
        (("--queries", "r.npz", "--references", "r.npz", "--ground-truth", "own.csv"), ["other than itself"]),
        (
            ("--queries", "q.npz", "--references", "r.npz", "--ground-truth", "t.csv", "--codecs", "PCA2,Flat"),
            ["needs a training set"],
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_wrong_is_one_clear_line(given, words, raybench, tmp_path):
    data = OwnData(tmp_path / "here", 0, "none")
    shutil.copy(data.folder / "queries.npz", tmp_path / "q.npz")
    shutil.copy(data.folder / "references.npz", tmp_path / "r.npz")
    np.savez(tmp_path / "other.npz", names=[f"r{number:03}" for number in range(60)], vectors=np.ones((60, 3), "f4"))
    (tmp_path / "images").mkdir()
    (tmp_path / "images/a.png").write_bytes(b"")
    texts = {
        "t": "q001,r001\n",
        "i": "a,a\n",
        "unknown": "q001,r001\nq001,r999\n",
        "grade": "q001,r001,god\n",
        "twice": "q001,r001\nq001,r001.png\n",
        "mixed": "q001,r001,positive\nq001,r002,3\n",
        "own": "r001,r001\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    places = [
        word if word.startswith("--") or word in ("thumbnail", "PCA2,Flat") else tmp_path / word for word in given
    ]
    said = raybench("check", "image-retrieval", *places)
    assert said.code == 2, said.out
    (error,) = said.errors
    for word in words:
        assert word in error


def test_a_run_is_verified_by_other_cuts_and_compared_with_another_descriptor(pictures, raybench, tmp_path):
    given = of_pictures(pictures)
    for name, more in (("plain", ()), ("square", ("--exif-rotate",))):
        run(raybench, tmp_path / name, *given, *more)
    said = raybench("verify", tmp_path / "plain", "--share", 1)
    assert said.code == 0 and said.out.startswith("unchanged: ")
    said = raybench("compare", tmp_path / "plain", tmp_path / "square", "--draws", 20, "--format", "csv")
    assert said.code == 0, said.err
    lines = list(csv.DictReader(said.out.splitlines()))
    assert [line["figure"] for line in lines if (line["run"], line["row"]) == ("plain", "Flat | None")] == MAIN
    assert {float(line["difference"]) for line in lines if line["run"] == "square"} == {0.0}
