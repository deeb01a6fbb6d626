"""Wrong matching and retrieval files: exit code 2, one line for each problem with file and place, nothing computed."""

import shutil

import pytest
from conftest import GOLDEN


@pytest.fixture
def matching(raybench, tmp_path):
    return Case(raybench, "matching", tmp_path)


@pytest.fixture
def retrieval(raybench, tmp_path):
    return Case(raybench, "retrieval", tmp_path)


class Case:
    """A copy of golden inputs that a test may spoil, and the command over it."""

    def __init__(self, raybench, kind, folder):
        self.raybench, self.kind, self.folder = raybench, kind, folder
        self.data = shutil.copytree(GOLDEN / f"hbench_{kind}" / "data", folder / "data")
        self.tasks = self.data / "benchmarks" / kind
        self.results = self.data / "results/block4" / kind
        self.vectors = self.data / "descriptors/block4"

    def errors(self, *given, command="run"):
        out = self.folder / "out"
        said = self.raybench(
            *(command, f"hbench-{self.kind}", "--benchmarks", self.tasks, "--out", out, "--ray", "off"),
            *(given or ("--features", self.vectors)),
        )
        assert (said.code, "Traceback" in said.err) == (2, False), said.err
        assert not (out / "stages").exists(), "something was computed"
        return said.errors

    def only_error(self, *words, given=()):
        (line,) = self.errors(*given)
        for word in words:
            assert str(word) in line

    def from_results(self, *words):
        self.only_error(*words, given=("--results", self.results))

    def spoil(self, file, number, change):
        """One line of a file, from 1, changed; taken out if the change gives None."""
        lines = file.read_text().splitlines()
        changed = change(lines[number - 1])
        lines[number - 1 : number] = [] if changed is None else [changed]
        file.write_text("\n".join(lines) + "\n")
        return file


def first(value):
    return lambda line: ",".join([value, *line.split(",")[1:]])


def test_distances_that_fall_name_pair_column_and_rank(matching):
    file = matching.spoil(matching.results / "mini_hard_viewpoint.results", 10, first("1e-9"))
    matching.from_results(file, "v_mill.ref,v_mill.h2", "column 1, rank 2", "in order of distance")


def test_a_distance_that_is_no_number_names_its_line(matching):
    file = matching.spoil(matching.results / "mini_hard_viewpoint.results", 3, first("far"))
    matching.from_results(file, "line 3:", "'far' is no number")


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_a_distance_must_be_finite(matching, value):
    file = matching.spoil(matching.results / "mini_hard_viewpoint.results", 3, first(value))
    matching.from_results(file, "v_mill.ref,v_mill.h1", "column 1, rank 1", value)


@pytest.mark.parametrize("value", ["-1", "0.5"])
def test_an_index_must_be_one(matching, value):
    file = matching.spoil(matching.results / "mini_hard_viewpoint.results", 4, first(value))
    matching.from_results(file, "column 1, rank 2", value, "no index")


def test_a_pair_missing_from_results(matching):
    file = matching.results / "mini_easy_illum.results"
    file.write_text("\n".join(file.read_text().splitlines()[:-5]) + "\n")
    matching.from_results(file, "i_reef.ref,i_reef.e5", "missing")


def test_a_pair_that_is_not_in_the_task(matching):
    file = matching.spoil(matching.results / "mini_easy_illum.results", 6, lambda _: "i_reef.ref,i_reef.e9")
    matching.from_results(file, "line 6:", "i_reef.ref,i_reef.e9", "not in the .benchmark", "did you mean")


def test_a_line_of_results_that_is_missing(matching):
    file = matching.spoil(matching.results / "mini_easy_illum.results", 10, lambda _: None)
    matching.from_results(file, "i_reef.ref,i_reef.e2", "3 lines")


def test_lines_of_unequal_length(matching):
    file = matching.spoil(matching.results / "mini_easy_illum.results", 4, lambda line: line + ",3")
    matching.from_results(file, "i_reef.ref,i_reef.e1", "15", "16")


def test_missing_results_of_a_task(matching):
    (matching.results / "mini_easy_illum.results").unlink()
    matching.from_results(matching.results, "mini_easy_illum.results")


def test_white_space_around_values_is_allowed(matching):
    file = matching.results / "mini_easy_illum.results"
    file.write_text(file.read_text().replace(",", " , ").replace("\n", " \r\n"))
    given = ("--benchmarks", matching.tasks, "--results", matching.results, "--out", matching.folder / "out")
    assert matching.raybench("run", "hbench-matching", *given, "--ray", "off").code == 0


@pytest.mark.parametrize(("value", "words"), [("99", ("index 99", "out of range")), ("x", ("line 2:", "'x'"))])
def test_labels_out_of_range_or_no_number(matching, value, words):
    file = matching.spoil(matching.tasks / "mini_easy_illum.labels", 2, first(value))
    matching.only_error(file, *words)


def test_too_few_labels(matching):
    file = matching.spoil(matching.tasks / "mini_easy_illum.labels", 2, lambda line: line.rpartition(",")[0])
    file = matching.spoil(file, 3, lambda line: line.rpartition(",")[0])
    matching.only_error(file, "i_reef.ref,i_reef.e1", "14 labels", "15 patches")
    matching.from_results(file, "14 labels", "15 patches")


def test_images_that_are_not_there(matching):
    shutil.rmtree(matching.vectors / "v_mill")
    (matching.vectors / "i_reef/e1.csv").unlink()
    errors = matching.errors()
    assert len(errors) == 2
    assert "i_reef/e1.csv is missing" in errors[0]
    assert "no sequence 'v_mill'" in errors[1]


def test_unequal_images_need_labels(matching):
    (matching.tasks / "mini_easy_illum.labels").unlink()
    file = matching.vectors / "i_reef/e1.csv"
    file.write_text("\n".join(file.read_text().splitlines()[:-1]) + "\n")
    matching.only_error("mini_easy_illum", "15 patches against 14", given=("--features", matching.vectors))


@pytest.mark.parametrize(("k", "words"), [("0", "at least 1"), ("16", "only 15 patches")])
def test_a_k_that_cannot_be(matching, k, words):
    errors = matching.errors("--features", matching.vectors, "--k", k, "--task", "mini_easy_illum")
    assert words in errors[0]


def test_k_belongs_to_computing(matching):
    matching.only_error("--k", "leave it out", given=("--results", matching.results, "--k", "2"))


@pytest.mark.parametrize("text", ["", "i_reef.ref\n", "i_reef.ref,i_reef.e1\ni_reef.ref,i_reef.e1\n"])
def test_a_benchmark_that_is_no_list_of_pairs(matching, text):
    file = matching.tasks / "mini_easy_illum.benchmark"
    file.write_text(text)
    matching.only_error(file)


def test_all_problems_are_listed_together(matching):
    matching.spoil(matching.tasks / "mini_easy_illum.labels", 2, first("x"))
    (matching.tasks / "mini_hard_viewpoint.benchmark").write_text("nonsense\n")
    (matching.results / "mini_relabelled.results").unlink()
    matching.spoil(matching.results / "mini_tough_viewpoint.results", 3, first("x"))
    assert len(matching.errors("--results", matching.results)) == 4
    assert len(matching.errors("--results", matching.results, command="check")) == 4


def test_a_query_out_of_range(retrieval):
    file = retrieval.spoil(retrieval.tasks / "mini_easy_2s_00.benchmark", 3, lambda line: f"{line}99")
    (retrieval.tasks / "mini_easy_2s_00.labels").unlink()
    retrieval.only_error(file, "line 3:", "out of range", "patches")


def test_a_query_outside_the_pool(retrieval):
    file = retrieval.spoil(retrieval.tasks / "mini_easy_2s_00.benchmark", 3, lambda _: "i_shet.ref.2")
    retrieval.only_error(file, "line 3:", "i_shet.ref.2", "no image in the pool")


@pytest.mark.parametrize("value", ["i_shed.ref", "i_shed.ref.x", "nonsense", ""])
def test_a_query_that_is_no_signature(retrieval, value):
    file = retrieval.spoil(retrieval.tasks / "mini_easy_2s_00.benchmark", 3, lambda _: value)
    retrieval.only_error(file, "line 3:", f"{value!r} is no patch signature")


def test_a_query_that_comes_twice(retrieval):
    file = retrieval.tasks / "mini_easy_2s_00.benchmark"
    query = file.read_text().splitlines()[1]
    retrieval.spoil(file, 4, lambda _: query)
    retrieval.only_error(file, "line 4:", query, "twice")


def test_results_of_another_pool(retrieval):
    file = retrieval.results / "mini_easy_2s_00.results"
    retrieval.spoil(file, 1, lambda line: ",".join(reversed(line.split(","))))
    retrieval.from_results(file, "line 1:", "pool")


def test_results_with_a_query_missing(retrieval):
    file = retrieval.spoil(retrieval.results / "mini_easy_2s_00.results", 12, lambda _: None)
    retrieval.from_results(file, "10 lines", "expected 11")


def test_results_whose_first_name_is_not_the_query(retrieval):
    file = retrieval.results / "mini_easy_2s_00.results"
    retrieval.spoil(file, 3, lambda line: ",".join([*line.split(",")[1::-1], *line.split(",")[2:]]))
    retrieval.from_results(file, "line 3:", "expected the query")


def test_results_with_a_name_twice(retrieval):
    file = retrieval.results / "mini_easy_2s_00.results"
    retrieval.spoil(file, 3, lambda line: ",".join([*line.split(",")[:-1], line.split(",")[4]]))
    retrieval.from_results(file, "line 3:", "comes twice")


@pytest.mark.parametrize(("cut", "words"), [(-1, "50 names, other lines have 51"), (None, "52 names, expected 51")])
def test_results_of_another_length(retrieval, cut, words):
    file = retrieval.results / "mini_hard_3s_00.results"
    pool = file.read_text().splitlines()[0].split(",")
    unused = next(
        name for image in pool for k in range(12) if (name := f"{image}.{k}") not in file.read_text().splitlines()[4]
    )
    change = (lambda line: line.rpartition(",")[0]) if cut else (lambda line: f"{line},{unused}")
    retrieval.spoil(file, 5, change)
    retrieval.from_results(file, "line 5:", words)


def test_a_cluster_without_its_query(retrieval):
    file = retrieval.spoil(retrieval.tasks / "mini_easy_2s_00.labels", 2, lambda line: line.partition(",")[2])
    retrieval.only_error(file, "line 2:", "not in its own cluster")


def test_an_image_of_the_pool_that_is_not_there(retrieval):
    (retrieval.vectors / "i_shed/e1.csv").unlink()
    retrieval.only_error("i_shed/e1.csv is missing")


def test_an_image_twice_in_the_pool(retrieval):
    file = retrieval.tasks / "mini_easy_2s_00.benchmark"
    retrieval.spoil(file, 1, lambda line: f"{line},{line.split(',')[0]}")
    (retrieval.tasks / "mini_easy_2s_00.labels").unlink()
    retrieval.only_error(file, "line 1:", "twice in the pool")


def test_vectors_of_two_dimensions_are_named(raybench, retrieval):
    for file in (retrieval.vectors / "v_vale").glob("*.csv"):
        file.write_text("".join(f"{line.rpartition(';')[0]}\n" for line in file.read_text().splitlines()))
    given = ("--benchmarks", retrieval.tasks, "--features", retrieval.vectors, "--out", retrieval.folder / "out")
    said = raybench("run", "hbench-retrieval", *given, "--ray", "off")
    assert said.code == 2
    assert "all must be the same" in said.errors[0]
