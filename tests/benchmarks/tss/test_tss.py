"""Every golden figure of TSS, through the command line, from results trees and from flow methods."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import GOLDEN

from raybench.benchmarks.cases import stored_cases
from raybench.benchmarks.tss.tss import BENCHMARK
from raybench.formats.flo import read_flow, write_flo
from raybench.runs.finished import finished_manifest
from raybench.runs.unit_values import unit_values

DATA = GOLDEN / "tss" / "data"
EXPECTED = json.loads((GOLDEN / "tss" / "expected.json").read_text())
KIT = Path(__file__).parents[4] / "shared/data/tss_kit"
EXECUTORS = {"inline": ("--ray", "off"), "ray": ("--device", "cpu", "--cpus", "2")}
OLD_CPU = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3 AVX512F AVX512_SKX",
    "OPENBLAS_CORETYPE": "Nehalem",
}
FIGURES = [f"T{percent}" for percent in range(1, 51)]


@pytest.fixture(params=["inline", pytest.param("ray", marks=pytest.mark.ray)])
def executor(request):
    if request.param != "inline":
        request.getfixturevalue("local_ray")
    return EXECUTORS[request.param]


def rows(file):
    with file.open() as opened:
        return list(csv.DictReader(opened))


def scores(out, group="MINI"):
    return {row["Row"]: row for row in rows(out / group / "scores.csv")}


def run(raybench, out, *more, data=DATA / "Dataset"):
    said = raybench("run", "tss", "--data", data, "--out", out, *more)
    assert said.code == 0, said.err
    return said


def from_results(raybench, out, *more):
    return run(raybench, out, "--results", DATA / "Results", *more)


def assert_row(row, expected):
    assert float(row["SegIUR"]) == pytest.approx(expected["seg"], abs=1e-6), row["Row"]
    assert int(row["Flip"]) == expected["flip"], row["Row"]
    assert [float(row[t]) for t in FIGURES] == pytest.approx(expected["T"], abs=1e-6), row["Row"]


def test_every_figure_is_that_of_the_cpp_tool(raybench, tmp_path, executor):
    from_results(raybench, tmp_path / "out", *executor)
    found = scores(tmp_path / "out")
    assert list(found) == list(EXPECTED["vc"])
    for name, row in found.items():
        assert_row(row, EXPECTED["vc"][name])
    assert (found["Average"]["Src"], found["w/o flip"]["Ref"]) == ("-", "-")
    assert (found["p01_same_2to1"]["Src"], found["p01_same_2to1"]["Ref"]) == ("p01_same_b.jpg", "p01_same_a.jpg")


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (("--auto-flip",), "vc_autoflip_seg"),
        (("--use-prec",), "vc_useprec_seg"),
        (("--use_prec", "--auto_flip"), "vc_useprec_autoflip_seg"),
    ],
)
def test_segmentation_with_the_tools_options_is_the_published_one(raybench, tmp_path, flags, key):
    from_results(raybench, tmp_path / "out", "--ray", "off", *flags)
    for name, row in scores(tmp_path / "out").items():
        assert float(row["SegIUR"]) == pytest.approx(EXPECTED[key][name], abs=1e-6), name
        assert [float(row[t]) for t in FIGURES] == pytest.approx(EXPECTED["vc"][name]["T"], abs=1e-6)


def test_every_firm_figure_is_that_of_the_matlab_tool(raybench, tmp_path, executor):
    from_results(raybench, tmp_path / "out", *executor, "--compat", "matlab")
    firm = {name: row for name, row in EXPECTED["matlab"].items() if name not in ("Average", "w/o flip")}
    firm |= EXPECTED["matlab_p03_antialiased"]["rows"]
    found = scores(tmp_path / "out")
    assert len(firm) == 20
    for name, expected in firm.items():
        assert_row(found[name], expected)


@pytest.mark.parametrize("rules", ["vc", "matlab"])
def test_figures_do_not_depend_on_the_cpu(raybench, tmp_path, rules):
    """The same run by a process whose numpy and OpenBLAS may use nothing newer than SSE4."""
    from_results(raybench, tmp_path / "here", "--ray", "off", "--compat", rules)
    trees = ("--data", DATA / "Dataset", "--results", DATA / "Results")
    command = (sys.executable, "-m", "raybench", "run", "tss", *trees, "--out", tmp_path / "there", "--ray", "off")
    subprocess.run([*command, "--compat", rules], env={**os.environ, **OLD_CPU}, check=True, capture_output=True)
    for name in ("tss.csv", "MINI/scores.csv", "tables/per_pair.csv"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()


def test_matlab_segmentation_with_auto_flip_is_the_published_one(raybench, tmp_path):
    from_results(raybench, tmp_path / "out", "--compat", "matlab", "--auto-flip", "--ray", "off")
    for name, row in scores(tmp_path / "out").items():
        if "p03" not in name and "_" in name:
            assert float(row["SegIUR"]) == pytest.approx(EXPECTED["matlab_autoflip_seg"][name], abs=1e-6), name


def test_the_summary_has_a_row_a_group_and_the_mean_over_groups(raybench, tmp_path):
    said = from_results(raybench, tmp_path / "out", "--ray", "off")
    (group, mean) = rows(tmp_path / "out/tss.csv")
    header = "group,pairs,SegIUR,T1,T3,T5,T10,SegIUR_no_flip,T5_no_flip"
    assert (tmp_path / "out/tss.csv").read_text().splitlines()[0] == header
    every, straight = EXPECTED["vc"]["Average"], EXPECTED["vc"]["w/o flip"]
    expected = [every["seg"], *(every["T"][t - 1] for t in (1, 3, 5, 10)), straight["seg"], straight["T"][4]]
    assert [float(group[column]) for column in header.split(",")[2:]] == pytest.approx(expected, abs=1e-6)
    assert (group["group"], group["pairs"], mean["group"], mean["pairs"]) == ("MINI", "10", "mean", "10")
    assert "PCK@0.05" in said.out
    assert "NO FLOW: 1 of 10 pairs of MINI (p05_noflow)" in said.out
    assert "masks of 2 of 10 pairs were estimated" in said.out
    of_groups = {one.figure.figure: one for one in unit_values(str(tmp_path / "out")) if one.figure.row == "MINI"}
    assert len(of_groups["T5"].names) == 10, "each image pair has a value, which two runs are set beside each other by"


def test_the_mean_is_over_groups_not_over_pairs(raybench, tmp_path):
    """Group TWO holds one pair of MINI's ten."""
    for tree in ("Dataset", "Results"):
        shutil.copytree(DATA / tree, tmp_path / tree)
        shutil.copytree(DATA / tree / "MINI/p01_same", tmp_path / tree / "TWO/p01_same")
    run(raybench, tmp_path / "out", "--results", tmp_path / "Results", "--ray", "off", data=tmp_path / "Dataset")
    mini, two, mean = rows(tmp_path / "out/tss.csv")
    assert (mini["pairs"], two["pairs"], mean["pairs"]) == ("10", "1", "11")
    for column in ("SegIUR", "T5", "T5_no_flip"):
        assert float(mean[column]) == pytest.approx((float(mini[column]) + float(two[column])) / 2, abs=1e-12)


def test_absent_flows_may_be_left_out_of_the_means(raybench, tmp_path):
    said = from_results(raybench, tmp_path / "out", "--missing-flow", "skip", "--ray", "off")
    found, published = scores(tmp_path / "out"), EXPECTED["vc"]
    assert found["p05_noflow_1to2"]["T5"] == ""
    assert "left out of T1..T50" in said.out
    assert float(found["Average"]["T5"]) == pytest.approx(published["Average"]["T"][4] * 10 / 9, abs=1e-9)
    assert float(found["w/o flip"]["T5"]) == pytest.approx(published["w/o flip"]["T"][4] * 8 / 7, abs=1e-9)
    assert float(found["Average"]["SegIUR"]) == pytest.approx(published["Average"]["seg"], abs=1e-9)


def test_a_folder_without_flow_and_mask_scores_zero_as_with_the_tool(raybench, tmp_path):
    """Nothing at all, and one file of each kind, which counts as none."""
    shutil.copytree(DATA / "Results", tmp_path / "Results")
    for file in (tmp_path / "Results/MINI/p01_same").iterdir():
        file.unlink()
    for name in ("flow2.flo", "mask1.png"):
        (tmp_path / "Results/MINI/p02_smaller" / name).unlink()
    said = run(raybench, tmp_path / "out", "--results", tmp_path / "Results", "--ray", "off")
    found = scores(tmp_path / "out")
    for name in ("p01_same_1to2", "p01_same_2to1", "p02_smaller_1to2", "p02_smaller_2to1"):
        assert {float(found[name][column]) for column in ("SegIUR", *FIGURES)} == {0.0}
    kept = [
        row["T"][4] for name, row in EXPECTED["vc"].items() if name.startswith("p") and name[:3] not in ("p01", "p02")
    ]
    assert float(found["Average"]["T5"]) == pytest.approx(sum(kept) / 20, abs=1e-9)
    assert "NO FLOW: 3 of 10" in said.out and "masks of 2 of 10 pairs were absent" in said.out
    worst = stored_cases(str(tmp_path / "out"), {}, ())[0]
    assert (worst.title, worst.unit) == ("MINI: worst 1", "MINI/p01_same") and "T5 0.0% from 1 to 2" in worst.caption
    assert [panel.label for panel in worst.panels if not panel.jpeg] == [
        "2 warped to 1; absent",
        "flow found; absent",
        "error (blue: within T5); absent",
    ]


def test_every_pair_says_where_its_flow_and_mask_came_from(raybench, tmp_path):
    from_results(raybench, tmp_path / "out", "--auto-flip", "--ray", "off")
    states = {row["pair"]: (row["flow"], row["mask"]) for row in rows(tmp_path / "out/tables/per_pair.csv")}
    assert states["p01_same"] == ("given", "given")
    assert states["p04_nomask"] == states["p10_onemask"] == ("given", "estimated")
    assert states["p05_noflow"] == ("absent", "given")
    assert states["p07_inverted"] == ("given", "complement")


def test_bytes_are_equal_for_every_shard_size_and_executor(raybench, tmp_path, local_ray):
    """Computed flows, their scores and pictures."""
    found = set()
    for name, size in (("inline", "1"), ("inline", "3"), ("inline", "4"), ("ray", "1"), ("ray", "3")):
        out = tmp_path / name / size
        run(raybench, out, "--descriptor", "dis", "--visualize", "--shard-size", size, *EXECUTORS[name])
        files = sorted(file for part in ("MINI", "results", "pictures", "tables") for file in (out / part).rglob("*.*"))
        assert len(files) > 100
        found.add(b"".join(file.read_bytes() for file in [out / "tss.csv", *files]))
    assert len(found) == 1


def test_a_limit_takes_the_first_pairs_of_each_group_and_is_said(raybench, tmp_path):
    said = from_results(raybench, tmp_path / "out", "--limit", "3", "--ray", "off")
    assert [row["pairs"] for row in rows(tmp_path / "out/tss.csv")] == ["3", "3"]
    assert "LIMITED" in said.out


@pytest.mark.parametrize("place", ["disk", "s3"])
@pytest.mark.parametrize("group", ["FG3DCar", "JODS"])
def test_the_kits_own_scores_are_reproduced_byte_for_byte(raybench, tmp_path, s3, place, group):
    if not KIT.is_dir():
        pytest.skip(f"{KIT} is not here")
    for tree in ("Dataset", "Results"):
        shutil.copytree(KIT / tree / group, tmp_path / tree / group)
    data, results, out = tmp_path / "Dataset", tmp_path / "Results", tmp_path / "out"
    if place == "s3":
        bucket = s3.bucket(f"kit-{group.lower()}")
        data, results = s3.upload(data, f"{bucket}/Dataset"), s3.upload(results, f"{bucket}/Results")
    run(raybench, out, "--results", results, "--compat", "vc", "--ray", "off", data=data)
    official = (KIT / "Results" / group / "scores.csv").read_bytes().replace(b"\r\n", b"\n")
    assert (out / group / "scores.csv").read_bytes() == official


def test_a_run_on_object_storage_gives_the_same_bytes(raybench, tmp_path, s3, local_ray):
    bucket = s3.bucket("tss")
    data, results = s3.upload(DATA / "Dataset", f"{bucket}/Dataset"), s3.upload(DATA / "Results", f"{bucket}/Results")
    run(raybench, f"{bucket}/out", "--results", results, "--device", "cpu", "--cpus", "2", data=data)
    from_results(raybench, tmp_path / "out", "--ray", "off")
    from raybench import storage

    for name in ("tss.csv", "MINI/scores.csv", "tables/per_pair.csv"):
        assert storage.read(f"{bucket}/out/{name}") == (tmp_path / "out" / name).read_bytes()


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".png"])
def test_flow_in_other_files_gives_the_same_figures(raybench, tmp_path, suffix):
    """All golden flows are multiples of 1/32 px, which KITTI's 1/64 px holds exactly."""
    import cv2

    shutil.copytree(DATA / "Results", tmp_path / "Results")
    for file in (tmp_path / "Results").rglob("*.flo"):
        flow = read_flow(file.read_bytes(), "", ".flo")
        file.unlink()
        if suffix == ".npy":
            np.save(file.with_suffix(suffix), flow)
        elif suffix == ".npz":
            np.savez_compressed(file.with_suffix(suffix), flow=flow)
        else:
            valid = (np.abs(flow) <= 1e9).all(axis=2)
            coded = np.where(valid[..., None], flow, 0) * 64 + 2**15
            cv2.imwrite(
                str(file.with_suffix(suffix)), np.dstack([valid, coded[..., 1], coded[..., 0]]).astype(np.uint16)
            )
    run(raybench, tmp_path / "out", "--results", tmp_path / "Results", "--ray", "off")
    for name, row in scores(tmp_path / "out").items():
        assert_row(row, EXPECTED["vc"][name])


def test_a_picture_beside_a_flo_file_is_not_taken_for_flow(raybench, tmp_path):
    """The kit's own visualisation writes flow1.png into the same folder."""
    shutil.copytree(DATA / "Results", tmp_path / "Results")
    for pair in ("p01_same", "p02_smaller"):
        shutil.copy(DATA / "Dataset/MINI/p01_same/image1.png", tmp_path / f"Results/MINI/{pair}/flow1.png")
    run(raybench, tmp_path / "out", "--results", tmp_path / "Results", "--ray", "off")
    assert float(scores(tmp_path / "out")["Average"]["T5"]) == pytest.approx(EXPECTED["vc"]["Average"]["T"][4])


@pytest.mark.parametrize("method", ["zero", "farneback", "dis", "dense-sift"])
def test_built_in_methods_write_a_results_tree_that_reads_back_to_the_same_table(raybench, tmp_path, method):
    run(raybench, tmp_path / "a", "--descriptor", method, "--ray", "off")
    assert len(list((tmp_path / "a/results/MINI").glob("*/flow?.flo"))) == 20
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", "--ray", "off")
    for name in ("tss.csv", "MINI/scores.csv", "tables/per_pair.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_zero_flow_is_right_where_nothing_moves(raybench, tmp_path):
    run(raybench, tmp_path / "out", "--descriptor", "zero", "--ray", "off")
    truth = read_flow((DATA / "Dataset/MINI/p01_same/flow1.flo").read_bytes(), "", ".flo")
    lengths = np.hypot(*truth[np.abs(truth[..., 0]) < 1e9].T)
    row = scores(tmp_path / "out")["p01_same_1to2"]
    assert float(row["T5"]) == pytest.approx(np.mean(lengths <= 0.05 * 40), abs=1e-12)


def test_a_flow_class_of_the_users_own(raybench, tmp_path, executor):
    given = ("--descriptor", "flow_methods:Shift", "--descriptor-args", '{"u": 1.5}')
    run(raybench, tmp_path / "out", *given, *executor)
    flow = read_flow((tmp_path / "out/results/MINI/p02_smaller/flow2.flo").read_bytes(), "", ".flo")
    assert flow.shape == (56, 48, 2)
    assert np.unique(flow[..., 0]).tolist() == [1.5] and np.unique(flow[..., 1]).tolist() == [-2.0]


def test_a_flow_class_may_take_batches_on_a_gpu_actor(raybench, tmp_path, local_ray):
    given = ("--descriptor", "flow_methods:Batched", "--device", "gpu", "--batch-size", "3", "--shard-size", "5")
    run(raybench, tmp_path / "out", *given)
    sizes = [float(read_flow(f.read_bytes(), "", ".flo").max()) for f in (tmp_path / "out/results").rglob("*.flo")]
    assert sorted(sizes) == [1, 1] + [3] * 18  # ten directions a shard, in batches of three
    receipts = (tmp_path / "out/receipts/00-dense-flow.jsonl").read_text().splitlines()
    assert all(json.loads(line)["worker"]["device"].startswith("gpu") for line in receipts)


def test_a_flow_class_may_give_another_size(raybench, tmp_path):
    run(raybench, tmp_path / "a", "--descriptor", "flow_methods:HalfSize", "--ray", "off")
    run(raybench, tmp_path / "b", "--results", tmp_path / "a/results", "--ray", "off")
    assert (tmp_path / "a/tss.csv").read_bytes() == (tmp_path / "b/tss.csv").read_bytes()


def test_running_again_computes_nothing_and_a_new_result_is_seen(raybench, tmp_path):
    shutil.copytree(DATA / "Results", tmp_path / "Results")
    given = ("--results", tmp_path / "Results", "--ray", "off")
    run(raybench, tmp_path / "out", *given)
    before = (tmp_path / "out/tss.csv").read_bytes()
    assert "done already" in run(raybench, tmp_path / "out", *given).err
    file = tmp_path / "Results/MINI/p01_same/flow1.flo"
    file.write_bytes(write_flo(read_flow(file.read_bytes(), "", ".flo") + np.float32(9)))
    run(raybench, tmp_path / "out", *given)
    assert (tmp_path / "out/tss.csv").read_bytes() != before


def test_pictures_are_written_only_when_asked_for(raybench, tmp_path):
    from_results(raybench, tmp_path / "plain", "--ray", "off")
    assert [file.name for file in (tmp_path / "plain/pictures").iterdir()] == ["cases.json"]
    from_results(raybench, tmp_path / "drawn", "--ray", "off", "--visualize")
    kinds = {"flow", "warped", "error", "foreground"}
    folder = tmp_path / "drawn/pictures/MINI"
    named = {kind: {f"{kind}{side}.png" for side in (1, 2)} for kind in kinds}
    whole = set().union({"overview.jpg"}, *named.values())
    assert {file.name for file in (folder / "p01_same").iterdir()} == whole
    assert {file.name for file in (folder / "p05_noflow").iterdir()} == {"overview.jpg", *named["foreground"]}
    assert (tmp_path / "drawn/pictures/MINI.jpg").exists()
    assert (tmp_path / "drawn/tss.csv").read_bytes() == (tmp_path / "plain/tss.csv").read_bytes()


def figures_of(case):
    """T5 both ways, in percent."""
    return [float(figure) for figure in re.findall(r"([\d.]+)% from", case.caption)]


def test_a_run_shows_its_worst_and_best_pairs_whatever_becomes_of_the_data(raybench, tmp_path):
    shutil.copytree(DATA / "Dataset", tmp_path / "Dataset")
    run(raybench, tmp_path / "run", "--descriptor", "dis", "--ray", "off", data=tmp_path / "Dataset")
    shutil.rmtree(tmp_path / "Dataset")
    cases = stored_cases(str(tmp_path / "run"), {}, ())
    assert [(case.kind, case.row) for case in cases] == [("worst", "MINI"), ("worst", "MINI"), ("best", "MINI")]
    per_pair = {}
    for row in rows(tmp_path / "run/tables/per_pair.csv"):
        per_pair.setdefault(f"{row['group']}/{row['pair']}", []).append(100 * float(row["T5"]))
    ranked = sorted(per_pair, key=lambda name: (sum(per_pair[name]), name))
    assert [case.unit for case in cases] == [ranked[0], ranked[1], ranked[-1]]
    for case in cases:
        assert figures_of(case) == pytest.approx(per_pair[case.unit], abs=0.051)
        assert all(panel.jpeg for panel in case.panels)


def test_pairs_are_drawn_by_name_with_flows_alone_where_images_are_gone(raybench, tmp_path):
    shutil.copytree(DATA / "Dataset", tmp_path / "Dataset")
    run(raybench, tmp_path / "run", "--descriptor", "zero", "--ray", "off", data=tmp_path / "Dataset")
    manifest = finished_manifest(str(tmp_path / "run"))
    names = ("MINI/p03_larger", "MINI/p01_same", "MINI/none", "../elsewhere")

    def asked():
        return BENCHMARK.cases(str(tmp_path / "run"), manifest.arguments, (), names)

    assert [(case.unit, all(panel.jpeg for panel in case.panels)) for case in asked()] == [
        ("MINI/p03_larger", True),
        ("MINI/p01_same", True),
    ]
    (tmp_path / "Dataset/MINI/p01_same/image2.png").unlink()
    assert [panel.label for panel in asked()[1].panels if panel.jpeg] == ["true flow", "flow found"]
    shutil.rmtree(tmp_path / "Dataset")
    assert asked() == []
