"""What `raybench list BENCHMARK` and the end of a help show: expected folders, where data come from, two commands.

Words and links only, so that they are there at once. Trees and links of published sets are those of `datasets/`; the
examples that begin at `runs/demo` work once `make demo` ran.
"""

from __future__ import annotations

from dataclasses import dataclass

from raybench.datasets.published import PUBLISHED

PATCHES = f"""\
--data DIR                     patches; not needed with --features or --results
{PUBLISHED["hpatches"].tree}
--features DIR                 or descriptors, one row per patch
└── i_ajuntament/ref.csv …     also .npy, .parquet or .h5"""

TASKS_2016 = """\
--benchmarks DIR               what is asked
{tasks}
--results DIR                  or finished results
└── {results}"""

TASKS_2017 = """\
--tasks DIR                    what is asked
├── splits.json                sequences of each split (also in splits/)
{tasks}"""

VECTOR_FILE = "vectors (float32, one row per image) and image_names; also .npz, .parquet"

SOURCES_2016 = (*PUBLISHED["hpatches"].links, *PUBLISHED["hbench-tasks"].links)
SOURCES_2017 = (*PUBLISHED["hpatches"].links, *PUBLISHED["hpatches-tasks"].links)
OWN_PATCHES = "Own patches: `raybench tasks {kind} --data DIR --out DIR` makes task files for them."

DEMO_PATCHES = "--data runs/demo/data/hpatches/hpatches"
DEMO_2016 = f"{DEMO_PATCHES} --benchmarks runs/demo/data/hpatches/benchmarks"
DEMO_2017 = f"{DEMO_PATCHES} --tasks runs/demo/data/hpatches/tasks"
DEMO_COPIES = "runs/demo/data/copies"


@dataclass(frozen=True)
class Guide:
    """The folders as a tree, where the data come from, and arguments of two runs."""

    tree: str
    sources: tuple[str, ...]
    examples: tuple[str, str]


def _guide_2016(tasks: str, results: str, second: str) -> Guide:
    tree = f"{PATCHES}\n{TASKS_2016.format(tasks=tasks, results=results)}"
    return Guide(
        tree,
        (*SOURCES_2016, OWN_PATCHES.format(kind="hbench")),
        (f"{DEMO_2016} --descriptor sift --out runs/sift", second),
    )


def _guide_2017(tasks: str, second: str) -> Guide:
    return Guide(
        f"{PATCHES}\n{TASKS_2017.format(tasks=tasks)}",
        (*SOURCES_2017, OWN_PATCHES.format(kind="hpatches")),
        (f"{DEMO_2017} --split full --descriptor rootsift --out runs/rootsift", second),
    )


FAMILY_EXAMPLES = {
    "hbench": (
        f"{DEMO_2016} --descriptor sift --out runs/hbench-sift",
        "--features s3://BUCKET/DESCRIPTORS --benchmarks s3://BUCKET/BENCHMARKS --out s3://BUCKET/RUN --gpus 8",
    ),
    "hpatches": (
        f"{DEMO_2017} --descriptor rootsift --out runs/hpatches-rootsift",
        "--data HPATCHES --tasks TASKS --split a,b,c --descriptor mymodule:MyClass --out runs/mine",
    ),
}

GUIDES: dict[str, Guide] = {
    "hbench-classification": _guide_2016(
        "├── train_diffseq_easy.benchmark   names of .pairs files, one per line\n"
        "└── train_easy_pos.pairs …         SEQ.IM.PATCH,SEQ.IM.PATCH,LABEL lines",
        "train_easy_pos.results …       distance,label lines, one per pair",
        "--benchmarks BENCHMARKS --results RESULTS --out runs/scored --ray off",
    ),
    "hbench-matching": _guide_2016(
        "└── train_easy_illum.benchmark …   SEQ.IM,SEQ.IM lines: pairs of images",
        "train_easy_illum.results …     per pair its line, then indices and distances of nearest patches",
        "--features DESCRIPTORS --benchmarks BENCHMARKS --distance L1 --k 5 --out runs/mine",
    ),
    "hbench-retrieval": _guide_2016(
        "└── train_easy_40s_00.benchmark …  the pool (SEQ.IM,…), then one query SEQ.IM.PATCH per line",
        "train_easy_40s_00.results …    the pool, then per query itself and its 50 nearest",
        "--features DESCRIPTORS --benchmarks BENCHMARKS --compat hbench --out runs/mine",
    ),
    "hpatches-verification": _guide_2017(
        "├── verif_pos_split-a.csv      pairs of the same point: s1,t1,idx1,s2,t2,idx2\n"
        "├── verif_neg_intra_split-a.csv    others of the same sequence\n"
        "└── verif_neg_inter_split-a.csv    others of another sequence",
        "--features DESCRIPTORS --tasks TASKS --split a,b --post-processing pcapl --out runs/mine",
    ),
    "hpatches-matching": _guide_2017(
        "└── (nothing else: ref is matched with every other image of a test sequence)",
        "--data HPATCHES --tasks TASKS --descriptor torchscript:model.pt --input-size 32 --out runs/model",
    ),
    "hpatches-retrieval": _guide_2017(
        "├── retr_queries_split-a.csv       patches of ref that are searched for: s,idx\n"
        "└── retr_distractors_split-a.csv   what they are hidden among: s,idx",
        "--features s3://BUCKET/DESCRIPTORS --tasks s3://BUCKET/TASKS --out s3://BUCKET/RUN --gpus 4",
    ),
    "disc2021": Guide(
        "--data DIR                     the set's root; each part may also be named by its own option\n"
        f"{PUBLISHED['disc2021'].tree}\n"
        "--features DIR                 or vectors\n"
        f"├── queries.h5                 {VECTOR_FILE}\n"
        "├── references.h5\n"
        "└── training.h5\n"
        "--results predictions.csv      or finished predictions: query_id,reference_id,score lines",
        (
            *PUBLISHED["disc2021"].links,
            "https://github.com/facebookresearch/sscd-copy-detection (models for --descriptor sscd:… or torchscript:…)",
        ),
        (
            f'--data {DEMO_COPIES}/disc --descriptor thumbnail --codecs "Flat;PCAW32,L2norm,Flat" --out runs/disc',
            "--data s3://BUCKET/disc --descriptor sscd:s3://BUCKET/sscd.classy.pt --backbone CV_RESNET50 --dims 512 "
            "--gpus 8 --out s3://BUCKET/RUN",
        ),
    ),
    "copydays": Guide(
        "--data DIR                     the set's root\n"
        f"{PUBLISHED['copydays'].tree}\n"
        "--distractors DIR              any other images, among which originals are searched\n"
        "--training DIR                 images for codecs that train\n"
        "--features DIR                 or vectors, named like original/200000.jpg\n"
        f"├── copydays.h5                {VECTOR_FILE}\n"
        "├── distractors.h5\n"
        "└── training.h5",
        PUBLISHED["copydays"].links,
        (
            f"--data {DEMO_COPIES}/copydays --distractors {DEMO_COPIES}/distractors --descriptor thumbnail "
            "--codecs Flat --out runs/copydays",
            "--features VECTORS --codecs PCAW512,L2norm,Flat --out runs/mine --ray off",
        ),
    ),
    "revisited": Guide(
        "--data DIR                     the root; a set of any name works\n"
        "├── roxford5k/                 a set; also rparis6k\n"
        "│   ├── gnd_roxford5k.json     truth, converted once from gnd_roxford5k.pkl\n"
        "│   └── jpg/                   4,993 references, 70 queries, which are cropped to their box;\n"
        "│                              or jpg.tar, jpg.zip, or several .tar (.zip) in jpg/\n"
        "└── revisitop1m/               distractors, if there are any: rows SET+r1m\n"
        "    ├── revisitop1m.txt        their names, with folder and suffix\n"
        "    └── jpg/ …\n"
        "--training DIR                 images for codecs that train\n"
        "--features DIR                 or vectors, in the same tree, with names as in the lists\n"
        "├── roxford5k/gnd_roxford5k.json\n"
        f"├── roxford5k/queries.h5       {VECTOR_FILE}\n"
        "├── roxford5k/references.h5\n"
        "├── revisitop1m/distractors.h5\n"
        "└── training.h5",
        (
            "http://cmp.felk.cvut.cz/revisitop/ (truth, and where images and distractors are)",
            "https://github.com/filipradenovic/revisitop (the published tool)",
        ),
        (
            "--data runs/demo/data/landmarks --descriptor thumbnail --out runs/landmarks",
            "--features VECTORS --set roxford5k,rparis6k --out runs/mine --ray off",
        ),
    ),
    "image-retrieval": Guide(
        "--queries SET                  images, or vectors, as one of these:\n"
        "├── a.jpg, x/b.png …           a folder; images are named a, b (x/b where\n"
        "│                              another folder has a b, too)\n"
        "├── set.tar, set.zip           an archive, or several: set-{000..009}.tar\n"
        "├── set.csv, set.parquet       a list with a column uri (and name)\n"
        "└── set.h5, .npz, .parquet     vectors and image_names: all sets, or none\n"
        "--references SET               likewise; the same as --queries: no image is\n"
        "                               a match of its own\n"
        "--training SET                 for codecs and score norms that train\n"
        "--ground-truth FILE            .csv or .parquet: query,reference[,grade];\n"
        "                               a grade is positive, hard, junk, or a number\n"
        "                               from 0 (for nDCG)\n"
        "--features DIR                 or vectors in one folder\n"
        "└── queries.h5 …               references, training; .npz, .parquet\n"
        "--data DIR                     or all in one folder\n"
        "└── queries.tar …              references, training, ground_truth.csv",
        (
            "Figures are those of trec_eval (https://github.com/usnistgov/trec_eval): map, map_cut, P, recall, ndcg; "
            "µAP is that of disc2021.",
            "Without --codecs vectors are compared as they are (Flat); the published list is for DISC2021.",
        ),
        (
            "--queries runs/demo/data/own/pictures --references runs/demo/data/own/pictures "
            "--ground-truth runs/demo/data/own/truth.csv --descriptor thumbnail --out runs/own",
            "--queries queries.h5 --references references.h5 --ground-truth truth.csv --out runs/mine --ray off",
        ),
    ),
    "patch-pairs": Guide(
        "--pairs FILE                   lists: a file, several with commas, or a folder\n"
        "├── mine.csv                   a,b,label lines: two patches, 1 (one point) or 0\n"
        "└── m50_100000_100000_0.txt    or PhotoTour's: patch point unused patch point …\n"
        "--data DIR                     patches, as one of these; the first two also as .tar or .zip\n"
        "├── a.png, x/b.jpg …           square images of one side; colours become grey\n"
        "├── patches0000.bmp …          PhotoTour's sheets of 16 x 16, with info.txt\n"
        "└── SEQ/IM.png …               strips, for names SEQ.IM.PATCH\n"
        "--features FILE                or vectors and image_names (.h5, .npz, .parquet);\n"
        "│                              of patches by number one row each (also .npy, .csv)\n"
        "└── SEQ/IM.csv …               or a folder of these, for names SEQ.IM.PATCH\n"
        "--results FILE                 or finished distance,label or score,label lines below\n"
        "                               a header; or .npz: labels, and distances or scores",
        (
            "http://matthewalunbrown.com/patchdata/patchdata.html (PhotoTour: liberty, notredame, yosemite)",
            "https://github.com/DagnyT/hardnet (the published figure: code/EvalMetrics.py)",
        ),
        (
            f"{DEMO_PATCHES} --pairs runs/demo/data/hpatches/pairs --descriptor sift --out runs/pairs-sift",
            "--pairs LIBERTY/m50_100000_100000_0.txt --data LIBERTY --descriptor torchscript:model.pt "
            "--input-size 32 --out runs/liberty",
        ),
    ),
    "tss": Guide(
        "--data DIR                     the folder Dataset\n"
        f"{PUBLISHED['tss'].tree}\n"
        "--results DIR                  finished flows, instead of --descriptor\n"
        "└── FG3DCar/PAIR/flow1.flo …   flow2.flo, mask1.png, mask2.png; also KITTI .png, .npy, .npz",
        PUBLISHED["tss"].links,
        (
            "--data runs/demo/data/tss/Dataset --descriptor dis --visualize --out runs/dis",
            "--data Dataset --results Results --auto-flip --compat vc --out runs/scored --ray off",
        ),
    ),
}


def examples_of(name: str) -> tuple[str, ...]:
    """Arguments of two runs of a benchmark or a family; none of one that has no guide."""
    guide = GUIDES.get(name)
    return guide.examples if guide else FAMILY_EXAMPLES.get(name, ())
