"""What of a part a listing has: one tally per part and folder, which sees each file once and holds no list of them.

A tally says how many files there are, how many should be, and in words what is missing, twice, or too many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from raybench.datasets.parts import Counted, Exactly, Grouped, KnownFile, Numbered, Told
from raybench.datasets.parts import Names as Rule

SHOWN = 5  # names in a line
MOST_KEPT = 1_000  # names of files that are wrong, which may be all


@dataclass(frozen=True)
class Seen:
    """What a tally ends with; `found` of `expected` files (or folders), and what is wrong in words."""

    found: int
    expected: int
    wrong: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self.found == self.expected and not self.wrong


class Tally(Protocol):
    """Sees the files below one folder, by names relative to it."""

    def see(self, name: str, size_bytes: int) -> bool:
        """Count a file; whether it is one of the part's."""
        ...

    def seen(self) -> Seen: ...


class NumberedTally:
    """A bit per number."""

    def __init__(self, rule: Numbered) -> None:
        self._rule = rule
        self._there = bytearray(max(rule.starts) + rule.count)
        self._twice = _Names()
        self._foreign = _Names()
        self._cut = _Names()
        self._length = len(rule.name(0))
        self._digits = slice(len(rule.prefix), len(rule.prefix) + rule.digits)

    def see(self, name: str, size_bytes: int) -> bool:
        base = name[name.rfind("/") + 1 :]
        if not base.endswith(self._rule.suffix) or base[:1] == "." or (self._rule.is_flat and base != name):
            return False
        digits = base[self._digits]
        fits = (
            len(base) == self._length and base.startswith(self._rule.prefix) and digits.isascii() and digits.isdecimal()
        )
        number = int(digits) if fits else -1
        if not 0 <= number < len(self._there):
            self._foreign.add(name)
            return False
        if self._there[number]:
            self._twice.add(name)
        self._there[number] = 1
        if self._rule.size_bytes not in (None, size_bytes):
            self._cut.add(f"{name} has {size_bytes:,} bytes")
        return True

    def seen(self) -> Seen:
        count = self._rule.count
        start = max(self._rule.starts, key=lambda one: self._there[one : one + count].count(1))
        there = self._there[start : start + count]
        found = there.count(1)
        wrong = []
        if found < count:
            names = [self._rule.name(start + number) for number in _first_zeros(there)]
            wrong.append(f"{count - found:,} of {count:,} missing ({_some(names, count - found)})")
        beyond = sum(self._there) - found
        if beyond:
            wrong.append(f"{beyond:,} more than the {count:,} from {self._rule.name(start)} on; move them elsewhere")
        wrong += self._twice.lines("there twice, in several folders", "keep one of each")
        wrong += self._foreign.lines(f"not of this set, which has {self._rule.name(start)} …", "move them elsewhere")
        expected = f"of another size than {self._rule.size_bytes or 0:,} bytes"
        wrong += self._cut.lines(expected, "cut short or damaged; fetch them again")
        return Seen(found, count, tuple(wrong))


class CountedTally:
    """Any names."""

    def __init__(self, rule: Counted) -> None:
        self._rule, self._found = rule, 0

    def see(self, name: str, size_bytes: int) -> bool:
        fits = "/" not in name and name[:1] != "." and name.lower().endswith(self._rule.suffix)
        self._found += fits
        return fits

    def seen(self) -> Seen:
        missing = self._rule.count - self._found
        wrong = f"{self._found:,} files {self._rule.suffix}, expected {self._rule.count:,}"
        words = f"{missing:,} missing" if missing > 0 else f"{-missing:,} too many"
        return Seen(self._found, self._rule.count, (f"{wrong}: {words}",) if missing else ())


class ExactTally:
    """Sizes of the files that there are; their contents are looked at by who reads."""

    def __init__(self, rule: Exactly) -> None:
        self._rule = rule
        self._known = {one.name: one for one in rule.files}
        self._sizes: dict[str, int] = {}

    def see(self, name: str, size_bytes: int) -> bool:
        if name in self._known:
            self._sizes[name] = size_bytes
        return name in self._known

    @property
    def there(self) -> list[KnownFile]:
        """The files that are there and of the right size, if that is known."""
        return [one for one in self._rule.files if self._fits(one)]

    def _fits(self, one: KnownFile) -> bool:
        return one.name in self._sizes and one.size_bytes in (None, self._sizes[one.name])

    def seen(self) -> Seen:
        missing = [name for name in self._known if name not in self._sizes]
        found = len(self._sizes)
        wrong = []
        if self._rule.is_choice:
            found = min(found, 1)
            if not found:
                wrong.append(f"is missing ({' or '.join(self._known)})")
        elif missing:
            wrong.append(f"{len(missing):,} of {len(self._known):,} missing ({_some(missing, len(missing))})")
        for one in self._rule.files:
            if one.name in self._sizes and not self._fits(one):
                wrong.append(
                    f"{one.name} has {self._sizes[one.name]:,} bytes, expected {one.size_bytes:,}; it is cut short, "
                    "or of another release"
                )
        return Seen(found, self._rule.count, tuple(wrong))


class GroupedTally:
    """Of each folder which of its files are there."""

    def __init__(self, rule: Grouped) -> None:
        self._rule = rule
        self._bits = {name: 1 << place for place, name in enumerate(rule.files)}
        self._known = frozenset(rule.known)
        self._groups: dict[str, int] = {}
        self._foreign: set[str] = set()

    def see(self, name: str, size_bytes: int) -> bool:
        group, _, file = name.partition("/")
        bit = self._bits.get(file)
        if bit is None:
            return False
        if self._known and group not in self._known:
            self._foreign.add(group)
            return False
        self._groups[group] = self._groups.get(group, 0) | bit
        return True

    def seen(self) -> Seen:
        rule, all_bits = self._rule, (1 << len(self._rule.files)) - 1
        wrong = []
        absent = [group for group in rule.known if group not in self._groups]
        missing = len(absent) if rule.known else rule.count - len(self._groups)
        if missing > 0:
            named = f" ({_some(absent, missing)})" if absent else ""
            wrong.append(f"{missing:,} of {rule.count:,} folders missing{named}")
        if missing < 0:
            wrong.append(f"{len(self._groups):,} folders, expected {rule.count:,}: {-missing:,} too many")
        partial = sorted(group for group, bits in self._groups.items() if bits != all_bits)
        lacking = [f"{group} lacks {', '.join(self._lacking(group))}" for group in partial[:SHOWN]]
        if partial:
            more = f"; {len(partial):,} such folders in all" if len(partial) > SHOWN else ""
            wrong.append(f"{'; '.join(lacking)}{more}")
        if self._foreign:
            foreign = sorted(self._foreign)
            wrong.append(f"folders that are not of this set: {len(foreign):,} ({_some(foreign, len(foreign))})")
        return Seen(len(self._groups) - len(partial), rule.count, tuple(wrong))

    def _lacking(self, group: str) -> list[str]:
        return [name for name, bit in self._bits.items() if not self._groups[group] & bit]


class ToldTally:
    """The names that a file of the set tells, of which some are still to come. Without that file all are counted."""

    def __init__(self, rule: Told, told: Collection[str] | None) -> None:
        self._rule = rule
        self._wanted = None if told is None else set(told)
        self._count = 0 if told is None else len(self._wanted or ())
        self._found = 0

    def see(self, name: str, size_bytes: int) -> bool:
        if self._wanted is None:
            fits = name.lower().endswith(self._rule.suffix) and "/." not in f"/{name}"
            self._found += fits
            return fits
        fits = name in self._wanted
        self._wanted.discard(name)
        self._found += fits
        return fits

    def seen(self) -> Seen:
        rule = self._rule
        if self._wanted is None:
            short = self._found < rule.count
            wrong = [f"{self._found:,} files {rule.suffix}, expected at least {rule.count:,}"] if short else []
            return Seen(min(self._found, rule.count), rule.count, tuple(wrong))
        missing = sorted(self._wanted)
        wrong = []
        if missing:
            wrong.append(f"{len(missing):,} of {self._count:,} missing ({_some(missing, len(missing))})")
        if self._count != rule.count:
            wrong.append(f"{rule.by} names {self._count:,} images, published are {rule.count:,}")
        return Seen(self._found, rule.count, tuple(wrong))


def tally_of(rule: Rule, told: Callable[[Told], Collection[str] | None]) -> Tally:
    """An empty tally; `told` gives the names that a file of the set tells."""
    if isinstance(rule, Told):
        return ToldTally(rule, told(rule))
    if isinstance(rule, Numbered):
        return NumberedTally(rule)
    if isinstance(rule, Counted):
        return CountedTally(rule)
    return ExactTally(rule) if isinstance(rule, Exactly) else GroupedTally(rule)


class _Names:
    """How many there are, and the first of them in name order, as far as they are kept."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._count = 0

    def add(self, name: str) -> None:
        self._count += 1
        if len(self._kept) < MOST_KEPT:
            self._kept.append(name)

    def lines(self, words: str, advice: str) -> list[str]:
        """A line of these words, if there are any names."""
        named = f"{self._count:,} ({_some(sorted(self._kept), self._count)})"
        return [f"{words}: {named}; {advice}"] if self._count else []


def _first_zeros(there: bytearray) -> Iterable[int]:
    place = -1
    for _ in range(SHOWN):
        place = there.find(0, place + 1)
        if place < 0:
            return
        yield place


def _some(names: Iterable[str], count: int) -> str:
    first = list(names)[:SHOWN]
    return ", ".join(first) + (" …" if count > len(first) else "")
