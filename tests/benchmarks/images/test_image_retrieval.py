"""image-retrieval: every figure beside a plain second implementation, by the command line; cuts, executors, samples."""

import csv
import shutil

import numpy as np
import plain_retrieval as plain
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import outputs_of_every_plan

from raybench.runs.finished import finished_manifest, read_tables
from raybench.runs.samples import read_samples
from raybench.table import figure_cells

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


def test_the_main_table_has_the_promised_columns_and_flat_alone_by_default(raybench, tmp_path):
    data = OwnData(tmp_path / "data", 0, "none")
    said = run(raybench, tmp_path / "out", *data.given, *INLINE)
    header = (tmp_path / "out/image_retrieval.csv").read_text().splitlines()[0]
    assert header == f"codec,score_norm,queries,{','.join(MAIN)}"
    (row,) = rows_of(tmp_path / "out/image_retrieval.csv")
    assert (row["codec"], row["score_norm"]) == ("Flat", "None")
    assert "3 of 14 queries have no relevant reference" in said.out


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
