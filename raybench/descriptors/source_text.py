"""What a module's source says of what it rests on: imports, files by their literal names, and what can't be known.

Nothing is run. An import counts wherever it stands: in a function, under a condition, for types alone.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

# Calls whose target is known only once they run, by the last part of the function's name.
RUNS_CODE = {"import_module", "__import__", "spec_from_file_location", "run_path", "run_module", "exec_module"}
RUNS_TEXT = {"exec", "eval"}  # as plain names only: `model.eval()` is something else
READS_ENVIRONMENT = {"environ", "getenv", "environb", "getenvb"}
FETCHES = {
    "from_pretrained",
    "hf_hub_download",
    "snapshot_download",
    "load_state_dict_from_url",
    "load_url",
    "urlopen",
    "urlretrieve",
}
BY_NAME = "imports or runs code by a name that is known only at run time"
ENVIRONMENT = "reads environment variables"
NETWORK = "fetches from the network"
LONGEST_NAME = 1_024  # letters of a literal that may name a file


@dataclass
class SourceText:
    """Names of modules (those behind `from` may be plain values), packages of `import *`, literals, doubts by line."""

    modules: set[str] = field(default_factory=set)
    stars: set[str] = field(default_factory=set)
    literals: set[str] = field(default_factory=set)
    doubts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def read_source(source: bytes, package: str) -> SourceText:
    """What a module in this package (or the package itself) rests on; raises SyntaxError or ValueError."""
    found = SourceText()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            _note_from(node, package, found)
        elif isinstance(node, ast.Call):
            _note_call(node, package, found)
        elif _named(node) in READS_ENVIRONMENT and isinstance(getattr(node, "ctx", None), ast.Load):
            found.doubts[ENVIRONMENT].append(getattr(node, "lineno", 0))
    found.literals = set(_literals(tree))
    return found


def _note_from(node: ast.ImportFrom, package: str, found: SourceText) -> None:
    base = absolute("." * node.level + (node.module or ""), package)
    if base is None:
        return
    found.modules.add(base)
    for alias in node.names:
        if alias.name == "*":
            found.stars.add(base)
        else:
            found.modules.add(f"{base}.{alias.name}")
            if alias.name in READS_ENVIRONMENT:
                found.doubts[ENVIRONMENT].append(node.lineno)


def _note_call(node: ast.Call, package: str, found: SourceText) -> None:
    called = _named(node.func)
    if called in RUNS_CODE or (called in RUNS_TEXT and isinstance(node.func, ast.Name)):
        literal = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
        name = absolute(literal, package) if isinstance(literal, str) else None
        if name and called in ("import_module", "__import__"):
            found.modules.add(name)
        else:
            found.doubts[BY_NAME].append(node.lineno)
    elif called in FETCHES or (called == "load" and _named(getattr(node.func, "value", None)) == "hub"):
        found.doubts[NETWORK].append(node.lineno)


def absolute(name: str, package: str) -> str | None:
    """A module's name from one that may begin with dots; None if they lead out of the package.

    >>> absolute("..b", "top.a"), absolute("...b", "top.a"), absolute("b", "top.a")
    ('top.b', None, 'b')
    """
    dots = len(name) - len(name.lstrip("."))
    if dots == 0:
        return name or None
    above = package.split(".") if package else []
    if dots > len(above):
        return None
    return ".".join([*above[: len(above) - dots + 1], *filter(None, [name[dots:]])])


def _named(node: ast.AST | None) -> str:
    """The last part of a dotted name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _literals(tree: ast.Module) -> Iterator[str]:
    """Texts that may name a file; those that stand alone say what something is."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            text = node.value
            if text.strip(" ./") and len(text) <= LONGEST_NAME and text.isprintable():
                yield text
