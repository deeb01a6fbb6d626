"""Whether a folder holds a published set: one listing, then first bytes of some files, and a sentence for each problem.

Memory is bounded by what tallies hold, not by the listing. What is asked for each file beyond its name and size is
`READS`: first bytes of a sample, of all, or whole files.
"""

from __future__ import annotations

import heapq
import shlex
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from xxhash import xxh3_64_intdigest

from raybench import storage
from raybench.datasets import contents, told_names
from raybench.datasets.levels import folder_meant
from raybench.datasets.parts import Exactly, Grouped, Numbered, Part, PublishedSet, Told, Use
from raybench.datasets.tallies import ExactTally, Seen, Tally, tally_of
from raybench.errors import DataError, InputError, ProblemList
from raybench.formats.hbench import strip_shape
from raybench.formats.png import HEADER_BYTES
from raybench.parallel import in_parallel
from raybench.sources.nothing_found import ARCHIVES, why_nothing

READS = ("sample", "headers", "all")
SAMPLE = 64  # files of a part whose first bytes are read
AT_ONCE = 1_000  # files that wait to be read
SHOWN = 5
KEPT_NAMES = 5_000  # by which a folder that is meant is found
TELL_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class PartFound:
    """What there is of a part, and where."""

    part: Part
    folder: str
    seen: Seen
    is_there: bool  # anything of it
    is_good: bool  # all of it, and no file of it is broken


@dataclass(frozen=True)
class Checked:
    """What a check found; a line per problem, and per note on what is left out without harm."""

    name: str
    root: str
    files: int
    size_bytes: int
    parts: tuple[PartFound, ...] = ()
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()  # commands that what is there is enough for
    lacking: tuple[str, ...] = ()  # other commands, and which roles they lack


@dataclass
class _Watch:
    """One folder of a part while the listing goes by."""

    part: Part
    folder: str
    tally: Tally
    files: int = 0
    broken: list[str] = field(default_factory=list)  # words on the first broken files
    broken_count: int = 0
    patches: dict[str, int] = field(default_factory=dict)  # of each strip that was read
    sample: list[tuple[int, str, int]] = field(default_factory=list)  # a heap of the smallest digests, negated

    def note_broken(self, words: Iterable[str]) -> None:
        for line in words:
            self.broken_count += 1
            if len(self.broken) < SHOWN:
                self.broken.append(line)

    def draw(self, name: str, size_bytes: int) -> None:
        """Keep the file if it is of the sample, which follows from names alone."""
        one = (-xxh3_64_intdigest(name.encode("utf-8", "surrogateescape")), name, size_bytes)
        if len(self.sample) < SAMPLE:
            heapq.heappush(self.sample, one)
        elif one > self.sample[0]:
            heapq.heapreplace(self.sample, one)


def check_set(
    name: str, published: PublishedSet, root: str, read: str = "sample", tell: Callable[[str], None] = lambda _: None
) -> Checked:
    """What a folder or other URI has of a set; `tell` hears every few seconds how far it is."""
    problems = ProblemList()

    def told(rule: Told) -> Collection[str] | None:
        return _told(root, rule, problems)

    watches = [_Watch(part, folder, tally_of(part.names, told)) for part in published.parts for folder in part.folders]
    files, size_bytes, names = _walk(root, watches, read, tell)
    if not any(watch.files for watch in watches):
        reason = folder_meant(published, root, names) if files else why_nothing(root, (), 0)
        reason = reason or _why_none(files, names)
        line = f"{root}: {reason}; expected {published.title}"
        return Checked(name, root, files, size_bytes, problems=(line,))
    if read == "sample":
        for watch in watches:
            _read([(watch, one, size) for _, one, size in sorted(watch.sample)], root, whole=False)
    _note_uneven(root, [watch for watch in watches if watch.part.has_strips])
    notes: list[str] = []
    found = []
    for part in published.parts:
        of_part = [watch for watch in watches if watch.part is part]
        chosen = next((watch for watch in of_part if watch.files), of_part[0])
        twice = [watch.folder for watch in of_part if watch.files]
        if len(twice) > 1:
            notes.append(f"{part.role}: in {' and '.join(map(repr, twice))}; the first is read")
        found.append(_found(root, chosen, problems, notes))
    runs, lacking = _uses(published.uses, found, root)
    return Checked(
        name, root, files, size_bytes, tuple(found), tuple(problems.lines), tuple(notes), tuple(runs), tuple(lacking)
    )


def _why_none(files: int, names: Collection[str]) -> str:
    """What a folder holds instead of a set."""
    packed = [name for name in names if name.lower().endswith(ARCHIVES)]
    if packed:
        return f"holds {min(packed)} packed and none of this set; unpack it there, or name the folder that has it"
    return f"holds {files:,} files ({min(names)} …) and none of this set"


def _told(root: str, rule: Told, problems: ProblemList) -> list[str] | None:
    """The names in a file of the set; None if it is missing, or broken, which is noted."""
    uri = storage.join(root, rule.by)
    try:
        return told_names.READERS[rule.reader](storage.read(uri), uri)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except InputError as error:
        problems.add(error)
        return None


def _walk(root: str, watches: list[_Watch], read: str, tell: Callable[[str], None]) -> tuple[int, int, list[str]]:
    """Let every file pass by the tallies; how many they are, their bytes, and the first names."""
    files = size_bytes = 0
    names: list[str] = []
    waiting: list[tuple[_Watch, str, int]] = []
    routes: dict[str, list[tuple[_Watch, int]]] = {}
    last = time.monotonic()
    for entry in storage.each_file(root):
        files += 1
        size_bytes += entry.size_bytes
        if files <= KEPT_NAMES:
            names.append(entry.name)
        folder = entry.name.rpartition("/")[0]
        ways = routes.get(folder)
        if ways is None:
            ways = routes[folder] = _ways(folder, watches)
        watch = next((one for one, cut in ways if one.tally.see(entry.name[cut:], entry.size_bytes)), None)
        if watch is not None:
            watch.files += 1
            if entry.size_bytes == 0:
                what = "is a link to nothing" if entry.stamp == storage.NOTHING else "is empty"
                watch.note_broken([f"{storage.join(root, entry.name)}: {what}; fetch it again"])
            elif read == "sample":
                watch.draw(entry.name, entry.size_bytes)
            else:
                waiting.append((watch, entry.name, entry.size_bytes))
        if len(waiting) >= AT_ONCE:
            _read(waiting, root, read == "all")
            waiting.clear()
        if files % AT_ONCE == 0 and time.monotonic() - last > TELL_EVERY_SECONDS:
            last = time.monotonic()
            tell(f"{files:,} files {'listed' if read == 'sample' else 'read'}")
    _read(waiting, root, read == "all")
    return files, size_bytes, names


def _ways(folder: str, watches: Iterable[_Watch]) -> list[tuple[_Watch, int]]:
    """The tallies that a file right in this folder may belong to, and how much of its name is cut off for each."""
    ways = []
    for watch in watches:
        if not watch.folder:
            ways.append((watch, 0))
        elif folder == watch.folder or folder.startswith(f"{watch.folder}/"):
            ways.append((watch, len(watch.folder) + 1))
    return ways


def _read(files: Iterable[tuple[_Watch, str, int]], root: str, whole: bool) -> None:
    """Look into files; what is wrong with one is noted with its part."""

    def look(one: tuple[_Watch, str, int]) -> str | None:
        watch, name, size_bytes = one
        uri = storage.join(root, name)
        try:
            data = storage.read(uri) if whole else storage.read_start(uri, HEADER_BYTES)
            check = contents.check_whole if whole else contents.check_start
            check(uri, data, size_bytes, watch.part.has_strips)
            if watch.part.has_strips:
                watch.patches[name] = strip_shape(data, uri)[0]
        except DataError as error:
            return str(error)
        except FileNotFoundError:
            return f"{uri}: is gone since the folder was listed"
        return None

    chosen = list(files)
    for (watch, _, _), words in zip(chosen, in_parallel(look, chosen), strict=True):
        if words is not None:
            watch.note_broken([words])


def _note_uneven(root: str, watches: Iterable[_Watch]) -> None:
    """Note strips that have fewer or more patches than most of their sequence, as far as they were read."""
    patches = {name: (count, watch) for watch in watches for name, count in watch.patches.items()}
    sequences: dict[str, Counter[int]] = {}
    for name, (count, _) in patches.items():
        sequences.setdefault(name.partition("/")[0], Counter())[count] += 1
    for name, (count, watch) in sorted(patches.items()):
        usual = sequences[name.partition("/")[0]].most_common(1)[0][0]
        if count != usual:
            uri = storage.join(root, name)
            watch.note_broken([f"{uri}: {count:,} patches, other images of its sequence have {usual:,}"])


def _found(root: str, watch: _Watch, problems: ProblemList, notes: list[str]) -> PartFound:
    """What a part's folder has; what is wrong with it is noted."""
    part, seen = watch.part, watch.tally.seen()
    where = storage.join(root, watch.folder) if watch.folder else root
    if not watch.files:
        folders = " or ".join(f"{folder}/" for folder in part.folders if folder) or "the folder itself"
        line = f"{root}: no {part.role}; expected {_expected(part)} in {folders}"
        if part.is_needed:
            problems.add(line)
        else:
            notes.append(f"no {part.role}, which is optional")
        return PartFound(part, watch.folder, seen, is_there=False, is_good=False)
    for words in seen.wrong:
        problems.add(f"{where}: {part.role}: {words}")
    if isinstance(watch.tally, ExactTally):
        _check_known(where, watch, watch.tally)
    problems.add_first(watch.broken, watch.broken_count, where, f"broken files of {part.role}")
    return PartFound(part, watch.folder, seen, True, seen.is_whole and not watch.broken_count)


def _check_known(where: str, watch: _Watch, tally: ExactTally) -> None:
    for one in tally.there:
        if one.sha256 or one.reader:
            uri = storage.join(where, one.name)
            check = ProblemList()
            with check.noting():
                contents.check_known(one, uri, storage.read(uri))
            watch.note_broken(check.lines)


def _expected(part: Part) -> str:
    """The files of a part in words."""
    rule = part.names
    if isinstance(rule, Grouped):
        return f"{rule.count:,} folders with {rule.files[0]} …"
    if isinstance(rule, Numbered):
        return f"{rule.count:,} files {rule.name(0)} …"
    if isinstance(rule, Exactly):
        names = [one.name for one in rule.files]
        origin = f" (made from {rule.files[0].origin}; `raybench datasets` shows how)" if rule.files[0].origin else ""
        return " or ".join(names) + origin if rule.is_choice or not names[1:] else f"{len(names)} files, {names[0]} …"
    return f"{rule.count:,} files {rule.suffix}"


def _uses(uses: Iterable[Use], found: Iterable[PartFound], root: str) -> tuple[list[str], list[str]]:
    """Commands that what is there is enough for, and others with the roles that they lack."""
    bad = {one.part.role for one in found if not one.is_good}
    runs, lacking = [], []
    for use in uses:
        command = f"raybench run {use.command.replace('PATH', shlex.quote(root))} --out OUT"
        words = f"   ({use.words})" if use.words else ""
        missing = [role for role in use.needs if role in bad]
        if missing:
            lacking.append(f"{command}{words}: lacks {', '.join(missing)}")
        else:
            runs.append(f"{command}{words}")
    return runs, lacking
