"""CITATION.cff is valid, and says the same as the package, whose page shows it."""

import tomllib
from pathlib import Path

import yaml

from raybench import __version__
from raybench.citation import AUTHOR, LICENCE, TITLE, bibtex

ROOT = Path(__file__).parent.parent
FILE = yaml.safe_load((ROOT / "CITATION.cff").read_text())
# Of the schema of CFF 1.2.0: what must be there, and what may.
REQUIRED = {"authors", "cff-version", "message", "title"}
ALLOWED = REQUIRED | {"abstract", "commit", "contact", "date-released", "doi", "identifiers", "keywords", "license"}
ALLOWED |= {"license-url", "preferred-citation", "references", "repository", "repository-artifact", "repository-code"}
ALLOWED |= {"type", "url", "version"}


def test_the_file_has_what_its_schema_asks_for_and_nothing_else():
    assert FILE.keys() >= REQUIRED
    assert FILE.keys() <= ALLOWED
    assert (FILE["cff-version"], FILE["type"]) == ("1.2.0", "software")
    assert all(isinstance(FILE[key], str) and FILE[key] for key in ("message", "title", "version", "abstract"))
    assert all(set(author) == {"name"} for author in FILE["authors"])  # an entity; a person has other keys


def test_file_package_and_wheel_say_the_same():
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (FILE["title"], FILE["authors"]) == (TITLE, [{"name": AUTHOR}])
    assert FILE["version"] == wheel["version"] == __version__
    assert FILE["license"] == wheel["license"] == LICENCE


def test_the_entry_for_a_bibliography_has_author_title_and_version():
    entry = bibtex()
    assert entry.startswith("@misc{raybench,\n") and entry.count("{") == entry.count("}")
    for words in (AUTHOR, TITLE, __version__, LICENCE):
        assert words in entry
