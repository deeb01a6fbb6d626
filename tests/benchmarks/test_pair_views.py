"""Views of the two pair benchmarks: figures worked out by hand, and groups that are the figures of their own lists."""

import csv
import json

import numpy as np
import pytest
from conftest import GOLDEN

INLINE = ("--ray", "off")
VERIFICATION = GOLDEN / "hpatches_verification/data"


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def classify(raybench, folder, out, *given):
    said = raybench("run", "hbench-classification", "--benchmarks", folder, "--out", out, *given, *INLINE)
    assert said.code == 0, said.err
    return said


def views(out, task):
    return {(row["view"], row["group"]): row for row in rows(out / "tables/views.csv") if row["task"] == task}


def figures(row, *columns):
    return tuple(float(row[column]) if row[column] else None for column in columns)


def write_task(folder, lines):
    """A task `t` of labelled pairs, with their distances as finished results; a line is a pair, a label, a distance."""
    target = folder / "classification"
    target.mkdir(parents=True)
    (target / "t.benchmark").write_text("t.pairs\n")
    (target / "t.pairs").write_text("".join(f"{a},{b},{label}\n" for a, b, label, _ in lines))
    (target / "t.results").write_text("".join(f"{distance}\n" for *_, distance in lines))
    return folder


HAND = [
    ("i_x.ref.0", "i_x.e1.0", 1, 0.1),
    ("i_x.e1.0", "i_y.e2.1", 0, 0.2),
    ("i_x.e3.2", "v_z.ref.0", 0, 0.3),
    ("i_x.e1.3", "i_x.e2.3", 1, 0.4),
    ("i_y.h1.0", "i_y.h2.0", 1, 0.5),
    ("v_z.e1.0", "v_z.h1.0", 1, 0.6),
    ("v_z.ref.0", "i_x.ref.1", 0, 0.7),
    ("w.e1.0", "w.e2.4", 0, 0.8),
]


def test_classification_views_are_as_worked_out_by_hand(raybench, tmp_path):
    folder = write_task(tmp_path / "lists", HAND)
    classify(raybench, folder, tmp_path / "out", "--results", folder)
    found = views(tmp_path / "out", "t")
    counts = {key: tuple(int(row[c]) for c in ("pairs", "positives", "between")) for key, row in found.items()}
    assert counts == {
        ("noise", "easy"): (5, 2, 0),  # ref goes with e; e with h and two ref are in no group
        ("noise", "hard"): (1, 1, 0),
        ("change", "illumination"): (5, 3, 1),  # by the first patch; only i_x to v_z leaves the change
        ("change", "viewpoint"): (2, 1, 1),
        ("sequence", "i_x"): (4, 2, 2),
        ("sequence", "i_y"): (1, 1, 0),
        ("sequence", "v_z"): (2, 1, 1),
        ("sequence", "w"): (1, 0, 0),
    }
    columns = ("ap", "auc", "ap_balanced", "auc_balanced")
    # i_x in order: positive, negative, negative, positive; precision 1/1 and 2/4; of 4 (positive, negative) pairs 2
    assert figures(found["sequence", "i_x"], *columns) == (0.75, 0.5, 0.75, 0.5)
    # illumination: + - - + +, precision 1, 2/4, 3/5; 6 pairs, 2 right; balanced has no more negatives than there are
    assert figures(found["change", "illumination"], *columns) == pytest.approx((0.7, 1 / 3, 0.7, 1 / 3))
    # easy: + - - + -, 6 pairs, 4 right; balanced leaves out the last negative
    assert figures(found["noise", "easy"], *columns) == pytest.approx((0.75, 4 / 6, 0.75, 0.5))
    assert figures(found["sequence", "v_z"], *columns) == (1.0, 1.0, 1.0, 1.0)


def test_a_group_without_positives_or_negatives_has_empty_figures(raybench, tmp_path):
    folder = write_task(tmp_path / "lists", HAND)
    classify(raybench, folder, tmp_path / "out", "--results", folder)
    text = (tmp_path / "out/tables/views.csv").read_text().splitlines()
    assert "t,sequence,i_y,1,1,0,,,," in text
    assert "t,sequence,w,1,0,0,,,," in text
    assert "t,noise,hard,1,1,0,,,," in text


def test_pairs_in_no_group_are_said_and_kept_with_the_table(raybench, tmp_path):
    folder = write_task(tmp_path / "lists", HAND)
    classify(raybench, folder, tmp_path / "out", "--results", folder)
    notes = json.loads((tmp_path / "out/manifest.json").read_text())["further_notes"]["views"]
    assert "t: 2 pairs are in no group by noise." in notes
    assert "t: 1 pairs are in no group by change." in notes
    said = raybench("report", tmp_path / "out", "--out", tmp_path / "page.html")
    assert said.code == 0, said.err
    assert "t: 2 pairs are in no group by noise." in (tmp_path / "page.html").read_text()


def test_a_task_without_its_lists_has_no_views(raybench, tmp_path):
    folder = write_task(tmp_path / "lists", HAND)
    (folder / "classification/t.pairs").unlink()
    (folder / "classification/t.results").write_text("0.1,1\n0.2,0\n")
    classify(raybench, folder, tmp_path / "out", "--results", folder)
    assert not (tmp_path / "out/tables/views.csv").exists()
    assert [row["pairs"] for row in rows(tmp_path / "out/hbench_classification.csv")] == ["2"]


@pytest.fixture
def signs(golden, tmp_path):
    """The golden descriptors cut to signs, whose distances are mostly tied."""
    for file in (golden / "descriptors/block4").glob("*/*.csv"):
        target = tmp_path / "signs" / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        np.savetxt(target, np.loadtxt(file, delimiter=";") > 0, fmt="%d", delimiter=",")
    return "--features", tmp_path / "signs", "--distance", "hamming"


def test_pairs_of_one_group_have_the_figures_of_their_task(raybench, golden, tmp_path, signs):
    classify(raybench, golden / "benchmarks", tmp_path / "out", *signs)
    for row in rows(tmp_path / "out/hbench_classification.csv"):
        noise = row["task"].split("_")[2]  # the golden lists of a task are of one level
        own = views(tmp_path / "out", row["task"])["noise", noise]
        assert {column: own[column] for column in row if column != "task"} == {c: row[c] for c in row if c != "task"}


@pytest.mark.parametrize("view", ["change", "sequence"])
def test_a_group_is_what_its_own_list_gives(raybench, golden, tmp_path, signs, view):
    classify(raybench, golden / "benchmarks", tmp_path / "out", *signs)
    for task in ("mini_diffseq_hard", "mini_sameseq_easy"):
        lists = golden / "benchmarks/classification"
        names = (lists / f"{task}.benchmark").read_text().split()
        pairs = [line for name in names for line in (lists / name).read_text().splitlines()]
        labels = (lists / f"{task}.labels").read_text().split()
        groups = {key: row for key, row in views(tmp_path / "out", task).items() if key[0] == view}
        assert sum(int(row["pairs"]) for row in groups.values()) == len(pairs)
        for (_, group), row in groups.items():
            prefix = group[0] + "_" if view == "change" else group + "."
            own = [f"{p},{label}" for p, label in zip(pairs, labels, strict=True) if p.startswith(prefix)]
            folder = tmp_path / task / group / "classification"
            folder.mkdir(parents=True)
            (folder / "own.benchmark").write_text("own.pairs\n")
            (folder / "own.pairs").write_text("\n".join(own) + "\n")
            classify(raybench, folder.parent, tmp_path / task / group / "out", *signs)
            (alone,) = rows(tmp_path / task / group / "out/hbench_classification.csv")
            assert {c: row[c] for c in alone if c != "task"} == {c: alone[c] for c in alone if c != "task"}


def test_skipped_pairs_are_in_no_view(raybench, golden, tmp_path):
    features = tmp_path / "features"
    for file in (golden / "descriptors/block4").glob("*/*.csv"):
        if file.parent.name != "i_pond":
            (features / file.parent.name).mkdir(parents=True, exist_ok=True)
            (features / file.parent.name / file.name).write_bytes(file.read_bytes())
    classify(raybench, golden / "benchmarks", tmp_path / "out", "--features", features, "--on-bad-input", "skip")
    for row in rows(tmp_path / "out/hbench_classification.csv"):
        own = views(tmp_path / "out", row["task"])
        assert ("sequence", "i_pond") not in own
        assert sum(int(r["pairs"]) for (view, _), r in own.items() if view == "sequence") == int(row["pairs"])


def verify(raybench, out, tasks=VERIFICATION / "tasks"):
    given = ("--tasks", tasks, "--features", VERIFICATION / "descriptors/block20", "--out", out)
    said = raybench("run", "hpatches-verification", *given, *INLINE)
    assert said.code == 0, said.err
    return rows(out / "hpatches_verification.csv")


def write_split(folder, chosen):
    """The golden split with only the lines whose first sequence is chosen; returns the lines by kind."""
    folder.mkdir()
    names = ["i_cliff", "i_pier", "v_barn", "v_moor"]
    (folder / "splits.json").write_text(json.dumps({"mini": {"name": "mini", "train": [], "test": names}}))
    kept = {}
    for file in (VERIFICATION / "tasks").glob("verif_*.csv"):
        header, *lines = file.read_text().splitlines()
        kept[file.name] = [line for line in lines if chosen(line.split(",")[0])]
        (folder / file.name).write_text("\n".join([header, *kept[file.name]]) + "\n")
    return kept


@pytest.mark.parametrize("view", ["type", "sequence"])
def test_verification_of_a_group_is_what_its_own_lists_give(raybench, tmp_path, view):
    verify(raybench, tmp_path / "out")
    found = rows(tmp_path / "out/tables" / f"by_{view}.csv")
    for group in dict.fromkeys(row[view] for row in found):
        prefix = group[0] if view == "type" else group
        lists = write_split(tmp_path / group, lambda name, prefix=prefix: name.startswith(prefix))
        own = [row for row in found if row[view] == group]
        alone = verify(raybench, tmp_path / f"{group}-out", tmp_path / group)
        assert [(r["noise"], r["negatives"], *figures(r, "auc_balanced", "ap_imbalanced")) for r in own] == [
            (r["noise"], r["negatives"], *figures(r, "auc_balanced", "ap_imbalanced")) for r in alone
        ]
        positives = lists["verif_pos_split-mini.csv"]
        for row in own:
            negatives = lists[f"verif_neg_{row['negatives']}_split-mini.csv"]
            outside = [line for line in negatives if not line.split(",")[3].startswith(prefix)]
            counts = (len(positives) + len(negatives), len(positives), len(outside))
            assert tuple(int(row[c]) for c in ("pairs", "positives", "between")) == counts


def test_pairs_of_one_type_have_the_figures_of_the_main_table(raybench, tmp_path):
    write_split(tmp_path / "tasks", lambda name: name.startswith("v_"))
    main = verify(raybench, tmp_path / "out", tmp_path / "tasks")
    by_type = rows(tmp_path / "out/tables/by_type.csv")
    assert {row["type"] for row in by_type} == {"viewpoint"}
    assert [{column: row[column] for column in main[0]} for row in by_type] == main


def test_a_sequence_without_positives_has_empty_figures(raybench, tmp_path):
    write_split(tmp_path / "tasks", lambda name: True)
    file = tmp_path / "tasks/verif_pos_split-mini.csv"
    kept = [line for line in file.read_text().splitlines() if not line.startswith("i_cliff")]
    file.write_text("\n".join(kept) + "\n")
    verify(raybench, tmp_path / "out", tmp_path / "tasks")
    text = (tmp_path / "out/tables/by_sequence.csv").read_text()
    lines = [line.split(",") for line in text.splitlines() if ",i_cliff," in line]
    assert len(lines) == 8
    assert all(line[5] == "0" and line[-2:] == ["", ""] for line in lines)
    assert "nan" not in text
