"""Published sets made small: the same rules with other counts, and folders that hold them whole."""

import json
from dataclasses import replace
from pathlib import Path

from raybench.datasets.parts import Counted, Exactly, Grouped, Numbered, PublishedSet, Told
from raybench.datasets.patch_sets import BITMAP_BYTES
from raybench.datasets.published import PUBLISHED
from raybench.formats.flo import FLO_MAGIC

COUNT = 4
JPEG = b"\xff\xd8\xff\xe0 picture \xff\xd9"
BITMAP_SAYS = 90


def small(name: str) -> PublishedSet:
    """A set with a few files of each kind, whose contents are not known."""
    return scaled(PUBLISHED[name], {"any": COUNT})


def scaled(published: PublishedSet, counts: dict[str, int]) -> PublishedSet:
    """A set with so many files of each role."""
    parts = []
    for part in published.parts:
        rule, count = part.names, counts.get(part.role, counts.get("any", COUNT))
        if isinstance(rule, Numbered):
            starts = tuple(count * place for place in range(len(rule.starts)))
            size = BITMAP_SAYS if rule.size_bytes == BITMAP_BYTES else None
            rule = replace(rule, count=count, starts=starts, size_bytes=size)
        elif isinstance(rule, Grouped):
            rule = replace(rule, count=count, known=rule.known[:count])
        elif isinstance(rule, Exactly):
            rule = replace(rule, files=tuple(replace(one, size_bytes=None, sha256="") for one in rule.files))
        else:
            assert isinstance(rule, Counted | Told)
            rule = replace(rule, count=count)
        parts.append(replace(part, names=rule))
    return replace(published, parts=tuple(parts))


def make(published: PublishedSet, root: Path) -> Path:
    """A folder that holds a small set whole."""
    for part in published.parts:
        rule, folder = part.names, root / part.folders[0]
        if isinstance(rule, Numbered):
            names = [rule.name(number) for number in range(rule.count)]
        elif isinstance(rule, Grouped):
            groups = rule.known or [f"pair{number}" for number in range(rule.count)]
            names = [f"{group}/{name}" for group in groups for name in rule.files]
        elif isinstance(rule, Exactly):
            names = [one.name for one in (rule.files[:1] if rule.is_choice else rule.files)]
        else:
            names = [f"2{number:03d}00{rule.suffix}" for number in range(rule.count)]
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content(name, part.has_strips))
    return root


def content(name: str, is_strip: bool = False, patches: int = 2) -> bytes:
    """Bytes whose beginning is that of such a file."""
    if name.endswith(".flo"):
        return FLO_MAGIC + b"\2\0\0\0\1\0\0\0" + bytes(16)
    if name.endswith(".png"):
        width, height = (65, 65 * patches) if is_strip else (30, 20)
        size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
        return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + size + b"\x08\0\0\0\0" + bytes(4) + b"\0\0\0\0IEND\xaeB`\x82"
    if name.endswith(".bmp"):
        return b"BM" + BITMAP_SAYS.to_bytes(4, "little") + bytes(BITMAP_SAYS - 6)
    if name.endswith(".json") and name.startswith("gnd_"):
        images = [f"2{number:03d}00" for number in range(COUNT)]
        gnd = [{"bbx": [0, 0, 9, 9], "easy": [0], "hard": [], "junk": [1]}]
        return json.dumps({"imlist": images[1:], "qimlist": images[:1], "gnd": gnd}).encode()
    texts = {
        "splits.json": b'{"a": {"train": [], "test": ["i_a"]}}',
        "val_groundtruth_matches.csv": b"Q00000,R000001\n",
        "revisitop1m.txt": "".join(f"2{number:03d}00.jpg\n" for number in range(COUNT)).encode(),
    }
    return texts.get(name, JPEG if name.endswith(".jpg") else b"text\n")
