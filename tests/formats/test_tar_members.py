"""Tar headers: every way in which one can be broken is one clear line, and listing reads headers, not contents."""

import io
import tarfile
import time

import numpy as np
import pytest

from raybench.errors import DataError
from raybench.formats.archive_members import LINK_TO_NOTHING
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.tar_members import tar_members


def packed(sizes, form=tarfile.GNU_FORMAT, **more):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, size in sizes.items():
            info = tarfile.TarInfo(name)
            info.size = size
            for key, value in more.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(name.encode()[:1] * size))
    return file.getvalue()


def listed(data, far_bytes=4_096, asked=None):
    def read_range(start, end):
        if asked is not None:
            asked.append(end - start)
        return data[start:end]

    return tar_members(ForwardBytes(read_range, len(data), far_bytes), "x.tar", lambda name: name.endswith(".jpg"))


def test_members_lie_where_they_are_said_to():
    data = packed({"a.jpg": 700, "b.txt": 10, "./c/d.jpg": 0, "e" * 150 + ".jpg": 3})
    found = listed(data)
    assert (found.names, found.others) == (["a.jpg", "c/d.jpg", "e" * 150 + ".jpg"], 1)
    assert found.places.size.tolist() == [700, 0, 3]
    assert data[found.places.start[0] :][:700] == b"a" * 700
    assert data[found.places.start[2] :][:3] == b"eee"


def test_large_members_are_skipped_and_small_ones_read_in_blocks():
    asked = []
    listed(packed({f"{number}.jpg": 2**20 for number in range(9)}), asked=asked)
    assert sum(asked) < 200_000
    asked = []
    listed(packed({f"{number}.jpg": 600 for number in range(500)}), far_bytes=2**18, asked=asked)
    assert len(asked) <= 5


def test_a_size_of_more_than_eight_gigabytes_is_read_in_either_form():
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        info = tarfile.TarInfo("a.jpg")
        info.size = 9 * 2**30
        head = info.tobuf(form)
        size_bytes = len(head) + info.size + 1_024

        def read_range(start, end, head=head):
            return head[start:end].ljust(end - start, b"\0")

        found = tar_members(ForwardBytes(read_range, size_bytes, 4_096), "x.tar", lambda name: True)
        assert found.places.size.tolist() == [9 * 2**30]


def linked(*links, image="./one/a.jpg"):
    """An archive with an image of five bytes behind symbolic links."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
        info = tarfile.TarInfo(image)
        info.size = 5
        archive.addfile(info, io.BytesIO(b"12345"))
    return file.getvalue()


def test_links_lead_to_members_however_many_stand_between():
    links = (("b/1.jpg", "2.jpg"), ("b/2.jpg", "../a.jpg"), ("c.jpg", "c.jpg"), ("d.jpg", "e.jpg"))
    found = listed(linked(*links, image="a.jpg"))
    assert found.places.size.tolist() == [5, 5, 0, 0, 5]
    assert (found.places.method == LINK_TO_NOTHING).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("links", [[("two", "one")], [("b/two", "../one/")], [("two", "three"), ("three", "./one")]])
def test_a_link_to_a_folder_of_images_is_said(links):
    with pytest.raises(DataError, match=r"two is a link to the folder one, whose images are not packed again"):
        listed(linked(*links))


@pytest.mark.parametrize("link", [("one/up", "../one"), ("all", "."), ("out", "../one"), ("notes", "one/a.txt")])
def test_a_link_that_adds_no_image_is_let_pass(link):
    assert listed(linked(link)).names == ["one/a.jpg"]


def test_a_link_may_lead_through_one_without_an_images_suffix():
    found = listed(linked(("b.jpg", "newest"), ("newest", "one/a.jpg")))
    assert dict(zip(found.names, found.places.size.tolist(), strict=True)) == {"b.jpg": 5, "one/a.jpg": 5}


def with_pax(records):
    """An archive whose only member has these records before it."""
    info = tarfile.TarInfo("more")
    info.type, info.size = tarfile.XHDTYPE, len(records)
    return info.tobuf(tarfile.USTAR_FORMAT) + records.ljust(512, b"\0") + packed({"a.jpg": 3})


def of_size(size):
    info = tarfile.TarInfo("a.jpg")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(2_048)


def broken(change):
    data = bytearray(packed({"a.jpg": 700, "b.jpg": 700}))
    return bytes(change(data) or data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is cut short"),
        (b"text" * 200, "is no tar archive"),
        (b"\x1f\x8b\x08" + bytes(600), "is compressed by gzip"),
        (b"(\xb5/\xfd" + bytes(600), "is compressed by zstd"),
        (broken(lambda data: data[:1_400]), "is cut short"),
        (broken(lambda data: data[:1_536]), "is cut short"),
        (broken(lambda data: data[:3_072]), "is cut short"),
        (broken(lambda data: data.__setitem__(1_540, 7)), "is damaged at byte 1,536"),
        (packed({"a.jpg": 3}) + packed({"b.jpg": 3}), "another archive behind its end, at byte 10,240"),
        (packed({"a.jpg": 3}, type=b"M"), "a.jpg is no file, but of kind b'M'"),
        (with_pax(b"0 path=b.jpg\n"), "is damaged at byte 0 .no PAX header"),
        (with_pax(b"x path=b.jpg\n"), "is damaged at byte 0 .no PAX header"),
        (with_pax(b"13 path=b.jpg\n3 path=c.jpg\n"), "is damaged at byte 0 .no PAX header"),
        (of_size(-1), "is cut short"),
        (of_size(2**80), "is cut short"),
        (packed({"a.jpg": 3}, tarfile.PAX_FORMAT, pax_headers={"GNU.sparse.major": "1"}), "a.jpg is sparse"),
    ],
)
def test_what_is_broken_is_said(data, words):
    with pytest.raises(DataError, match=words):
        listed(data)


def test_a_name_of_a_megabyte_takes_no_time():
    start = time.process_time()
    info = tarfile.TarInfo("./" * 2**18 + "a.jpg")
    assert listed(info.tobuf(tarfile.GNU_FORMAT) + bytes(1_024)).names == ["a.jpg"]
    info = tarfile.TarInfo("a/" * 2**18 + "a.jpg")
    assert listed(info.tobuf(tarfile.GNU_FORMAT) + linked(("two", "three"))).names[0] == info.name
    assert time.process_time() - start < 0.5


def sparse(name, further):
    """A member as `tar -S` packs it: the map of what is no hole goes on in further blocks, then 700 bytes follow."""
    info = tarfile.TarInfo(name)
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 700
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[482] = further > 0
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    blocks = [bytes(504) + bytes([number < further - 1]) + bytes(7) for number in range(further)]
    return bytes(head) + b"".join(blocks) + bytes(1_024)


@pytest.mark.parametrize("further", [0, 1, 3])
def test_a_sparse_member_that_is_no_image_hides_none_behind_it(further):
    assert listed(sparse("a.db", further) + packed({"b.jpg": 700})).names == ["b.jpg"]
    with pytest.raises(DataError, match=r"a\.jpg is sparse, so it can't be read by range"):
        listed(sparse("a.jpg", further) + packed({"b.jpg": 700}))


def test_another_archive_is_found_behind_large_blocks_of_zeros():
    data = packed({"a.jpg": 3})
    with pytest.raises(DataError, match="another archive behind its end, at byte 2,097,152"):
        listed(data.ljust(2**21, b"\0") + data, far_bytes=2**17)


def test_what_stands_behind_the_end_and_is_no_archive_is_let_pass():
    assert listed(packed({"a.jpg": 3}) + b"padding" * 99).names == ["a.jpg"]


def test_devices_are_no_images():
    assert listed(packed({"a.jpg": 0}, type=tarfile.FIFOTYPE)).names == []


def test_members_take_little_memory():
    found = listed(packed({f"{number:06d}.jpg": 0 for number in range(2_000)}))
    assert sum(column.nbytes for column in found.places.columns().values()) == 29 * 2_000
    assert found.places.start.dtype == np.int64
