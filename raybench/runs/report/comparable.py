"""Whether a published figure may be set beside a run's own: `yes: …` or `no, because …`.

Nothing is comparable by default: protocol, data, candidates, codec and flavour of AP must all be known and be those of
the run. `facts` is what a benchmark says of its run (see `Outcome`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Row = dict[str, str]  # a line of reference_rows.csv
Facts = dict[str, Any]

HPATCHES_MEANS = {
    "hpatches-verification": "ap_imbalanced, mean over e, h, t and intra, inter",
    "hpatches-matching": "map, mean over e, h, t",
}
SPLIT_SEQUENCES = {"a": 40, "b": 40, "c": 40, "illum": 57, "view": 59, "full": 116}  # that are tested on, as published
DISC_VALIDATION = (50_000, 1_000_000)  # queries, references
TSS_PAIRS = {"FG3DCar": 195, "JODS": 81, "PASCAL": 124}
COPYDAYS_IMAGES, COPYDAYS_DISTRACTORS = 3_212, 10_000
REVISITED = {"roxford5k": (70, 4_993), "rparis6k": (70, 6_322)}  # queries, references


def hpatches(benchmark: str, row: Row, facts: Facts) -> str:
    """From protocol, split and its sequences, pool and flavour of AP.

    >>> row = {"split_or_set": "full", "metric": "mAP_percent"}
    >>> hpatches("hpatches-matching", row, {"splits": {"a": 40}})
    'no, because it is for split full; this run has a'
    >>> hpatches("hpatches-matching", row, {"splits": {"full": 8}})
    'no, because it is for the 116 sequences of split full; this run has 8'
    """
    stated, splits = row["split_or_set"], dict(facts.get("splits", {}))
    if benchmark.startswith("hbench"):
        return "no, because it follows the 2017 protocol (other lists, trapezoid AP); this run is of 2016 (TREC AP)"
    if stated.startswith("split not stated"):
        return "no, because its split is not stated"
    if "assumed" in stated:
        return "no, because its split is only assumed to be full"
    split = stated.split()[0]
    if split not in splits:
        return f"no, because it is for split {split}; this run has {', '.join(sorted(splits)) or 'none'}"
    if splits[split] != SPLIT_SEQUENCES.get(split):
        published = SPLIT_SEQUENCES.get(split, "unknown")
        return f"no, because it is for the {published} sequences of split {split}; this run has {splits[split]}"
    if benchmark == "hpatches-retrieval":
        return "no, because its pool size is not stated"
    if row["metric"] != "mAP_percent":
        return f"no, because {row['metric']} is another mean than those of this table"
    return f"yes: {HPATCHES_MEANS[benchmark]}, split {split}"


def disc2021(_: str, row: Row, facts: Facts) -> str:
    """From the number of images, candidates, codec and score normalisation.

    >>> row = {"benchmark": "disc2021", "split_or_set": "val", "metric": "uAP_percent"}
    >>> disc2021("disc2021", row, {"queries": 60, "references": 160})
    'no, because it is for 50,000 queries and 1,000,000 references; this run has 60 and 160'
    """
    if "phase-2" in row["split_or_set"]:
        return "no, because it is for the hidden queries of the challenge's second phase"
    if row["benchmark"] == "disc2021":
        sizes = DISC_VALIDATION
    elif "subset_1" in row["split_or_set"]:
        sizes = (4_991, 4_991)
    else:
        sizes = (25_000 if "25k" in row["split_or_set"] else 50_000, 1_000_000)
    found = (facts["queries"], facts["references"])
    if found != sizes:
        return (
            f"no, because it is for {sizes[0]:,} queries and {sizes[1]:,} references; "
            f"this run has {found[0]:,} and {found[1]:,}"
        )
    if row["benchmark"] == "isc2021":
        return (
            "no, because the challenge's tool pools global candidates of its own number; see tables/disc_variants.csv"
        )
    variant = re.search(r"\[codec=(.*); score_norm=(.*)\]$", row["metric"])
    if variant is None:
        return "no, because its codec and candidates are not stated with the figure"
    if facts["candidates"] != "knn" or facts["k"] != 10:
        return f"no, because it is for 10 candidates a query; this table has {facts['candidates']}, k = {facts['k']}"
    if variant.groups() not in facts["variants"]:
        return f"no, because this run has no row of codec {variant[1]} with score_norm {variant[2]}"
    return f"yes: codec {variant[1]}, score_norm {variant[2]}, 10 candidates a query, if the images are DISC2021's"


def copydays(_: str, row: Row, facts: Facts) -> str:
    """From the number of images and distractors, and the codec.

    >>> row = {"split_or_set": "strong", "metric": "strong_mAP_percent"}
    >>> copydays("copydays", row, {"queries": 420, "distractors": 160})
    'no, because it is for 3,212 images and 10,000 distractors; this run has 420 and 160'
    """
    if (facts["queries"], facts["distractors"]) != (COPYDAYS_IMAGES, COPYDAYS_DISTRACTORS):
        return (
            f"no, because it is for {COPYDAYS_IMAGES:,} images and {COPYDAYS_DISTRACTORS:,} distractors; "
            f"this run has {facts['queries']:,} and {facts['distractors']:,}"
        )
    codec = re.search(r"\[codec=(.*)\]$", row["metric"])
    if codec is None:
        return "no, because its codec is not stated with the figure"
    if codec[1] not in facts["codecs"]:
        return f"no, because this run has no row of codec {codec[1]}"
    return f"yes: codec {codec[1]}, if the distractors are as hard (its own are drawn from YFCC100M)"


def revisited(_: str, row: Row, facts: Facts) -> str:
    """From the set, and how many queries and references it has.

    >>> row = {"split_or_set": "roxford5k, hard", "metric": "map_percent"}
    >>> revisited("revisited", row, {"sets": {"roxford5k": (20, 300)}})
    'no, because it is for the 70 queries and 4,993 references of roxford5k; this run has 20 and 300'
    """
    name, _, setup = row["split_or_set"].partition(", ")
    found = facts["sets"].get(name)
    if found is None:
        return f"no, because it is for {name}; this run has {', '.join(sorted(facts['sets']))}"
    queries, references = REVISITED[name]
    if found != (queries, references):
        return (
            f"no, because it is for the {queries:,} queries and {references:,} references of {name}; "
            f"this run has {found[0]:,} and {found[1]:,}"
        )
    return f"yes: {row['metric'].removesuffix('_percent')} of {name}, {setup}"


def tss(_: str, row: Row, facts: Facts) -> str:
    """From group and number of pairs.

    >>> tss("tss", {"split_or_set": "JODS", "metric": "PCK@0.05_percent"}, {"pairs": {"JODS": 4}})
    'no, because it is for all 81 pairs of JODS; this run has 4'
    """
    group = row["split_or_set"]
    if group not in (*TSS_PAIRS, "All"):
        return "no, because it is for sample pairs of the kit only"
    wanted = sum(TSS_PAIRS.values()) if group == "All" else TSS_PAIRS[group]
    found = sum(facts["pairs"].values()) if group == "All" else facts["pairs"].get(group, 0)
    if found != wanted:
        of = "all groups" if group == "All" else group
        return f"no, because it is for all {wanted} pairs of {of}; this run has {found}"
    if "flipping" in row["note"]:
        return "no, because its tool turned mirrored pairs round before matching"
    return f"yes: T5 of {group}, if its tool counts both directions and mirrored pairs as the kit does"


def comparable(benchmark: str, row: Row, facts: Facts) -> str:
    """The benchmark's verdict, unless this run's descriptors have another arithmetic than published ones.

    >>> row = {"split_or_set": "a", "metric": "mAP_percent"}
    >>> comparable("hpatches-matching", row, {"splits": {"a": 40}, "precision": "TF32"})
    'no, because the descriptors of this run were computed by TF32, not in exact float32'
    """
    verdict = VERDICTS[benchmark](benchmark, row, facts)
    if verdict.startswith("yes") and facts.get("precision"):
        return f"no, because the descriptors of this run were computed by {facts['precision']}, not in exact float32"
    return verdict


VERDICTS: dict[str, Callable[[str, Row, Facts], str]] = {
    "hbench-classification": hpatches,
    "hbench-matching": hpatches,
    "hbench-retrieval": hpatches,
    "hpatches-verification": hpatches,
    "hpatches-matching": hpatches,
    "hpatches-retrieval": hpatches,
    "disc2021": disc2021,
    "copydays": copydays,
    "revisited": revisited,
    "tss": tss,
}
