"""`module:Class`: the class that it names, imported; modules may be in the current folder."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from typing import Any

from raybench.errors import ConfigError, InputError, reason_of, suggestion


def search_in(folder: str) -> None:
    """Let modules be found in this folder and in the current one."""
    for place in (folder, os.getcwd()):  # noqa: PTH109 (on another node the job's folder has another name)
        if place not in sys.path:
            sys.path.insert(0, place)


def class_of(target: str, folder: str) -> type[Any]:
    """The class that `module:Class` names; the module may be in `folder` or in the current one."""
    module_name, _, class_name = target.partition(":")
    search_in(folder)
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        lacks = error.name or ""
        if lacks and not f"{module_name}.".startswith(f"{lacks}."):
            raise ConfigError(
                f"--descriptor {target}: {module_name} imports {lacks}, which is not there; pip install it, or bring it"
            ) from error
        raise ConfigError(f"--descriptor {target}: {error}; is {module_name}.py in {folder} or installed?") from error
    except Exception as error:
        if isinstance(error, AttributeError) and module_name in sys.modules:
            known = dir(sys.modules[module_name])
            raise ConfigError(
                f"--descriptor {target}: {module_name} has no class {class_name}{suggestion(class_name, known)}"
            ) from None
        said = f"{type(error).__name__}: {reason_of(error)}"
        raise ConfigError(f"--descriptor {target}: can't be imported ({said}{_place(error)})") from error
    if not isinstance(found, type):
        raise ConfigError(f"--descriptor {target}: {class_name} is no class")
    return found


def _place(error: Exception) -> str:
    """The line of a file on disk at which an import failed, in words; a SyntaxError says it itself."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(("<", __file__))]
    is_theirs = own and not isinstance(error, SyntaxError) and importlib.__file__ != own[-1].filename
    return f", at {own[-1].filename}:{own[-1].lineno}" if is_theirs else ""
