"""Which URIs are archives of images: one `.tar` or `.zip`, or several by braces, as WebDataset names its shards.

What is in an archive is not known here.
"""

from __future__ import annotations

import itertools
import re

from raybench import storage
from raybench.errors import ConfigError

SUFFIXES = (".tar", ".zip")
PACKED = (".tar.gz", ".tgz", ".tar.zst", ".tzst", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
BRACES = re.compile(r"\{([^{}]*)\}")
RANGE = re.compile(r"(\d{1,18})\.\.(\d{1,18})")
MOST_ARCHIVES = 1_000_000


def is_archive(root: str) -> bool:
    """Whether a URI names archives; a folder on disk may have such a name. One that is packed whole is refused."""
    name = root.lower()
    if name.endswith(PACKED) and not storage.is_folder(root):
        raise ConfigError(
            f"{root}: is compressed as a whole, so no image in it can be read by range; unpack it to a plain .tar or a "
            "folder"
        )
    return name.endswith(SUFFIXES) and not storage.is_folder(root)


def archive_uris(root: str) -> list[str]:
    """The archives that a URI names.

    >>> archive_uris("s3://b/x-{08..10}.tar")
    ['s3://b/x-08.tar', 's3://b/x-09.tar', 's3://b/x-10.tar']
    >>> archive_uris("{a,b}/{0..1}.zip")
    ['a/0.zip', 'a/1.zip', 'b/0.zip', 'b/1.zip']
    """
    parts = BRACES.split(root)
    choices = [[part] if number % 2 == 0 else _choices(part, root) for number, part in enumerate(parts)]
    count = 1
    for choice in choices:
        count *= len(choice)
    if count > MOST_ARCHIVES:
        raise ConfigError(f"{root}: names {count:,} archives, expected at most {MOST_ARCHIVES:,}")
    uris = ["".join(chosen) for chosen in itertools.product(*choices)]
    if len(set(uris)) < len(uris):
        raise ConfigError(f"{root}: names an archive twice; expected ranges that do not overlap")
    return uris


def without_common_folder(names: list[str]) -> list[str]:
    """Names without one folder around all of them, as `tar -cf refs.tar refs` puts there: refs stands for the archive.

    >>> without_common_folder(["refs/a.jpg", "refs/b/c.jpg"]), without_common_folder(["refs/a.jpg", "b.jpg"])
    (['a.jpg', 'b/c.jpg'], ['refs/a.jpg', 'b.jpg'])
    """
    folder = names[0].partition("/")[0] + "/" if names else ""
    return [name[len(folder) :] for name in names] if all(name.startswith(folder) for name in names) else names


def _choices(braced: str, root: str) -> list[str]:
    found: list[str] = []
    for part in braced.split(","):
        ends = RANGE.fullmatch(part)
        if ends is None:
            if not part or ".." in part:
                raise ConfigError(
                    f"{root}: {{{braced}}} is no range; expected one such as {{000..123}}, or names with commas"
                )
            found.append(part)
            continue
        first, last = int(ends[1]), int(ends[2])
        if last < first:
            raise ConfigError(f"{root}: {{{braced}}} names nothing, {first} is above {last}; put the smaller one first")
        if last - first >= MOST_ARCHIVES:
            raise ConfigError(
                f"{root}: {{{braced}}} names {last - first + 1:,} archives, expected at most {MOST_ARCHIVES:,}"
            )
        # As a shell: as many digits as the longer one that begins with a zero.
        digits = max((len(end) for end in ends.groups() if end.startswith("0")), default=0)
        found += [f"{number:0{digits}d}" for number in range(first, last + 1)]
    return found
