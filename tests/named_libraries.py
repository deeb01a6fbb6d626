"""Libraries that may be missing beside this build of torch, and stand-ins of them that can't be imported."""

import importlib
import sys

import pytest


def library_or_skip(name):
    """The library; a test without it is skipped with the reason."""
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError, OSError) as cause:
        pytest.skip(f"{name} can't be imported here: {type(cause).__name__}: {str(cause).splitlines()[0]}")


def broken_library(name, folder, monkeypatch):
    """A library that is installed in a folder, but for another build of torch."""
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    (folder / name / "models.py").write_text("")
    described = folder / f"{name}-1.0.30.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.30\n")
    for module in [module for module in sys.modules if module.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.syspath_prepend(folder)
