"""Copydays' blocks and truth from names."""

import numpy as np

from raybench.errors import ProblemList
from raybench.formats.copydays import BLOCKS, CopydaysLayout
from raybench.formats.names import Names


def layout_of(*paths):
    problems = ProblemList()
    return CopydaysLayout.of(Names.of(paths), "copydays.npz", problems), problems.lines


def test_images_are_paired_by_position_and_strong_ones_by_their_first_characters():
    layout, problems = layout_of(
        "original/200100.jpg",
        "original/200000.jpg",
        "crops/10/x2.jpg",
        "crops/10/x1.jpg",
        "strong/200101.jpg",
        "strong/200001.jpg",
        "strong/200002.jpg",
    )
    assert not problems
    assert list(layout.blocks) == ["original", "strong", "crops/10"]
    # name order: crops/10/x1, x2, original/200000, 200100, strong/200001, 200002, 200101
    pairs = sorted(zip(layout.true_query.tolist(), layout.true_original.tolist(), strict=True))
    assert pairs == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0), (5, 0), (6, 1)]
    assert layout.originals.tolist() == [2, 3]


def test_originals_that_begin_alike_are_all_true():
    layout, _ = layout_of("original/2000a.jpg", "original/2000b.jpg", "strong/2000c.jpg")
    strong = layout.blocks["strong"]
    assert layout.true_original[np.isin(layout.true_query, strong)].tolist() == [0, 1]


def test_blocks_stand_in_the_published_order_and_missing_ones_are_known():
    layout, _ = layout_of("jpegqual/3/a.jpg", "jpegqual/20/a.jpg", "original/a.jpg", "strong/a.jpg")
    assert list(layout.blocks) == ["original", "strong", "jpegqual/3", "jpegqual/20"]
    assert len(layout.missing) == len(BLOCKS) - 4


def test_every_problem_of_a_layout_is_said():
    layout, problems = layout_of(
        "original/200000.jpg",
        "original/200100.jpg",
        "crops/10/a.jpg",
        "jpegqual/3/a.jpg",
        "jpegqual/3/b.jpg",
        "jpegqual/3/c.jpg",
        "strong/999900.jpg",
        "jpegqal/5/a.jpg",
        "readme.jpg",
    )
    assert layout is None
    assert problems == [
        "copydays.npz: unknown block ''; expected original, strong, jpegqual/QUALITY or crops/PERCENT",
        "copydays.npz: unknown block 'jpegqal/5' (did you mean jpegqual/5?)",
        "copydays.npz: block jpegqual/3 has 3 images, original has 2; they must be as many, since images are paired by "
        "position in name order",
        "copydays.npz: block crops/10 has 1 images, original has 2; they must be as many, since images are paired by "
        "position in name order",
        "copydays.npz: 1 images in strong/ have no original with the same first 4 characters (999900.jpg)",
    ]


def test_a_layout_without_originals_is_refused():
    layout, problems = layout_of("strong/a.jpg", "crops/10/a.jpg")
    assert layout is None
    assert problems == ["copydays.npz: no image in original/, which every query is compared with"]
