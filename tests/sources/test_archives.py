"""Archives are read as the folder that they were made of, whatever form they have and wherever they lie."""

import functools
import http.server
import itertools
import os
import pickle
import shutil
import tarfile
import threading
import zipfile

import numpy as np
import pytest
from archives import FORMATS, pack_shards, pack_tar, pack_zip
from PIL import Image

from raybench import storage
from raybench.errors import ConfigError, DataError, InputError
from raybench.formats.limits import Limits
from raybench.sources import archive_files
from raybench.sources.archive_names import archive_uris, is_archive
from raybench.sources.image_files import ImageFiles

LONG = "y" * 60 + "/" + "z" * 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty pictures, some below folders, with other files beside them, hidden ones and links."""
    root = tmp_path_factory.mktemp("made") / "refs"
    random = np.random.default_rng(0)
    for number in range(40):
        path = root / (f"below/{number:03d}.png" if number % 4 == 0 else f"R{number:03d}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 255, (10 + number % 3, 12, 3), np.uint8)).save(path)
    (root / "R001.json").write_text("{}")
    (root / ".hidden.jpg").write_bytes(b"x")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX/._R001.jpg").write_bytes(b"x")
    (root / LONG).parent.mkdir()
    shutil.copy(root / "R002.jpg", root / f"{LONG}ä.jpg")
    os.link(root / "R003.jpg", root / "hard.jpg")
    (root / "below/soft.jpg").symlink_to("../R005.jpg")
    return root


def scan(root, **how):
    return ImageFiles.scan(str(root), recursive=True, **how)


PACKED = {
    **{
        form: lambda folder, to, form=form: pack_tar(folder, to / "x.tar", form=form)
        for form in FORMATS
        if form != "ustar"
    },
    "leading ./": lambda folder, to: pack_tar(folder, to / "x.tar", "./"),
    "in a folder": lambda folder, to: pack_tar(folder, to / "x.tar", "refs/"),
    "shards": lambda folder, to: pack_shards(folder, to / "shards", 7),
    "zip": lambda folder, to: pack_zip(folder, to / "x.ZIP"),
    "deflated zip": lambda folder, to: pack_zip(folder, to / "refs.zip", "refs/", zipfile.ZIP_DEFLATED),
}


@pytest.mark.parametrize("form", PACKED)
def test_an_archive_has_the_names_and_contents_of_its_folder(form, folder, tmp_path):
    packed, plain = scan(PACKED[form](folder, tmp_path)), scan(folder)
    assert tuple(packed.keys) == tuple(plain.keys)
    order = np.random.default_rng(1).permutation(len(plain)).tolist()
    packed = pickle.loads(pickle.dumps(packed))
    assert list(packed.files.read_each(order)) == list(plain.files.read_each(order))
    for count in (16, 10_000, None):
        assert packed.files.read_starts(order, count) == plain.files.read_starts(order, count)
    part = packed.taken(np.array([5, 2]))
    assert [part.read(1), part.files.read(0, 4)] == [plain.read(2), plain.files.read(5, 4)]
    assert list(packed.files.read_each([])) == []


def test_a_folder_around_all_images_counts_as_it_does_in_the_folder_that_was_packed(tmp_path):
    for name in ("refs/all/a/1.jpg", "refs/all/b/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(b"x")
    for above in (".", "./refs", "refs"):
        with tarfile.open(tmp_path / "x.tar", "w") as archive:
            archive.add(tmp_path / "refs", above)
        for _ in range(2):
            assert tuple(scan(tmp_path / "x.tar", store=f"{tmp_path}/store").keys) == ("all/a/1.jpg", "all/b/1.jpg")


def test_by_content_an_archive_counts_as_its_folder(folder, tmp_path):
    expected = scan(folder, by_content=True).digest
    for form in PACKED:
        (tmp_path / form).mkdir()
        assert scan(PACKED[form](folder, tmp_path / form), by_content=True).digest == expected, form


def test_the_digest_changes_with_the_archive_and_not_with_its_place(folder, tmp_path):
    before = scan(pack_tar(folder, tmp_path / "a.tar")).digest
    (tmp_path / "elsewhere").mkdir()
    moved = (tmp_path / "a.tar").rename(tmp_path / "elsewhere/b.tar")
    assert scan(moved).digest == before
    times = moved.stat()
    pack_tar(folder, moved)
    os.utime(moved, ns=(times.st_atime_ns, times.st_mtime_ns + 10**9))
    assert scan(moved).digest != before


def test_an_archive_is_listed_once(folder, tmp_path, monkeypatch):
    pattern, store = pack_shards(folder, tmp_path / "shards", 3), f"{tmp_path}/store"
    found = scan(pattern, store=store)
    assert len(storage.list_files(store)) == 3
    monkeypatch.setattr(storage, "read_range", None)  # which reads archives
    again = scan(pattern, store=store)
    assert (again.digest, tuple(again.keys)) == (found.digest, tuple(found.keys))


def test_a_broken_index_is_made_again(folder, tmp_path, caplog):
    archive, store = pack_tar(folder, tmp_path / "x.tar"), f"{tmp_path}/store"
    found = scan(archive, store=store)
    index = storage.join(store, storage.list_files(store)[0].name)
    data = storage.read(index)
    storage.publish(index, data.replace(b"R001.jpg", b"R00x.jpg"))
    assert scan(archive, store=store).digest == found.digest
    assert "the archive is listed again" in caplog.text
    assert storage.read(index) == data


def test_the_index_of_another_archive_in_its_place_is_made_again(tmp_path, caplog):
    archives, indexes = [], []
    for number, names in enumerate((["a.jpg", "b.jpg"], ["b.jpg", "a.jpg"])):
        (tmp_path / str(number)).mkdir()
        for name in names:
            (tmp_path / str(number) / name).write_bytes(name.encode() + bytes([number]))
        archives.append(pack_tar(tmp_path / str(number), tmp_path / f"{number}.tar", names=names))
        scan(archives[-1], store=f"{tmp_path}/store{number}")
        indexes.append(next((tmp_path / f"store{number}/indexes").iterdir()))
    shutil.copy(indexes[0], indexes[1])
    images = scan(archives[1], store=f"{tmp_path}/store1")
    assert [images.read(place) for place in range(2)] == [b"a.jpg\1", b"b.jpg\1"]
    assert "the archive is listed again" in caplog.text


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir, lambda place: place.symlink_to("/no/such/file")])
def test_what_is_no_file_in_the_place_of_an_index_is_none(put, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"a")
    archive, store = pack_tar(tmp_path, tmp_path / "x.tar", names=["a.jpg"]), tmp_path / "store"
    scan(archive, store=str(store))
    (index,) = (store / "indexes").iterdir()
    index.unlink()
    put(index)
    assert tuple(scan(archive, store=str(store)).keys) == ("a.jpg",)
    assert index.is_file() and not index.is_symlink()


def test_without_a_store_nothing_is_kept(folder, tmp_path):
    scan(pack_tar(folder, tmp_path / "x.tar"))
    assert [path.name for path in tmp_path.iterdir()] == ["x.tar"]


def test_neighbours_are_read_together(folder, tmp_path, monkeypatch):
    images = scan(pack_tar(folder, tmp_path / "x.tar"))
    asked, read_range = [], storage.read_range
    monkeypatch.setattr(storage, "read_range", lambda *at: (asked.append(at), read_range(*at))[1])
    assert len(list(images.files.read_each(range(len(images))))) == len(images)
    assert len(asked) == 1


def test_what_is_held_is_bounded_by_a_window(folder, tmp_path, monkeypatch):
    images = scan(pack_tar(folder, tmp_path / "x.tar"))
    monkeypatch.setattr(archive_files, "WINDOW_BYTES", 2_000)
    windows = list(images.files._windows(range(len(images))))
    assert list(itertools.chain(*windows)) == list(range(len(images)))
    assert max(images.files.places.span[window].sum() for window in windows) <= 2_000


def test_an_archive_that_was_rewritten_since_is_said(folder, tmp_path):
    archive = pack_tar(folder, tmp_path / "x.tar")
    images = scan(archive)
    os.utime(archive, ns=(1, 1))
    with pytest.raises(DataError, match=r"x\.tar: was rewritten since it was listed; run again"):
        images.read(0)
    archive.unlink()
    with pytest.raises(DataError, match=r"x\.tar: is gone since it was listed"):
        images.read(0)


def test_an_archive_that_is_replaced_as_it_is_read_or_listed_is_said(folder, tmp_path, monkeypatch):
    archive, other = pack_tar(folder, tmp_path / "x.tar"), pack_tar(folder, tmp_path / "y.tar", "./")
    images, read_range = scan(archive), storage.read_range

    def replaced(*at):
        if other.exists():
            other.rename(archive)
        return read_range(*at)

    monkeypatch.setattr(storage, "read_range", replaced)
    with pytest.raises(DataError, match=r"x\.tar: was rewritten since it was listed; run again"):
        images.read(0)
    pack_tar(folder, other)
    with pytest.raises(InputError, match=r"x\.tar: was rewritten since it was listed; run again"):
        scan(archive, store=f"{tmp_path}/store")
    assert not storage.list_files(f"{tmp_path}/store")


def test_a_folder_with_an_archives_name_is_a_folder(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "x.tar", symlinks=True)
    assert tuple(scan(tmp_path / "x.tar").keys) == tuple(scan(folder).keys)


def test_a_member_of_a_zip_with_another_checksum_is_said(folder, tmp_path):
    archive = pack_zip(folder, tmp_path / "x.zip")
    images = scan(archive)
    times, data = archive.stat(), bytearray(archive.read_bytes())
    data[int(images.files.places.start[3] + images.files.places.span[3]) - 1] ^= 1
    archive.write_bytes(data)
    os.utime(archive, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(DataError, match="another checksum"):
        images.read(3)
    assert images.read(2)


def test_a_link_to_nothing_is_said_when_it_is_read(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jpg").symlink_to("nowhere.jpg")
    images = scan(pack_tar(tmp_path / "in", tmp_path / "x.tar"))
    with pytest.raises(DataError, match=r"x\.tar/a\.jpg: is a link to what is no image of the archive"):
        images.read(0)


@pytest.mark.parametrize("suffix", ["tar.gz", "tgz", "tar.zst"])
def test_what_is_compressed_whole_is_refused(tmp_path, suffix):
    with pytest.raises(ConfigError, match=r"is compressed as a whole.*unpack it to a plain \.tar"):
        is_archive(f"{tmp_path}/x.{suffix}")


def test_a_missing_archive_and_a_missing_shard_are_named(folder, tmp_path):
    with pytest.raises(DataError, match=r"none\.tar: does not exist"):
        scan(tmp_path / "none.tar")
    pack_shards(folder, tmp_path, 2)
    with pytest.raises(InputError, match=r"shard-002\.tar does not exist; copy it there, or mend the range"):
        scan(f"{tmp_path}/shard-{{000..002}}.tar")


def test_every_broken_shard_is_said(folder, tmp_path):
    pattern = pack_shards(folder, tmp_path, 4)
    for number in (1, 3):
        (tmp_path / f"shard-00{number}.tar").write_bytes(b"x" * 600)
    with pytest.raises(InputError) as said:
        scan(pattern)
    assert [line.split(": ")[1] for line in said.value.lines()] == 2 * [
        "is no tar archive (its first block is no tar header); pack it again with `tar -cf`"
    ]


@pytest.mark.parametrize("name", ["../out.jpg", "/etc/out.jpg", "a/../../out.jpg", "bad\udcff.jpg"])
def test_names_that_lead_elsewhere_are_refused(folder, tmp_path, name):
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo(name))
    with pytest.raises(InputError, match=r"leads elsewhere|is no UTF-8"):
        scan(tmp_path / "x.tar")


def test_names_that_come_twice_are_said(folder, tmp_path):
    pattern = pack_shards(folder, tmp_path, 2)
    shutil.copy(tmp_path / "shard-000.tar", tmp_path / "shard-001.tar")
    with pytest.raises(InputError, match=r"is in .*shard-000\.tar and in .*shard-001\.tar; pack each image once"):
        scan(pattern)


def test_an_archive_without_images_is_said(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.txt").write_text("x")
    with pytest.raises(DataError, match="holds 1 other files and no image"):
        scan(pack_tar(tmp_path / "in", tmp_path / "x.tar"))


def test_a_zip_that_unpacks_to_more_than_a_picture_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jpg", bytes(70 * 2**20))
    with pytest.raises(InputError, match=r"a\.jpg: unpacks to 73,400,320 bytes, more than a picture takes"):
        scan(tmp_path / "x.zip", limits=Limits(pixels=1_000))


@pytest.mark.parametrize(
    "pattern",
    ["x-{}.tar", "x-{3..1}.tar", "x-{a..c}.tar", "x-{0..9999999}.tar", "x-{1,1}.tar", f"x-{{0..{'9' * 19}}}.tar"],
)
def test_a_pattern_that_names_no_archives_is_refused(pattern):
    with pytest.raises(ConfigError, match="x-"):
        archive_uris(pattern)


def test_a_range_may_be_of_time_stamps():
    assert archive_uris("x-{1700000000008..1700000000009}.tar") == ["x-1700000000008.tar", "x-1700000000009.tar"]


def test_a_server_that_reads_nothing_by_range_is_said_at_once(folder, tmp_path):
    pack_tar(folder, tmp_path / "x.tar")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        images = scan(f"http://127.0.0.1:{server.server_port}/x.tar")  # small enough to be read at once
        with pytest.raises(InputError, match=r"x\.tar: the server gave [0-9,]+ bytes where .* copy the file to a disk"):
            images.read(0)
        server.shutdown()


def test_archives_on_object_storage_are_read_likewise(folder, tmp_path, s3):
    for form in ("shards", "zip"):
        PACKED[form](folder, tmp_path)
    uri, plain = s3.upload(tmp_path, f"{s3.bucket('archives')}/set"), scan(folder)
    for name in ("shards/shard-{000..006}.tar", "x.ZIP"):
        packed = scan(f"{uri}/{name}", store=f"{uri}/store")
        assert tuple(packed.keys) == tuple(plain.keys)
        assert list(packed.files.read_each(range(len(plain)))) == list(plain.files.read_each(range(len(plain))))
        assert scan(f"{uri}/{name}", store=f"{uri}/store").digest == packed.digest
    assert len(storage.list_files(f"{uri}/store")) == 8
    with pytest.raises(InputError, match=r"shard-007\.tar does not exist"):
        scan(f"{uri}/shards/shard-{{000..007}}.tar")
    packed.read(0)
    storage.publish(f"{uri}/x.ZIP", storage.read(f"{uri}/x.ZIP")[::-1])
    with pytest.raises(DataError, match=r"x\.ZIP: was rewritten since it was listed; run again"):
        packed.read(1)
