"""The patch benchmarks show their worst mistakes, patch beside patch, from the strips that they began with."""

import csv
import io
import re
import shutil

import numpy as np
import pytest
from conftest import GOLDEN
from PIL import Image

from raybench.benchmarks.cases import stored_cases

STRIPS = GOLDEN / "hpatches_matching/data/hpatches"
NUMBER = r"(-?[\d.]+(?:e[+-]?\d+)?)"


def given_for(benchmark, tmp_path):
    """Golden tasks over golden strips; of 2017 retrieval, which has no strips of its own, some of our own."""
    data = GOLDEN / benchmark.replace("-", "_") / "data"
    if benchmark == "hbench-matching":  # its labels say that patch K is another patch
        tasks = shutil.copytree(data / "benchmarks", tmp_path / "tasks", ignore=shutil.ignore_patterns("*.labels"))
        return ("--benchmarks", tasks, "--data", data / "hpatches")
    if benchmark.startswith("hbench"):
        return ("--benchmarks", data / "benchmarks", "--data", data / "hpatches")
    if benchmark != "hpatches-retrieval":
        return ("--tasks", data / "tasks", "--data", data / "hpatches")
    tasks = shutil.copytree(GOLDEN / "hpatches_matching/data/tasks", tmp_path / "tasks")
    for name, sequences in {"queries": ("v_oak", "i_fern"), "distractors": ("v_oak", "i_fern", "v_lock")}.items():
        lines = [f"{sequence},{patch}" for sequence in sequences for patch in range(9)]
        (tasks / f"retr_{name}_split-mini.csv").write_text("\n".join(["s,idx", *lines, ""]))
    return ("--tasks", tasks, "--data", STRIPS)


def drawn(raybench, tmp_path, benchmark, *more):
    given = given_for(benchmark, tmp_path)
    quiet = ("--descriptor", "patch_descriptors:Block4", "--out", tmp_path / "out", "--ray", "off")
    assert raybench("run", benchmark, *given, *quiet, *more).code == 0
    return stored_cases(str(tmp_path / "out"), {}, ())


def key_cells(out, benchmark):
    """The first cells of every row of the main table, joined."""
    keys = ("task", "split", "noise", "negatives", "pool")
    with (out / f"{benchmark.replace('-', '_')}.csv").open() as file:
        return [" | ".join(row[key] for key in keys if key in row) for row in csv.DictReader(file)]


def place(panel):
    sequence, image, patch = panel.name.split(".")
    return sequence, image, int(patch)


@pytest.mark.parametrize(
    "benchmark",
    [f"hbench-{task}" for task in ("classification", "matching", "retrieval")]
    + [f"hpatches-{task}" for task in ("verification", "matching", "retrieval")],
)
def test_every_patch_benchmark_shows_right_patches_as_right_and_wrong_ones_as_wrong(raybench, tmp_path, benchmark):
    cases = drawn(raybench, tmp_path, benchmark)
    assert cases and {case.row for case in cases} <= set(key_cells(tmp_path / "out", benchmark))
    assert len({(case.kind, case.unit) for case in cases}) == len(cases), "one of a kind per sequence"
    for case in cases:
        (sequence, _, patch), *others = map(place, case.panels)
        assert case.unit == sequence
        for panel, other in zip(case.panels[1:], others, strict=True):
            assert panel.right == (other[0] == sequence and other[2] == patch)
            assert Image.open(io.BytesIO(panel.jpeg)).size == (65, 65)


def test_a_patch_is_drawn_from_its_own_place_in_the_strip(raybench, tmp_path):
    panel = drawn(raybench, tmp_path, "hpatches-matching")[0].panels[1]
    sequence, image, patch = place(panel)
    strip = np.asarray(Image.open(STRIPS / sequence / f"{image}.png")).reshape(-1, 65, 65)
    found = np.asarray(Image.open(io.BytesIO(panel.jpeg)))
    apart = np.abs(strip.astype(int) - found.astype(int)).mean(axis=(1, 2))
    assert apart.argmin() == patch


def test_the_worst_pairs_are_those_of_the_distances_in_the_results(raybench, tmp_path):
    cases = drawn(raybench, tmp_path, "hbench-classification")
    task = next(iter({case.row for case in cases}))
    lists = (GOLDEN / f"hbench_classification/data/benchmarks/classification/{task}.benchmark").read_text().split()
    folder = next((tmp_path / "out/results/classification").iterdir())
    texts = [(folder / f"{name.removesuffix('.pairs')}.results").read_text().split() for name in lists]
    rows = np.array([line.split(",") for text in texts for line in text], float)
    distance, positive = rows[:, 0], rows[:, 1] > 0
    closest, farthest = (next(case for case in cases if case.kind == kind) for kind in ("false alarm", "missed"))
    found = [float(re.search(f"distance {NUMBER}", case.caption)[1].rstrip(".")) for case in (closest, farthest)]
    assert found == pytest.approx([distance[~positive].min(), distance[positive].max()], rel=1e-3)


def test_ranks_of_views_are_those_that_the_figure_rests_on(raybench, tmp_path):
    import pyarrow.parquet

    from raybench.metrics.ranking import trapezoid_ap_of_ranks

    cases = drawn(raybench, tmp_path, "hpatches-retrieval")
    rows = pyarrow.parquet.read_table(tmp_path / "out/tables/per_query.parquet").to_pylist()
    ap = {(row["sequence"], row["patch"]): row["ap"] for row in rows if (row["noise"], row["pool"]) == ("t", 20_000)}
    assert len(cases) == 2
    for case in cases:
        sequence, _, patch = place(case.panels[0])
        assert ap[sequence, patch] == min(value for (own, _), value in ap.items() if own == sequence)
        ranks = np.array([int(rank) for rank in re.search(r"numbers ([\d, ]+);", case.caption)[1].split(", ")])
        assert trapezoid_ap_of_ranks(ranks, 5) == pytest.approx(ap[sequence, patch])


def test_there_are_none_where_a_run_begins_with_vectors(raybench, tmp_path):
    data = GOLDEN / "hbench_matching/data"
    given = ("--benchmarks", data / "benchmarks", "--features", data / "descriptors/block4", "--ray", "off")
    assert raybench("run", "hbench-matching", *given, "--out", tmp_path / "out").code == 0
    assert not (tmp_path / "out/pictures").exists()


def test_a_strip_that_is_gone_leaves_an_empty_frame_with_words(tmp_path):
    from raybench.benchmarks.cases import parsed_cases
    from raybench.benchmarks.patch_cases import PatchCase, ShownPatch, cases_file
    from raybench.sources.strips import Strips

    shutil.copytree(STRIPS / "v_oak", tmp_path / "v_oak")
    strips = Strips.scan(str(tmp_path))
    gone, broken, whole = 0, 1, 2
    (tmp_path / f"{strips.keys[gone]}.png").unlink()
    (tmp_path / f"{strips.keys[broken]}.png").write_bytes(b"no picture")
    shown = tuple(
        ShownPatch("patch", image, patch) for image, patch in ((gone, 0), (broken, 0), (whole, 0), (whole, 999))
    )
    (case,) = parsed_cases(cases_file(strips, "row", [PatchCase("missed", "words", shown)]), "file")
    assert [bool(panel.jpeg) for panel in case.panels] == [False, False, True, False]
    assert [panel.label for panel in case.panels[:2]] == ["patch; can't be read"] * 2
    assert parsed_cases(cases_file(strips, "row", [PatchCase("missed", "words", shown[:2])]), "file") == []
