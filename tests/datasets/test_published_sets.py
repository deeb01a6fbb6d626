"""The published sets as data: what they say is what the benchmarks read, and what the real files are."""

from pathlib import Path

import pytest

from raybench.benchmarks import BENCHMARKS, FAMILIES
from raybench.benchmarks.images.disc_sets import DISC_FOLDERS, TRUTHS
from raybench.datasets import image_sets
from raybench.datasets.checking import check_set
from raybench.datasets.parts import Exactly
from raybench.datasets.patch_sets import SEQUENCES
from raybench.datasets.published import PUBLISHED
from raybench.formats import copydays
from raybench.runs.jobs import options_for

REAL = Path("/work/shared/data")


def test_hpatches_has_the_published_sequences():
    assert len(set(SEQUENCES)) == 116
    assert [sum(name.startswith(kind) for name in SEQUENCES) for kind in ("i_", "v_")] == [57, 59]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_set_names_its_licence_links_steps_and_where_its_figures_are_from(name):
    one = PUBLISHED[name]
    assert one.licence and one.size and one.tree and one.steps and one.figures_from
    assert all(link.startswith("http") for link in one.links) and one.links
    assert set(one.benchmarks) <= {*BENCHMARKS, *FAMILIES}
    roles = {part.role for part in one.parts}
    assert all(roles >= set(use.needs) and use.needs for use in one.uses)
    assert all("PATH" in use.command or use.words for use in one.uses)


def test_folders_are_those_that_the_benchmarks_read():
    disc = {part.role: part for part in PUBLISHED["disc2021"].parts}
    assert {role: disc[role].folders for role in DISC_FOLDERS} == DISC_FOLDERS
    assert isinstance(disc["truth"].names, Exactly)
    assert tuple(one.name for one in disc["truth"].names.files) == TRUTHS
    assert tuple(part.folders[0] for part in PUBLISHED["copydays"].parts) == copydays.BLOCKS
    assert sum(image_sets.TSS_PAIRS.values()) == 400


@pytest.mark.parametrize(
    ("name", "folder", "known"),
    [("hbench-tasks", "hbench", 12), ("hpatches-tasks", "hpatches_tasks", 3), ("disc2021", "isc2021", 1)],
)
def test_the_real_files_have_the_known_sizes_and_digests(name, folder, known):
    if not (REAL / folder).is_dir():
        pytest.skip(f"{REAL / folder} is not on this machine; the published files are not part of the project")
    checked = check_set(name, PUBLISHED[name], str(REAL / folder))
    assert not [line for line in checked.problems if "content" in line or "bytes" in line or "broken" in line]
    rules = [part.names for part in PUBLISHED[name].parts if isinstance(part.names, Exactly)]
    assert sum(bool(one.sha256) for rule in rules for one in rule.files) == known
    assert sum(one.seen.found for one in checked.parts if isinstance(one.part.names, Exactly)) >= known


def test_the_real_pairs_of_tss_are_good_but_for_their_count():
    if not (REAL / "tss_kit").is_dir():
        pytest.skip(f"{REAL}/tss_kit is not on this machine; it is for research use only")
    checked = check_set("tss", PUBLISHED["tss"], str(REAL / "tss_kit/Dataset"), "all")
    assert len(checked.problems) == 6
    assert all("folders missing" in line or "in PASCAL/" in line for line in checked.problems)


@pytest.mark.parametrize("name", PUBLISHED)
def test_commands_of_a_set_have_options_that_their_benchmarks_take(name):
    for use in PUBLISHED[name].uses:
        benchmark, *words = use.command.split()
        for member in FAMILIES.get(benchmark, (benchmark,)):
            taken = {f"--{one.name}" for one in options_for(BENCHMARKS[member].open())}
            assert {word for word in words if word.startswith("--")} <= taken
