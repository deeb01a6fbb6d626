import numpy as np
import pytest

from raybench.descriptors.model_preprocessing import ModelPreprocess


def columns(width, height=4):
    """A picture whose grey level is the number of the column, from 1."""
    return np.broadcast_to(np.arange(1, width + 1, dtype=np.uint8)[:, np.newaxis], (height, width, 3))


@pytest.mark.parametrize(
    ("cut_from", "width", "crop", "expected"),
    [
        ("before", 7, 4, [2, 3, 4, 5]),  # 1.5 to spare on either side: one before, two behind
        ("even", 7, 4, [3, 4, 5, 6]),  # torchvision rounds 1.5 to the even number
        ("before", 5, 4, [1, 2, 3, 4]),
        ("even", 5, 4, [1, 2, 3, 4]),  # 0.5 to 0
        ("before", 3, 6, [0, 0, 1, 2, 3, 0]),  # the larger border before
        ("even", 3, 6, [0, 1, 2, 3, 0, 0]),  # the larger border behind
        ("even", 6, 6, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_middle_is_cut_where_each_library_cuts_it(cut_from, width, crop, expected):
    steps = ModelPreprocess(crop=(4, crop), cut_from=cut_from)
    found = steps.resized(columns(width))
    assert found[0, :, 0].tolist() == expected and found.shape == (*steps.shape(width, 4), 3)


@pytest.mark.parametrize(("width", "height"), [(90, 60), (60, 90), (61, 61), (500, 3)])
@pytest.mark.parametrize("steps", [ModelPreprocess((20,)), ModelPreprocess((20, 24)), ModelPreprocess()])
def test_the_shape_is_known_before_a_picture_is_prepared(steps, width, height):
    image = np.zeros((height, width, 3), np.uint8)
    assert steps.resized(image).shape[:2] == steps.shape(width, height)


def test_steps_differ_in_what_a_digest_covers():
    every = [
        ModelPreprocess(),
        ModelPreprocess((20,)),
        ModelPreprocess((20, 20)),
        ModelPreprocess((20,), (20, 20)),
        ModelPreprocess((20,), (20, 20), cut_from="even"),
        ModelPreprocess((20,), interpolation="bicubic"),
        ModelPreprocess((20,), mean=(0.5, 0.5, 0.5)),
        ModelPreprocess((20,), std=(0.5, 0.5, 0.5)),
        ModelPreprocess((20,), divisor=127.5),
    ]
    assert len({steps.facts for steps in every}) == len(every) == len({steps.words for steps in every}) + 1  # cut_from
