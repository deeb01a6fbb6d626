"""What a class of the user's own is identified by: its code and the files that its arguments name, or its own `digest`.

A class says its own by a text `digest` in its body, or by a classmethod that makes one from the constructor's
arguments. An inherited one does not count, since it can't know of what was changed in the class below.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from raybench.descriptors.argument_files import NamedFile, NamedFiles, by_content
from raybench.descriptors.own_code import OwnCode, own_code
from raybench.descriptors.own_imports import Digests, digested_imports
from raybench.descriptors.user_classes import class_of, search_in
from raybench.digests import digest_of
from raybench.errors import ConfigError, reason_of

EXPECTED = "expected a text, or a classmethod that makes one from the constructor's arguments"


@dataclass(frozen=True)
class OwnIdentity:
    """The digest of a class and its arguments, and what it was made from: modules, files. `doubts`: what it lacks."""

    digest: str
    modules: Digests
    files: tuple[NamedFile, ...] = ()
    doubts: tuple[str, ...] = ()


def own_identity(target: str, arguments: dict[str, Any], folder: str) -> OwnIdentity:
    """What identifies `module:Class` with these arguments; the class is imported anew if its source has changed."""
    try:
        json.dumps(arguments)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"--descriptor {target}: an argument is no JSON value ({error}), so has no digest") from error
    kind, code = _imported(target, folder)
    declared = _declared(kind, target, arguments)
    if declared is not None:
        return OwnIdentity(digest_of("own digest", target, declared, arguments), code.modules)
    if not code.modules:
        raise ConfigError(
            f"--descriptor {target}: its source can't be found, so results can't be kept apart; give it a `digest`"
        )
    named = NamedFiles()
    digest = digest_of("own code", target, code.digest, by_content(arguments, named))
    return OwnIdentity(digest, code.modules, tuple(named.files), (*code.doubts, *named.doubts))


def _imported(target: str, folder: str) -> tuple[type[Any], OwnCode]:
    module = target.partition(":")[0]
    search_in(folder)
    code = own_code(module, folder)
    with digested_imports(code.modules):
        kind = class_of(target, folder)
    if any(name in sys.modules for name in code.absent):  # the module itself said where else to look for some
        code = own_code(module, folder)
    return kind, code


def _declared(kind: type[Any], target: str, arguments: dict[str, Any]) -> str | None:
    found = vars(kind).get("digest")
    if isinstance(found, classmethod | staticmethod):
        try:
            found = kind.digest(**arguments)
        except Exception as error:
            raise ConfigError(f"--descriptor {target}: its digest() failed ({reason_of(error)}); {EXPECTED}") from error
    if found is not None and not isinstance(found, str):
        raise ConfigError(f"--descriptor {target}: its `digest` is a {type(found).__name__}; {EXPECTED}")
    return found
