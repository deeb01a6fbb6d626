"""Every worked example in a docstring is run. Modules that import Ray have none and are left out."""

import ast
import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDS_RAY = {"raybench/engine/ray_core.py", "raybench/engine/telemetry.py"}


def modules_with_examples() -> list[str]:
    """Modules that have an example in a docstring, found without importing any."""
    found = []
    for path in sorted((ROOT / "raybench").rglob("*.py")):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, documented)]
        if any(">>>" in (ast.get_docstring(node) or "") for node in nodes):
            found.append(path.relative_to(ROOT).as_posix())
    return found


def test_modules_that_need_ray_have_no_examples():
    assert not NEEDS_RAY & set(modules_with_examples())


@pytest.mark.parametrize("path", [path for path in modules_with_examples() if path not in NEEDS_RAY])
def test_the_examples_of_a_module_are_true(path):
    name = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted
    assert not outcome.failed
