"""The page of attacks names tests that are there."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
NAMED = re.findall(r"\| ([\w/]+\.py)(?:::(\w+))? \|$", (TESTS / "README.md").read_text(), re.MULTILINE)


def test_the_page_names_many_attacks():
    assert len(NAMED) > 60


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_each_attack_on_the_page_is_a_test(file, test):
    assert f"def {test}(" in (TESTS / file).read_text() if test else (TESTS / file).exists()
