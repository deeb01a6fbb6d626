"""Packs one golden case per benchmark into the zip file that `raybench selftest` runs: python tests/golden/pack.py

Values and tolerances are those of the expected.json files here, which the published tools gave; none is raybench's own.
tests/runs/test_selftest.py holds the zip file against what this packs.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

GOLDEN = Path(__file__).parent
TARGET = GOLDEN.parent.parent / "raybench/runs/golden_cases.zip"
PACKED = {  # what is taken of the data of each case
    "hbench_classification": ("benchmarks", "descriptors/block4"),
    "hbench_matching": ("benchmarks", "descriptors/block4"),
    "hbench_retrieval": ("benchmarks", "results/block4"),
    "hpatches_verification": ("tasks", "descriptors/block20"),
    "hpatches_matching": ("tasks", "descriptors/block20"),
    "hpatches_retrieval": ("tasks", "descriptors/grey16"),
    "fpr95": ("liberty.npz", "cosine.npz", "ties.npz"),
    "disc": ("small",),
    "copydays": ("copydays.npz", "distractors.npz", "train.npz"),
    "revisited": ("roxford5k", "rparis6k", "ties", "revisitop1m"),
    "tss": ("Dataset", "Results"),
}
LEVELS = ("e", "h", "t")


def packed() -> dict[str, bytes]:
    """Every file of the zip file, by name."""
    files = {"cases.json": json.dumps(cases(), indent=1).encode()}
    for case, parts in PACKED.items():
        for part in parts:
            place = GOLDEN / case / "data" / part
            paths = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
            data = GOLDEN / case / "data"
            files |= {f"{case}/{path.relative_to(data).as_posix()}": path.read_bytes() for path in paths}
    return dict(sorted(files.items()))


def cases() -> list[dict]:
    return [
        hbench_classification(),
        hbench_matching(),
        hbench_retrieval(),
        hpatches("verification", "block20", verification_figures),
        hpatches("matching", "block20", matching_figures),
        hpatches("retrieval", "grey16", retrieval_figures),
        fpr95(),
        disc(),
        copydays(),
        revisited(),
        tss(),
    ]


def hbench_classification() -> dict:
    said, columns = expected("hbench_classification"), {"full": ("ap", "auc"), "balanced": ("ap_balanced", "auc_balanced")}
    figures = []
    for key, values in said["expected"].items():
        descriptor, task, kind = key.split("/")
        if descriptor == "block4":
            figures += [figure(task, name, values[of], said["tolerance"]) for of, name in zip(("ap", "auc"), columns[kind])]
    return case("hbench_classification", "hbench-classification", said, hbench("classification", "features"), figures)


def hbench_matching() -> dict:
    """Of what comes from the descriptors: the fourth task was permuted in the .results files only."""
    said = expected("hbench_matching")
    tasks = ("mini_easy_illum", "mini_hard_viewpoint", "mini_tough_viewpoint")
    figures = [
        figure(task, name, said["expected"][f"block4/{task}"][name], said["tolerance"])
        for task in tasks
        for name in ("map", "map_2nnr")
    ]
    return case("hbench_matching", "hbench-matching", said, hbench("matching", "features"), figures)


def hbench_retrieval() -> dict:
    """From .results, in which some queries were edited to have edge cases: descriptors do not give these means."""
    said = expected("hbench_retrieval")
    figures = [
        figure(task, name, values[name], said["tolerance"])
        for task, values in said["expected"].items()
        for name in ("image_map", "patch_map")
    ]
    return case("hbench_retrieval", "hbench-retrieval", said, hbench("retrieval", "results"), figures)


def hbench(task: str, entry: str) -> dict:
    folder = {"features": "descriptors/block4", "results": "results/block4"}[entry]
    return {"benchmarks": f"hbench_{task}/benchmarks", entry: f"hbench_{task}/{folder}"}


def hpatches(task: str, descriptor: str, figures_of) -> dict:
    name, said = f"hpatches_{task}", expected(f"hpatches_{task}")
    options = {"tasks": f"{name}/tasks", "features": f"{name}/descriptors/{descriptor}", "distance": "L2"}
    rows = figures_of(said["expected_L2"])
    return case(name, f"hpatches-{task}", said, options, [figure(*row, said["tolerance"]) for row in rows])


def verification_figures(said: dict) -> list[tuple]:
    columns = {"auc_balanced": "balanced_auc", "ap_imbalanced": "imbalanced_ap"}
    return [
        (f"mini | {level} | {kind}", column, said[level][kind][name])
        for level in LEVELS
        for kind in ("intra", "inter")
        for column, name in columns.items()
    ]


def matching_figures(said: dict) -> list[tuple]:
    return [(f"mini | {level}", "map", said[f"map_{level}"]) for level in (*LEVELS, "mean")]


def retrieval_figures(said: dict) -> list[tuple]:
    return [
        (f"mini | {level} | {pool}", "map", value) for level in LEVELS for pool, value in said["map"][level].items()
    ]


def fpr95() -> dict:
    said = expected("fpr95")
    figures = [
        figure(name.removesuffix(".npz"), column, said["expected"][name.removesuffix(".npz")][column], said["tolerance"])
        for name in PACKED["fpr95"]
        for column in ("fpr95", "fdr95")
    ]
    return case("fpr95", "patch-pairs", said, {"results": "fpr95"}, figures)


def disc() -> dict:
    said, figures, codecs, norms = expected("disc"), [], [], []
    for key, values in said["expected_small"].items():
        codec, norm, candidates = key.split("|")
        if candidates == "knn":
            codecs.append(codec)
            norms.append(norm)
            tolerance = said["tolerance"].get(f"small, codec {codec}", said["tolerance"]["small"])
            figures += [figure(f"{codec} | {norm}", name, value, tolerance[name]) for name, value in values.items()]
    options = {
        "features": "disc/small",
        "codecs": ";".join(dict.fromkeys(codecs)),
        "score_norm": ";".join(norm for norm in dict.fromkeys(norms) if norm != "None"),
    }
    return case("disc", "disc2021", said, options, figures)


def copydays() -> dict:
    said = expected("copydays")
    tolerance = {"strong_mAP": said["tolerance"]["blocks and strong_mAP"], "overall_uAP": said["tolerance"]["overall_uAP"]}
    figures = [
        figure(codec, name, values[name], tolerance[name]) for codec, values in said["expected"].items() for name in tolerance
    ]
    return case("copydays", "copydays", said, {"features": "copydays", "codecs": ";".join(said["expected"])}, figures)


def revisited() -> dict:
    """The `+r1m` rows of a set of vectors as long as the distractors; `ties` has shorter ones."""
    said = expected("revisited")
    figures = [
        figure(f"{name} | {setup}", column, values[column], said["tolerance"])
        for name, setups in said["expected"].items()
        for setup, values in setups.items()
        for column in ("map", "mp_at_1", "mp_at_5", "mp_at_10")
    ]
    return case("revisited", "revisited", said, {"features": "revisited"}, figures)


def tss() -> dict:
    said = expected("tss")
    every, straight = said["vc"]["Average"], said["vc"]["w/o flip"]
    values = {"SegIUR": every["seg"], **{f"T{percent}": every["T"][percent - 1] for percent in (1, 3, 5, 10)}}
    values |= {"SegIUR_no_flip": straight["seg"], "T5_no_flip": straight["T"][4]}
    figures = [figure("MINI", name, value, said["tolerance"]["vc"]) for name, value in values.items()]
    options = {"data": "tss/Dataset", "results": "tss/Results"}
    return case("tss", "tss", {**said, "reference": said["reference"]["vc"]}, options, figures)


def expected(case: str) -> dict:
    return json.loads((GOLDEN / case / "expected.json").read_text())


def case(name: str, benchmark: str, said: dict, options: dict, figures: list[dict]) -> dict:
    return {"name": name, "benchmark": benchmark, "reference": said["reference"], "options": options, "figures": figures}


def figure(row: str, name: str, value: float, tolerance: float) -> dict:
    return {"row": row, "figure": name, "value": value, "tolerance": tolerance}


if __name__ == "__main__":
    with zipfile.ZipFile(TARGET, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, content in packed().items():
            file.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
