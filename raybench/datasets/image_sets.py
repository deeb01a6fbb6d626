"""Published sets of images: DISC2021, Copydays, Revisited Oxford and Paris with R1M; and TSS, pairs with true flow."""

from __future__ import annotations

from raybench.datasets.parts import (
    NOT_STATED,
    Counted,
    Exactly,
    Grouped,
    KnownFile,
    Numbered,
    Part,
    PublishedSet,
    Told,
    Use,
)

DISC2021 = PublishedSet(
    "DISC2021 (ISC 2021): 1,000,000 references, 50,000 queries, 1,000,000 training images",
    "about 350 GB",
    "Meta's own, to be agreed to before the download (lists and truth of the repository isc2021: CC BY-NC 4.0)",
    ("https://ai.meta.com/datasets/disc21-dataset/ (images and truth, about 350 GB)",),
    """\
├── val_ref/R000000.jpg …      references (--references)
├── val_query/Q00000.jpg …     queries (--queries)
├── training/T000000.jpg …     for codecs and score norms that train (--training)
└── val_groundtruth_matches.csv    query_id,reference_id lines (--ground-truth)""",
    (
        Part("references", ("val_ref", "references"), Numbered("R", 6, 1_000_000)),
        Part("queries", ("val_query", "queries"), Numbered("Q", 5, 50_000, starts=(0, 50_000))),
        Part(
            "truth",
            ("",),
            Exactly(
                (
                    KnownFile("val_groundtruth_matches.csv", reader="true pairs"),
                    KnownFile(
                        "public_ground_truth.csv",
                        234_959,
                        "ba8d6188f9b7d36d7f1a13ad83410dc3405b97cec7e25931a8a8f4f5e40ffc91",
                        "true pairs",
                    ),
                ),
                is_choice=True,
            ),
        ),
        Part("training", ("training", "train"), Numbered("T", 6, 1_000_000), is_needed=False),
    ),
    (
        Use("disc2021 --data PATH --descriptor SPEC --codecs Flat", ("references", "queries", "truth")),
        Use(
            "disc2021 --data PATH --descriptor SPEC",
            ("references", "queries", "truth", "training"),
            "with codecs and score norms that train",
        ),
        Use("disc2021 --data PATH --features VECTORS", ("truth",)),
        Use("disc2021 --data PATH --results PREDICTIONS", ("truth",)),
    ),
    (
        "agree to the licence at https://ai.meta.com/datasets/disc21-downloads/ and fetch the archives listed there",
        "unpack references into val_ref/, queries into val_query/, training images into training/",
        "wget https://raw.githubusercontent.com/facebookresearch/isc2021/main/list_files/public_ground_truth.csv",
    ),
    (
        "counts: arXiv 2106.09672; names: the lists of facebookresearch/isc2021, folder list_files/",
        "folders: docs/Evaluation.md and the datasets of facebookresearch/sscd-copy-detection",
        "size and digest of public_ground_truth.csv: the file itself",
        "licence: README.md of facebookresearch/isc2021, and issue 4 of "
        "line/Meta-AI-Video-Similarity-Challenge-3rd-Place-Solution",
    ),
)

QUALITIES = (3, 5, 8, 10, 15, 20, 30, 50, 75)
CROPS = (10, 15, 20, 30, 40, 50, 60, 70, 80)

COPYDAYS = PublishedSet(
    "Copydays: 157 originals, 229 strong copies, 9 JPEG qualities and 9 crops of each original",
    NOT_STATED,
    "INRIA holds the copyright; provided as is (see the site)",
    (
        "https://lear.inrialpes.fr/people/jegou/data.php.html (section Copydays)",
        "https://dl.fbaipublicfiles.com/vissl/datasets/copydays_original.tar.gz, also copydays_strong.tar.gz",
    ),
    """\
├── original/200000.jpg …      157 images
├── strong/200001.jpg …        229 strong copies; the first four letters name the original
├── jpegqual/3/200000.jpg …    also 5, 8, 10, 15, 20, 30, 50, 75
└── crops/10/200000.jpg …      also 15, 20, 30, 40, 50, 60, 70, 80""",
    (
        Part("original", ("original",), Counted(157)),
        Part("strong", ("strong",), Counted(229)),
        *(Part("jpegqual", (f"jpegqual/{quality}",), Counted(157)) for quality in QUALITIES),
        *(Part("crops", (f"crops/{percent}",), Counted(157)) for percent in CROPS),
    ),
    (
        Use("copydays --data PATH --distractors DISTRACTORS --descriptor SPEC", ("original", "strong"), "strong_mAP"),
        Use(
            "copydays --data PATH --distractors DISTRACTORS --descriptor SPEC",
            ("original", "strong", "jpegqual", "crops"),
            "overall_uAP as published",
        ),
    ),
    (
        "wget https://dl.fbaipublicfiles.com/vissl/datasets/copydays_original.tar.gz",
        "wget https://dl.fbaipublicfiles.com/vissl/datasets/copydays_strong.tar.gz",
        "wget http://pascal.inrialpes.fr/data/holidays/copydays_jpeg.tar.gz",
        "wget http://pascal.inrialpes.fr/data/holidays/copydays_crop.tar.gz",
        "unpack each and name its folder as in the tree; the set has no distractors: give any other images "
        "(published figures: 10,000 of YFCC100M)",
    ),
    (
        "counts: the protocol of SSCD's copydays_eval (157, 229, 18 x 157); distractors: docs/Evaluation.md of "
        "facebookresearch/sscd-copy-detection",
        "addresses: loaders of the four archives in public repositories",
        "licence: the site",
    ),
)

TSS_TRUTH = ("flow1.flo", "flow2.flo", "mask1.png", "mask2.png", "pair.txt", "flip_gt.txt")
TSS_PAIRS = {"FG3DCar": 195, "JODS": 81, "PASCAL": 124}

TSS = PublishedSet(
    "TSS: 400 image pairs with true flow and foreground (FG3DCar 195, JODS 81, PASCAL 124)",
    "1.2 GB",
    "research use only (Readme.txt of the evaluation kit)",
    (
        "https://taniai.space/projects/cvpr16_dccs/ (400 pairs, 1.2 GB)",
        "https://github.com/t-taniai/TSS_CVPR2016_EvaluationKit (the published tools)",
    ),
    """\
└── FG3DCar/                   a group; also JODS, PASCAL
    └── PAIR/
        ├── image1.png, image2.png
        ├── flow1.flo, flow2.flo   true flow 1→2 and 2→1
        ├── mask1.png, mask2.png   true foreground
        ├── pair.txt
        └── flip_gt.txt            1 if the pair is mirrored, else 0""",
    tuple(
        Part(role, (group,), Grouped(count, files))
        for group, count in TSS_PAIRS.items()
        for role, files in (("truth", TSS_TRUTH), ("images", ("image1.png", "image2.png")))
    ),
    (
        Use("tss --data PATH --descriptor dis", ("truth", "images")),
        Use("tss --data PATH --results RESULTS", ("truth",)),
    ),
    (
        "fetch TSS_CVPR2016.zip from https://taniai.space/projects/cvpr16_dccs/",
        "unzip TSS_CVPR2016.zip   (the folder that holds FG3DCar, JODS and PASCAL is the set's)",
    ),
    (
        "pairs: the site, and Taniai, Sinha, Sato, CVPR 2016; files and licence: Readme.txt of the evaluation kit",
        "pairs of each group: the plan of this project; they add up to the published 400",
    ),
)


def _revisited(name: str, city: str, references: int, licence: str, archives: tuple[str, ...]) -> PublishedSet:
    truth = f"gnd_{name}.json"
    folder = "oxbuildings" if name == "roxford5k" else "parisbuildings"
    return PublishedSet(
        f"Revisited {city}: {references:,} references, 70 queries",
        NOT_STATED,
        licence,
        (
            "https://github.com/filipradenovic/revisitop (truth and the published tool)",
            f"https://www.robots.ox.ac.uk/~vgg/data/{folder}/ (images)",
        ),
        f"""\
└── {name}/
    ├── {truth}     truth: imlist, qimlist, gnd (made from gnd_{name}.pkl)
    └── jpg/NAME.jpg …          references and queries""",
        (
            Part("truth", (name,), Exactly((KnownFile(truth, reader="revisited truth", origin=f"gnd_{name}.pkl"),))),
            Part("images", (f"{name}/jpg",), Told(f"{name}/{truth}", "revisited", references + 70)),
        ),
        (
            Use(f"revisited --data PATH --set {name} --descriptor SPEC", ("truth", "images")),
            Use(f"revisited --features VECTORS --set {name}", ("truth",), f"with {name}/{truth} beside the vectors"),
        ),
        (
            *(
                f"wget https://www.robots.ox.ac.uk/~vgg/data/{folder}/{archive}   (into {name}/jpg, without folders)"
                for archive in archives
            ),
            f"wget http://cmp.felk.cvut.cz/revisitop/data/datasets/{name}/gnd_{name}.pkl   (into {name})",
            f"raybench check revisited --data PATH --set {name} --descriptor thumbnail   (shows the command that makes "
            f"{truth} of it)",
        ),
        (
            "counts: Radenović et al., CVPR 2018, and the truth of both sets",
            "addresses: python/download.py of filipradenovic/revisitop; licence: the site of the images",
        ),
    )


ROXFORD5K = _revisited(
    "roxford5k",
    "Oxford",
    4_993,
    "images of Flickr: its terms of use, and VGG's terms of access",
    ("oxbuild_images.tgz",),
)
RPARIS6K = _revisited("rparis6k", "Paris", 6_322, NOT_STATED, ("paris_1.tgz", "paris_2.tgz"))

REVISITOP1M = PublishedSet(
    "R1M, distractors of Revisited Oxford and Paris: 1,001,001 images",
    NOT_STATED,
    NOT_STATED,
    ("https://github.com/filipradenovic/revisitop (the published tool, which fetches it)",),
    """\
└── revisitop1m/
    ├── revisitop1m.txt         one image per line: FOLDER/NAME.jpg
    └── jpg/FOLDER/NAME.jpg …""",
    (
        Part("list", ("revisitop1m",), Exactly((KnownFile("revisitop1m.txt", reader="names"),))),
        Part("images", ("revisitop1m/jpg",), Told("revisitop1m/revisitop1m.txt", "lines", 1_001_001)),
    ),
    (Use("revisited --data PATH --descriptor SPEC", ("list", "images"), "further rows <set>+r1m"),),
    (
        "wget http://ptak.felk.cvut.cz/revisitop/revisitop1m/revisitop1m.txt",
        "wget http://ptak.felk.cvut.cz/revisitop/revisitop1m/jpg/revisitop1m.{1..100}.tar.gz   (unpack below jpg/)",
    ),
    (
        "addresses and tree: python/download.py of filipradenovic/revisitop",
        "count: Radenović et al., CVPR 2018",
    ),
)
