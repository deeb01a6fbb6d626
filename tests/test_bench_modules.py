"""Every bench can be started: what it imports is there. That it runs is seen by `make bench`."""

import importlib

import pytest

from tests.perf.bench import BENCHES, ONLY_WHEN_ASKED


@pytest.mark.parametrize("where", {**BENCHES, **ONLY_WHEN_ASKED}.values())
def test_a_bench_imports_what_it_needs(where):
    module, _, function = where.partition(":")
    assert callable(getattr(importlib.import_module(module), function or "figures"))
