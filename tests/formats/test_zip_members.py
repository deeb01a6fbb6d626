"""Zip directories: read as zipfile writes them, and every way in which one can be broken is one clear line."""

import io
import struct
import zipfile

import pytest

from raybench.errors import DataError, InputError
from raybench.formats.archive_members import LINK_TO_NOTHING
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.limits import Limits
from raybench.formats.zip_members import zip_content, zip_members

SIZES = {"a.jpg": 700, "b/c.jpg": 5, "ä.jpg": 0, "n.txt": 9}


def packed(sizes=SIZES, method=zipfile.ZIP_STORED, zip64=False):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, size in sizes.items():
            with archive.open(name, "w", force_zip64=zip64) as member:
                member.write(name.encode()[:1] * size)
    return file.getvalue()


def listed(data, limits=Limits()):  # noqa: B008 (frozen)
    file = ForwardBytes(lambda start, end: data[start:end], len(data), 4_096)
    return zip_members(file, "x.zip", lambda name: name.endswith(".jpg"), limits)


def contents(data):
    found = listed(data)
    columns = (column.tolist() for column in found.places.columns().values())
    return {
        name: zip_content(data[start : start + span], name, method, size, crc)
        for name, start, span, size, method, crc in zip(found.names, *columns, strict=True)
    }


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("zip64", [False, True])
@pytest.mark.parametrize("before", [b"", b"#!/bin/sh\n" * 99])
def test_members_read_back(method, zip64, before):
    data = before + packed(method=method, zip64=zip64)
    assert contents(data) == {"a.jpg": b"a" * 700, "b/c.jpg": b"b" * 5, "ä.jpg": b""}
    assert listed(data).others == 1


def test_a_start_is_read_without_the_rest():
    data = packed(method=zipfile.ZIP_DEFLATED)
    assert zip_content(data, "a.jpg", zipfile.ZIP_DEFLATED, 700, 0, 20) == b"a" * 20


def test_more_members_than_sixteen_bits_count_are_read():
    data = packed({f"{number}.jpg": 0 for number in range(65_600)})
    assert len(listed(data).names) == 65_600


def test_names_from_windows_have_slashes():
    assert zipfile.ZipFile(io.BytesIO(packed({"b\\c.jpg": 1}))).infolist()[0].create_system == 3
    data = bytearray(packed({"b\\c.jpg": 1, "d\\e/f.jpg": 1}))
    assert listed(data).names == ["b\\c.jpg", "d\\e/f.jpg"]
    at = data.index(b"PK\1\2")
    for _ in range(2):  # who made each: Unix as Python writes it, FAT or NTFS as on Windows
        data[at + 5] = 0
        at = data.find(b"PK\1\2", at + 1)
    assert listed(data).names == ["b/c.jpg", "d\\e/f.jpg"]


def test_a_link_is_no_picture():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        info = zipfile.ZipInfo("a.jpg")
        info.create_system, info.external_attr = 3, 0o120777 << 16
        archive.writestr(info, "b.jpg")
    assert listed(file.getvalue()).places.method.tolist() == [LINK_TO_NOTHING]


def with_entry(place, form, value):
    """The archive with another value in its first directory entry."""
    data = bytearray(packed())
    struct.pack_into(form, data, data.index(b"PK\1\2") + place, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is no zip archive"),
        (b"text" * 99, "is no zip archive"),
        (packed()[:-30], "is cut short"),
        (packed()[:60], "is cut short"),
        (packed() + packed({"d.jpg": 3}), "holds another archive before byte 1,086"),
        (packed()[:30] + packed()[200:], "is damaged"),
        (with_entry(8, "<H", 1), r"a\.jpg is encrypted"),
        (with_entry(10, "<H", 12), r"a\.jpg is packed by bzip2, expected stored or deflated"),
        (with_entry(10, "<H", 77), "method 77"),
        (with_entry(42, "<I", 5_000), "is damaged"),
        (with_entry(24, "<I", 2**31), "says that it holds"),
        (with_entry(20, "<I", 2_000), "overlaps"),
        (packed()[:-12] + b"\1\0" + packed()[-10:], "directory has"),
        (packed()[:-18] + b"\1\0" + packed()[-16:], "one part of a zip in several files"),
    ],
)
def test_what_is_broken_is_said(data, words):
    with pytest.raises(InputError, match=words):
        listed(data)


def test_problems_of_one_kind_are_counted():
    data = packed({f"{number}.jpg": 1 for number in range(9)}, zipfile.ZIP_BZIP2)
    with pytest.raises(InputError, match="9 members packed otherwise in all, 5 are shown"):
        listed(data)


def test_another_content_than_the_directory_says_is_found():
    data = packed()
    for size, crc in ((700, 5), (701, 0)):
        with pytest.raises(DataError, match="another checksum"):
            zip_content(data, "a.jpg", 0, size, crc)
    with pytest.raises(DataError, match="not where the archive's directory says"):
        zip_content(data[5:], "a.jpg", 0, 700, 0)
    with pytest.raises(DataError, match="can't be unpacked"):
        zip_content(data[:40] + b"\xff" * 99, "a.jpg", 8, 700, 0)
