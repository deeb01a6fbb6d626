"""How raybench is cited: the facts of CITATION.cff, which no wheel holds, and as BibTeX. A test holds the two equal."""

from __future__ import annotations

from raybench import __version__

TITLE = "raybench: distributed batch evaluation of image and patch descriptors, copy detection and dense flow"
AUTHOR = "The raybench developers"
LICENCE = "Apache-2.0"  # as SPDX names it


def bibtex() -> str:
    """An entry for a bibliography; the version is part of it, since figures are those of a version."""
    fields = {"author": f"{{{AUTHOR}}}", "title": TITLE, "version": __version__, "note": f"Software, {LICENCE}"}
    lines = [f"  {key} = {{{value}}}," for key, value in fields.items()]
    return "\n".join(["@misc{raybench,", *lines, "}"]) + "\n"
