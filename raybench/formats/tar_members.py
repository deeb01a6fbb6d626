"""Tar archives: where each member lies. POSIX ustar and PAX, GNU's long names, and what came before them.

Headers alone are read. Hard and symbolic links lead to the member that they name; sparse members can't be read as they
stand. A tar ends with a block of zeros: one without was cut short, as its last members may be missing. Members that no
program would unpack as files (devices) are passed over; what stands behind the end, or has an unknown kind, is refused.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left

from raybench.errors import DataError
from raybench.formats.archive_members import LINK_TO_NOTHING, MemberList, Members, Wanted, as_listed
from raybench.formats.forward_bytes import ForwardBytes

BLOCK = 512
ZEROS = bytes(BLOCK)
MOST_EXTENDED_BYTES = 2**20  # of a header that says more about the next member, such as its long name
MOST_PADDING = 2**22  # of zeros behind the end, where another archive is looked for: tapes' blocks have up to 2 MB
MOST_LINKS = 40  # one to the other
GOES_ON, GOES_ON_AGAIN = 482, 504  # bytes of a sparse member's header and of a block behind it, set if one follows
HARD_LINK, SYMBOLIC_LINK, FOLDER, SPARSE = b"1", b"2", b"5", b"S"
FILES = (b"0", b"\0", b"7")
WITHOUT_CONTENT = (b"1", b"2", b"3", b"4", b"5", b"6")  # links, devices, folders
FOLDER_OR_DEVICE = (b"3", b"4", b"5", b"6")
LONG_NAME, LONG_LINK, EXTENDED, FOR_ALL = b"L", b"K", b"x", b"g"
USED, SPARSE_KEY = (b"path", b"linkpath", b"size"), b"GNU.sparse"  # of what PAX headers say
ODD_BYTES = "surrogateescape"  # as Python reads file names that are no UTF-8

COMPRESSED = {b"\x1f\x8b": "gzip", b"(\xb5/\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
PACK_AGAIN = "pack it again with `tar -cf`"


def tar_members(file: ForwardBytes, name: str, wanted: Wanted) -> Members:
    """The wanted members; a DataError if it is no tar, damaged or cut short."""
    found, links = MemberList(), dict[str, str]()
    at, said = 0, dict[bytes, bytes]()
    while (header := file.take(at, BLOCK)) != ZEROS:
        if len(header) < BLOCK:
            raise _cut_short(file, name, at)
        size, kind = _checked(header, name, at), header[156:157]
        content = at + BLOCK
        if kind in (EXTENDED, LONG_NAME, LONG_LINK):
            said |= _extended(file, name, at, kind, size)
            at = content + _padded(size)
            continue
        if kind in WITHOUT_CONTENT:
            size = 0
        if kind == SPARSE:
            content = _behind_map(file, header, content)
        if b"size" in said and kind in FILES:
            size = _whole(said[b"size"], name, at)
        if content + size > file.size_bytes:
            raise _cut_short(file, name, at)
        if kind != FOR_ALL:
            _note(found, links, header, kind, said, (content, size), name, wanted)
            said = {}
        at = content + _padded(size)
    _check_end(file, name, at)
    _check_folders(found, links, name, wanted)
    return _with_links(found, links)


def _behind_map(file: ForwardBytes, header: bytes, at: int) -> int:
    """Where the content of a sparse member of GNU's begins: blocks that go on with its map may stand before it."""
    block, flag = header, GOES_ON
    while block[flag : flag + 1] > b"\0":
        block, flag = file.take(at, BLOCK), GOES_ON_AGAIN
        at += BLOCK
    return at


def _check_end(file: ForwardBytes, name: str, at: int) -> None:
    """Refuse another archive behind the end, as `cat` puts it there: its members would be missing without a word."""
    for start in range(at, min(at + MOST_PADDING, file.size_bytes), BLOCK):
        block = file.take(start, BLOCK)
        if block.strip(b"\0"):
            if _is_header(block):
                raise DataError(
                    f"{name}: holds another archive behind its end, at byte {start:,}; name each archive "
                    "(name-{000..009}.tar), or join them with `tar --concatenate`"
                )
            return


def _note(
    found: MemberList,
    links: dict[str, str],
    header: bytes,
    kind: bytes,
    said: dict[bytes, bytes],
    place: tuple[int, int],
    name: str,
    wanted: Wanted,
) -> None:
    """Keep one member, or a link, if it is wanted."""
    member = as_listed((said.get(b"path") or _name_in(header)).decode(errors=ODD_BYTES))
    if not wanted(member) or kind in FOLDER_OR_DEVICE:
        found.others += kind in FILES
        found.is_rooted |= kind == FOLDER and member in ("", ".")  # as `tar -cf x.tar -C refs .` packs it
        if kind == SYMBOLIC_LINK:
            links[member] = _target(member, header, kind, said)
        return
    if kind not in (*FILES, SPARSE, HARD_LINK, SYMBOLIC_LINK):
        raise DataError(f"{name}: {member} is no file, but of kind {kind!r}; {PACK_AGAIN}")
    if kind == SPARSE or SPARSE_KEY in said:
        raise DataError(f"{name}: {member} is sparse, so it can't be read by range; {PACK_AGAIN}, without --sparse")
    if kind in FILES:
        found.add(member, place[0], place[1], place[1])
        return
    links[member] = _target(member, header, kind, said)
    found.add(member, 0, 0, 0, LINK_TO_NOTHING)


def _target(member: str, header: bytes, kind: bytes, said: dict[bytes, bytes]) -> str:
    """The name that a link leads to; a symbolic one counts from its own folder."""
    target = (said.get(b"linkpath") or _text(header[157:257])).decode(errors=ODD_BYTES)
    if kind == SYMBOLIC_LINK:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(member), target))
    return as_listed(target)


def _followed(links: dict[str, str], member: str) -> str:
    """Where a link leads in the end."""
    for _ in range(MOST_LINKS):
        if member not in links:
            break
        member = links[member]
    return member


def _check_folders(found: MemberList, links: dict[str, str], name: str, wanted: Wanted) -> None:
    """Refuse a link to a folder of the archive: once it is unpacked, the folder's images stand below the link, too.

    A link to a folder above itself is let pass, as it is where folders are listed.
    """
    images = sorted(found.names) if links else []
    for member in links:
        target = _followed(links, member)
        place = bisect_left(images, f"{target}/")
        below = images[place].removeprefix(target) if place < len(images) else ""
        is_above = f"{member}/".startswith(f"{target}/")
        if below.startswith("/") and not is_above and wanted(member + below):
            raise DataError(
                f"{name}: {member} is a link to the folder {target}, whose images are not packed again below the link; "
                "pack it again with the files themselves (`tar -ch`), or without the link"
            )


def _with_links(found: MemberList, links: dict[str, str]) -> Members:
    """The members, those that are links at the place of what they lead to."""
    if not links:
        return found.members()
    numbers = found.numbers()
    rows = {member: row for row, member in enumerate(found.names)}
    for member in links.keys() & rows.keys():
        target = _followed(links, member)
        if target in rows:
            numbers[rows[member]] = numbers[rows[target]]
    return found.members(numbers)


def _checked(header: bytes, name: str, at: int) -> int:
    """The size that a header says, once its checksum is found right."""
    if not _is_header(header):
        if at:
            raise DataError(f"{name}: is damaged at byte {at:,} (no tar header there); copy it or {PACK_AGAIN}")
        packed = next((kind for start, kind in COMPRESSED.items() if header.startswith(start)), None)
        if packed is not None:
            raise DataError(
                f"{name}: is compressed by {packed}, so it can't be read by range; unpack it to a plain tar"
            )
        raise DataError(f"{name}: is no tar archive (its first block is no tar header); {PACK_AGAIN}")
    return _whole(header[124:136], name, at, octal=True)


def _is_header(block: bytes) -> bool:
    stated = block[148:156].strip(b" \0")
    return stated.isdigit() and sum(block) - sum(block[148:156]) + 256 == _octal(stated)


def _whole(field: bytes, name: str, at: int, octal: bool = False) -> int:
    """A size: decimal in PAX, octal in headers, or binary where that does not suffice."""
    if octal and field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    text = field.strip(b" \0")
    value = (_octal(text) if octal else int(text[:20])) if text.isdigit() else 0
    if value < 0 or (text and not text.isdigit()):
        raise DataError(f"{name}: is damaged at byte {at:,} (a size that is no number); copy it or {PACK_AGAIN}")
    return value


def _octal(digits: bytes) -> int:
    """The number, -1 if these are no octal digits."""
    return -1 if digits.strip(b"01234567") else int(digits, 8)


def _extended(file: ForwardBytes, name: str, at: int, kind: bytes, size: int) -> dict[bytes, bytes]:
    """What a further header says of the next member."""
    if at + BLOCK + size > file.size_bytes:
        raise _cut_short(file, name, at)
    if size > MOST_EXTENDED_BYTES:
        raise DataError(f"{name}: has {size:,} bytes about one member at byte {at:,}; it may be damaged, {PACK_AGAIN}")
    body = file.take(at + BLOCK, size)
    if kind != EXTENDED:
        return {b"path" if kind == LONG_NAME else b"linkpath": _text(body)}
    found, start = dict[bytes, bytes](), 0
    while start < len(body) and body[start]:
        digits = body[start : start + 8].partition(b" ")[0]
        length = int(digits) if digits.isdigit() else 0
        record = body[start + len(digits) + 1 : start + length - 1]
        if not length or not record or start + length > len(body):
            raise DataError(f"{name}: is damaged at byte {at:,} (no PAX header); copy it or {PACK_AGAIN}")
        key, _, value = record.partition(b"=")
        if key in USED or key.startswith(SPARSE_KEY):
            found[SPARSE_KEY if key not in USED else key] = value
        start += length
    return found


def _cut_short(file: ForwardBytes, name: str, at: int) -> DataError:
    return DataError(
        f"{name}: is cut short ({file.size_bytes:,} bytes; the member at byte {at:,} or the end marker is missing); "
        f"copy it again, or {PACK_AGAIN}"
    )


def _name_in(header: bytes) -> bytes:
    name = _text(header[:100])
    if header[257:263] != b"ustar\0":  # GNU's keeps times where the prefix would be
        return name
    prefix = _text(header[345:500])
    return prefix + b"/" + name if prefix else name


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
