"""Published sets of patches: HPatches, its task files of 2016 and 2017, and the three scenes of PhotoTour."""

from __future__ import annotations

from raybench.datasets.parts import (
    NOT_STATED,
    Exactly,
    Grouped,
    KnownFile,
    Numbered,
    Part,
    PublishedSet,
    Use,
)

ILLUMINATION = """
ajuntament autannes bologna books boutique bridger brooklyn castle chestnuts contruction crownday crownnight
dc dome duda fenis fog fruits gonnenberg greenhouse greentea indiana kions ktirio kurhaus leuven lionday
lionnight londonbridge melon miniature nescafe nijmegen nuts objects parking partyfood pencils pinard pool
porta resort salon santuario school ski smurf steps table tools toy troulos veggies village whitebuilding
yellowtent zion"""
VIEWPOINT = """
abstract adam apprentices artisans astronautis azzola bark bees beyus bip bird birdwoman blueprint boat bricks
busstop calder cartooncity charing churchill circus coffeehouse colors courses dirtywall dogman eastsouth
feast fest gardens grace graffiti home laptop london machines man maskedman pomegranate posters samples
soldiers strand sunseason tabletop talent tempera there underground vitro wall wapping war weapons woman
wormhole wounded yard yuri"""
SEQUENCES = (*(f"i_{name}" for name in ILLUMINATION.split()), *(f"v_{name}" for name in VIEWPOINT.split()))
PATCH_IMAGES = ("ref.png", *(f"{noise}{number}.png" for noise in "eh" for number in range(1, 6)))
TOUGH_IMAGES = tuple(f"t{number}.png" for number in range(1, 6))

HPATCHES = PublishedSet(
    "HPatches patches: 116 sequences (57 of light, 59 of viewpoint), 16 patch images in each",
    "4.2 GB packed",
    "MIT (the repository's LICENSE, 2020)",
    ("https://github.com/hpatches/hpatches-dataset (patches, 4.2 GB)",),
    """\
├── i_ajuntament/              a sequence: i_… changes of light, v_… of viewpoint
│   ├── ref.png                patches below each other; each as high as the image is wide (65 px)
│   ├── e1.png … e5.png        the same patches seen otherwise: easy,
│   ├── h1.png … h5.png        hard,
│   └── t1.png … t5.png        tough (not in the release of 2016)
└── v_abstract/ …""",
    (
        Part("patches", ("",), Grouped(116, PATCH_IMAGES, SEQUENCES), has_strips=True),
        Part("tough patches", ("",), Grouped(116, TOUGH_IMAGES, SEQUENCES), is_needed=False, has_strips=True),
    ),
    (
        Use("hbench --data PATH --benchmarks BENCHMARKS --descriptor SPEC", ("patches",)),
        Use("hpatches --data PATH --tasks TASKS --descriptor SPEC", ("patches", "tough patches")),
    ),
    (
        "wget https://huggingface.co/datasets/vbalnt/hpatches/resolve/main/hpatches-release.zip",
        "unzip hpatches-release.zip",
    ),
    (
        "names of sequences: splits.json of hpatches/hpatches-benchmark",
        "size: README.md of hpatches/hpatches-dataset; address: download.sh of hpatches/hpatches-benchmark",
        "images: CVPR 2017 protocol (Balntas et al.)",
    ),
)

LEVELS = ("easy", "hard")
LISTS = ("easy_pos", "hard_pos", "diffseq_neg", "sameseq_neg")
KNOWN_2016 = {
    "classification/train_diffseq_easy.benchmark": KnownFile(
        "", 45, "c8f88b6730502d8d799e07722aa7c4eed99971eb6f0c9d8b7143ebba087f442b"
    ),
    "classification/train_example.benchmark": KnownFile(
        "", 48, "c73e4495fc034df8955b86e0701f1551223c5fd21f84342e0e73f1b186aa902b"
    ),
    "classification/train_example.labels": KnownFile(
        "", 5_999, "2c85f4e2522ebf527b0470fbd596b216baa1397832cf6d32a2c6b15222e8e46c"
    ),
    "classification/train_example_neg.pairs": KnownFile(
        "", 74_791, "a5a05bad36d3262d971a581ba5ebd01d39cb620158a7de1ee48545b89061d481"
    ),
    "classification/train_example_pos.pairs": KnownFile(
        "", 37_462, "fa3a96cdd1d7ca65e048e43393430e1ac2ffcc06a8d953fb0b470a1ab05ddade"
    ),
    "matching/train_easy_illum.benchmark": KnownFile(
        "", 4_895, "064044c66e796ee6a3f99656cfbab7ebf61363d23a5e9c353c3f40d5dc93eac0"
    ),
    "matching/train_example.benchmark": KnownFile(
        "", 745, "810674166a18257e917158a0aa3141586597e41b95909045bd4ada1a1c3de386"
    ),
    "matching/train_example.labels": KnownFile(
        "", 266_885, "04bbb6cc6073c56d4d6f7b04a7839413b9c3b247dc61d2c20fe65eeb5a8ce89f"
    ),
    "retrieval/train_easy_5s_00.benchmark": KnownFile(
        "", 8_693, "eb32b2b55a0518e6dba0a6db5e05a6d495122bd4210e1953c2ab7e0edf528cc8"
    ),
    "retrieval/train_easy_5s_00.labels": KnownFile(
        "", 47_923, "488a10a82ace84dba5257452db2b7765936d447a8bb9e6e45069e372a3644b89"
    ),
    "retrieval/train_example.benchmark": KnownFile(
        "", 1_444, "abbd10f259a9a5a187d93decb0ba90c5276bf1a07b3c06be201d82f9fc906869"
    ),
    "retrieval/train_example.labels": KnownFile(
        "", 6_229, "bd781ae40724047ee058e11fc20444ef9c942cfdf23e63391860356b14a7d37c"
    ),
}


def _tasks_2016(folder: str, names: tuple[str, ...], role: str = "", is_needed: bool = True) -> Part:
    known = [KNOWN_2016.get(f"{folder}/{name}", KnownFile("")) for name in names]
    files = tuple(KnownFile(name, one.size_bytes, one.sha256) for name, one in zip(names, known, strict=True))
    return Part(role or folder, (folder,), Exactly(files), is_needed)


HBENCH_TASKS = PublishedSet(
    "task files of HPatches 2016 (.benchmark, .pairs, .labels), training part",
    NOT_STATED,
    NOT_STATED,
    ("https://github.com/featw/hbench (the .benchmark files and the published tool)",),
    """\
├── classification/
│   ├── train_diffseq_easy.benchmark …  names of .pairs files, one per line; also diffseq_hard, sameseq_…
│   └── train_easy_pos.pairs …     SEQ.IM.PATCH,SEQ.IM.PATCH,LABEL lines; also hard_pos, diffseq_neg, sameseq_neg
├── matching/
│   └── train_easy_illum.benchmark …  pairs of images; also easy_viewpoint, hard_…
└── retrieval/
    └── train_easy_5s_00.benchmark …  a pool and its queries; 5s_00 … 5s_04, 40s_00, 40s_01, easy and hard""",
    (
        _tasks_2016(
            "classification",
            (
                *(f"train_{kind}seq_{level}.benchmark" for kind in ("diff", "same") for level in LEVELS),
                *(f"train_{name}.pairs" for name in LISTS),
            ),
        ),
        _tasks_2016(
            "matching",
            tuple(f"train_{level}_{kind}.benchmark" for level in LEVELS for kind in ("illum", "viewpoint")),
        ),
        _tasks_2016(
            "retrieval",
            tuple(
                f"train_{level}_{pool}.benchmark"
                for level in LEVELS
                for pool in (*(f"5s_{seed:02d}" for seed in range(5)), "40s_00", "40s_01")
            ),
        ),
        *(
            _tasks_2016(
                folder,
                tuple(name.partition("/")[2] for name in KNOWN_2016 if name.startswith(folder) and which in name),
                words,
                is_needed=False,
            )
            for folder in ("classification", "matching", "retrieval")
            for which, words in (("example", f"{folder} example"), ("5s_00.labels", f"{folder} labels"))
            if folder == "retrieval" or which == "example"
        ),
    ),
    tuple(
        Use(f"hbench-{task} --benchmarks PATH --data HPATCHES --descriptor SPEC", (task,))
        for task in ("classification", "matching", "retrieval")
    ),
    (
        "git clone https://github.com/hpatches/hpatches-benchmark   (hbench goes on in this repository)",
        "git -C hpatches-benchmark checkout 13f8f0c20cf26645067e66d4b28d7e78dc08e383   (2016: folder benchmarks/)",
    ),
    (
        "names of files: history of hpatches/hpatches-benchmark, folder benchmarks/",
        "sizes and digests: the files themselves, of twelve of them",
    ),
)

SPLITS = ("a", "b", "c", "illum", "view", "full")
RETRIEVAL_BYTES = {  # queries, distractors
    "a": (140_906, 285_034),
    "b": (135_610, 276_306),
    "c": (137_354, 279_567),
    "illum": (138_058, 280_249),
    "view": (139_925, 280_815),
    "full": (138_943, 278_770),
}
KNOWN_2017 = {
    "retr_queries_split-a.csv": "9a1cc25469f672da4a642b02360dc563a2c8af8080ec9841376c6843e8f7ea3a",
    "retr_distractors_split-a.csv": "e4d0a3154d170b8d54aec05c0296cc289b042a8addf5b36351cf2c56602fbc85",
}
RETRIEVAL_FILES = tuple(
    KnownFile(name, size_bytes, KNOWN_2017.get(name, ""))
    for split, sizes in RETRIEVAL_BYTES.items()
    for name, size_bytes in zip(
        (f"retr_queries_split-{split}.csv", f"retr_distractors_split-{split}.csv"), sizes, strict=True
    )
)

HPATCHES_TASKS = PublishedSet(
    "task files of HPatches 2017: splits a, b, c, illum, view, full",
    NOT_STATED,
    NOT_STATED,
    ("https://github.com/hpatches/hpatches-benchmark (folder tasks/, and the published tool)",),
    """\
├── splits/splits.json            sequences of each split (also without the folder splits/)
├── verif_pos_split-a.csv …       pairs of the same point: s1,t1,idx1,s2,t2,idx2
├── verif_neg_intra_split-a.csv … others of the same sequence
├── verif_neg_inter_split-a.csv … others of another sequence
├── retr_queries_split-a.csv …    patches of ref that are searched for: s,idx
└── retr_distractors_split-a.csv … what they are hidden among: s,idx""",
    (
        Part(
            "splits",
            ("splits", ""),
            Exactly(
                (
                    KnownFile(
                        "splits.json",
                        7_613,
                        "75d4272eb8872f5444d34c00b4111f317432b5fe7550e74749cb1354d972fa83",
                        "splits",
                    ),
                )
            ),
        ),
        Part(
            "verification",
            ("",),
            Exactly(
                tuple(
                    KnownFile(f"verif_{kind}_split-{split}.csv")
                    for split in SPLITS
                    for kind in ("pos", "neg_intra", "neg_inter")
                )
            ),
        ),
        Part("retrieval", ("",), Exactly(RETRIEVAL_FILES)),
    ),
    tuple(
        Use(f"hpatches-{task} --tasks PATH --data HPATCHES --descriptor SPEC", needs)
        for task, needs in {
            "verification": ("splits", "verification"),
            "matching": ("splits",),
            "retrieval": ("splits", "retrieval"),
        }.items()
    ),
    ("git clone https://github.com/hpatches/hpatches-benchmark   (folder hpatches-benchmark/tasks)",),
    (
        "names of files: docs/tasks.md and docs/splits.md of hpatches/hpatches-benchmark",
        "sizes: the stored files of hpatches/hpatches-benchmark at 6ad22fc; digests: the files themselves",
    ),
)

BITMAP_BYTES = 1_049_654  # 1,024 x 1,024 px: 16 x 16 patches of 64 px


def _phototour(scene: str, what: str, patches: int, info_bytes: int, pairs_bytes: int, md5: str) -> PublishedSet:
    bitmaps = -(-patches // 256)
    return PublishedSet(
        f"PhotoTour (Brown) patches of {what}: {patches:,} patches, 100,000 pairs",
        f"{(bitmaps * BITMAP_BYTES + info_bytes + pairs_bytes) / 1e9:.1f} GB",
        NOT_STATED,
        ("http://matthewalunbrown.com/patchdata/patchdata.html",),
        f"""\
├── patches0000.bmp …             {bitmaps:,} images of 16 x 16 patches of 64 px, left to right, top to bottom
├── info.txt                      one line per patch: its 3D point first
└── m50_100000_100000_0.txt       the pairs: patch, 3D point, …, patch, 3D point, …""",
        (
            Part(
                "patches", ("",), Numbered("patches", 4, bitmaps, suffix=".bmp", size_bytes=BITMAP_BYTES, is_flat=True)
            ),
            Part("points", ("",), Exactly((KnownFile("info.txt", info_bytes),))),
            Part("pairs", ("",), Exactly((KnownFile("m50_100000_100000_0.txt", pairs_bytes),))),
        ),
        (
            Use("patch-pairs --pairs PATH/m50_100000_100000_0.txt --data PATH --descriptor SPEC", ("patches", "pairs")),
            Use("patch-pairs --pairs PATH/m50_100000_100000_0.txt --features VECTORS", ("pairs",)),
        ),
        (
            f"wget http://icvl.ee.ic.ac.uk/vbalnt/{scene}.zip",
            f"md5sum {scene}.zip   ({md5})",
            f"unzip {scene}.zip -d {scene}",
        ),
        (
            "patches, address and md5: torchvision.datasets.PhotoTour; layout: the site",
            "files and sizes: the listing in cbalint13/opencv-dlco, workspace/dataset/README.md",
        ),
    )


LIBERTY = _phototour(
    "liberty", "the Statue of Liberty", 450_092, 4_192_420, 3_211_612, "fdd9152f138ea5ef2091746689176414"
)
NOTREDAME = _phototour("notredame", "Notre Dame", 468_159, 4_324_480, 3_203_658, "509eda8535847b8c0a90bbb210c83484")
YOSEMITE = _phototour("yosemite", "Half Dome", 633_587, 6_045_558, 3_271_276, "533b2e8eb7ede31be40abc317b2fd4f0")
