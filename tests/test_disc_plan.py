"""The plan of DISC2021 on eight GPUs is arithmetic: figures small enough to check on paper."""

import pytest

from tests.perf.plan_disc import IMAGES, V100_IMAGES_PER_SECOND, Cluster, Rates, lines, steps

RATES = Rates(loaded_per_second=100.0, header_seconds=1e-4, search_flops=1e11)


def test_rates_of_a_core_are_a_ceiling_times_the_share_that_a_stage_makes_of_it():
    named = {
        ("ceilings", "JPEG 1024 x 768, decoded and resized by Pillow"): 200.0,
        ("ceilings", "product of a tile, 512-d, numpy"): 125.0,
        ("shares", "loading pictures (read, decode, resize to 288)"): 0.5,
        ("shares", "search 2,048 x 65,536, 256-d, k = 10"): 0.9,
        ("shares", "search 2,048 x 65,536, 512-d, k = 10"): 0.8,
        ("names", "reading a header, on a worker"): 100.0,
    }
    figures = [{"bench": of, "name": name, "median": value} for (of, name), value in named.items()]
    assert Rates.of({"figures": figures}) == RATES


def test_a_missing_figure_says_which_benches_to_run():
    with pytest.raises(SystemExit, match="run `bench ceilings shares names`"):
        Rates.of({"figures": []})


@pytest.mark.parametrize(("cores", "slowest"), [(8, IMAGES / 800), (64, IMAGES / (8 * V100_IMAGES_PER_SECOND))])
def test_extraction_takes_as_long_as_the_slowest_of_its_parts(cores, slowest):
    extraction = next(step for step in steps(RATES, Cluster(8, cores)) if step.what.startswith("extraction"))
    assert extraction.on_disk == pytest.approx(slowest)


def test_the_sum_stands_below_the_steps():
    cluster = Cluster()
    minutes = sum(step.on_disk for step in steps(RATES, cluster)) / 60
    total = next(line for line in lines(RATES, cluster) if "**sum**" in line)
    assert f"**{minutes:.0f} min**" in total
    assert "published: 120 min" in total
