"""Has a process wait at one call of one function, for tests that kill it there; in force where PYTHONPATH names it.

`STOP_AT` holds `{"function": "module:name", "named": text, "call": number, "folder": path}`. Calls are counted whose
first argument's `name` has the text in it. At the one with this number the process writes its id to `here` in the
folder, and waits for as long as `wait` is there.
"""

import functools
import importlib.abc
import importlib.util
import json
import os
import sys
import time
from pathlib import Path


def waiting(function, named, call, folder):
    seen = []

    @functools.wraps(function)
    def stopped(*arguments, **options):
        if named in str(getattr(arguments[0] if arguments else None, "name", "")):
            seen.append(None)
            if len(seen) == call and (folder / "wait").exists():
                (folder / f"{os.getpid()}").write_text(str(os.getpid()))
                (folder / f"{os.getpid()}").rename(folder / "here")
                while (folder / "wait").exists():
                    time.sleep(0.01)
        return function(*arguments, **options)

    return stopped


def patch(module, name, *how):
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, module)
    setattr(owner, last, waiting(getattr(owner, last), *how))


class Patching(importlib.abc.MetaPathFinder):
    def __init__(self, module, *what):
        self.module, self.what = module, what

    def find_spec(self, name, path, target=None):
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_and_patch(module):
            execute(module)
            patch(module, *self.what)

        spec.loader.exec_module = execute_and_patch
        return spec


if "STOP_AT" in os.environ:
    asked = json.loads(os.environ["STOP_AT"])
    module, _, name = asked["function"].partition(":")
    how = (name, asked["named"], asked["call"], Path(asked["folder"]))
    if module in sys.modules:
        patch(sys.modules[module], *how)
    else:
        sys.meta_path.insert(0, Patching(module, *how))
