"""What a published set is made of, as data: its parts, how files of a part are named, what it is used for.

Whether a folder holds a set, `checking` finds out by one listing. Words and figures only: lists do without numpy.
"""

from __future__ import annotations

from dataclasses import dataclass

NOT_STATED = "not stated; see the site"


@dataclass(frozen=True)
class Numbered:
    """`count` files of a prefix and a number, from one of these starts: `R000000.jpg`."""

    prefix: str
    digits: int
    count: int
    starts: tuple[int, ...] = (0,)
    suffix: str = ".jpg"
    size_bytes: int | None = None  # of each
    is_flat: bool = False  # yes: those in folders below do not count

    def name(self, number: int) -> str:
        return f"{self.prefix}{number:0{self.digits}d}{self.suffix}"


@dataclass(frozen=True)
class Counted:
    """`count` files with this suffix, right in the folder, whatever their names."""

    count: int
    suffix: str = ".jpg"


@dataclass(frozen=True)
class KnownFile:
    """A file by its name, with what is known of its content. `reader` is a key of `contents.READERS`; `origin` says
    what it is made from, where it is not published itself."""

    name: str
    size_bytes: int | None = None
    sha256: str = ""
    reader: str = ""
    origin: str = ""


@dataclass(frozen=True)
class Exactly:
    """These files; with `is_choice` one of them is enough, the first that is there."""

    files: tuple[KnownFile, ...]
    is_choice: bool = False

    @property
    def count(self) -> int:
        return 1 if self.is_choice else len(self.files)


@dataclass(frozen=True)
class Grouped:
    """`count` folders with the same files in each: those of these names, or any."""

    count: int
    files: tuple[str, ...]
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """`count` files that a file of the set names; `reader` is a key of `told_names.READERS`."""

    by: str
    reader: str
    count: int
    suffix: str = ".jpg"


Names = Numbered | Counted | Exactly | Grouped | Told


@dataclass(frozen=True)
class Part:
    """Files of one role, in one folder below the root, which has one of the names `folders`, the published first."""

    role: str
    folders: tuple[str, ...]
    names: Names
    is_needed: bool = True  # no: where all of it is missing, nothing is wrong
    has_strips: bool = False  # its PNG files are patches below each other


@dataclass(frozen=True)
class Use:
    """A command that the set serves, and the roles that it takes. PATH stands for the set's root."""

    command: str
    needs: tuple[str, ...]
    words: str = ""  # what it gives, where several commands differ in that


@dataclass(frozen=True)
class PublishedSet:
    """A set. `tree` has the lines below its root; `figures_from` says where counts, sizes and digests were found."""

    title: str
    size: str
    licence: str
    links: tuple[str, ...]
    tree: str
    parts: tuple[Part, ...]
    uses: tuple[Use, ...]
    steps: tuple[str, ...]
    figures_from: tuple[str, ...]

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks and families that it is for, as the commands name them."""
        return tuple(dict.fromkeys(use.command.split()[0] for use in self.uses))
