import pickle

import pytest

from raybench.errors import DataError
from raybench.sources.files import FolderFiles
from raybench.sources.image_files import ImageFiles, double_stems, list_images


@pytest.fixture
def folder(tmp_path):
    for name in ("b.jpg", "a.PNG", "c.JPeG", "notes.txt", ".hidden.jpg", "below/d.webp", ".git/e.jpg"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def test_images_are_listed_by_name_whatever_the_case_of_their_suffix(folder):
    assert ImageFiles.scan(str(folder)).keys == ("a.PNG", "b.jpg", "c.JPeG")


def test_folders_below_are_listed_if_asked_for_but_hidden_ones_never(folder):
    assert ImageFiles.scan(str(folder), recursive=True).keys == ("a.PNG", "b.jpg", "below/d.webp", "c.JPeG")


def test_an_item_is_read_by_its_place_even_after_pickling(folder):
    images = pickle.loads(pickle.dumps(ImageFiles.scan(str(folder))))
    assert images.read(1) == b"b.jpg"
    assert images.files.read(1, 1) == b"b"


def test_keys_are_the_same_in_another_process():
    keys = ("a.jpg", "ä/ö.png", "", "\udcff.jpg", "日本.webp")
    arrived = pickle.loads(pickle.dumps(ImageFiles(FolderFiles("root", keys), "digest")))
    assert (tuple(arrived.keys), arrived.root, arrived.digest) == (keys, "root", "digest")
    assert (arrived.keys[-1], arrived.keys[1:3]) == (keys[-1], list(keys[1:3]))
    assert pickle.loads(pickle.dumps(arrived)).uri(1) == "root/ä/ö.png"


def test_a_million_keys_travel_beside_the_pickle():
    folder = ImageFiles(FolderFiles("root", tuple(f"{number:06d}.jpg" for number in range(10**6))), "digest")
    buffers = []
    assert len(pickle.dumps(folder, protocol=5, buffer_callback=buffers.append)) < 1_000
    assert sum(len(buffer.raw()) for buffer in buffers) == (10 + 8) * 10**6


def test_a_part_of_a_folder_has_its_own_digest(folder):
    entries = list_images(str(folder))
    assert ImageFiles.of(str(folder), entries[::-1]) == ImageFiles.scan(str(folder))
    part = ImageFiles.of(str(folder), entries[1:])
    assert part.keys == ("b.jpg", "c.JPeG")
    assert part.digest != ImageFiles.scan(str(folder)).digest


def test_the_digest_changes_with_a_rewritten_file(folder):
    before = ImageFiles.scan(str(folder)).digest
    (folder / "b.jpg").write_bytes(b"other")
    assert ImageFiles.scan(str(folder)).digest != before


def test_by_content_an_edit_of_the_same_size_and_time_is_seen_and_a_touch_is_not(folder):
    import os

    path = folder / "b.jpg"
    times = path.stat()
    named, content = ImageFiles.scan(str(folder)).digest, ImageFiles.scan(str(folder), by_content=True).digest
    path.write_bytes(b"B.JPG")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ImageFiles.scan(str(folder)).digest == named
    assert ImageFiles.scan(str(folder), by_content=True).digest != content
    path.write_bytes(b"b.jpg")
    assert ImageFiles.scan(str(folder), by_content=True).digest == content


def test_a_folder_without_images_and_a_missing_one_are_said(tmp_path):
    with pytest.raises(DataError, match="is empty; expected a folder with images"):
        ImageFiles.scan(str(tmp_path))
    with pytest.raises(DataError, match="does not exist"):
        ImageFiles.scan(str(tmp_path / "none"))


def test_a_file_that_has_gone_since_is_said(folder):
    images = ImageFiles.scan(str(folder))
    (folder / "b.jpg").unlink()
    with pytest.raises(DataError, match=r"b\.jpg: is gone"):
        images.read(1)


def test_files_that_share_a_stem_are_listed_for_whoever_matches_by_it(folder):
    assert not double_stems(ImageFiles.scan(str(folder)).keys)
    (folder / "a.jpg").write_bytes(b"")
    assert double_stems(ImageFiles.scan(str(folder)).keys) == [
        "a.PNG and a.jpg have the same name but for folder and suffix"
    ]


def test_a_folder_on_object_storage_is_the_same_keys(folder, s3):
    uri = s3.upload(folder, f"{s3.bucket('pictures')}/set")
    images = ImageFiles.scan(uri)
    assert images.keys == ("a.PNG", "b.jpg", "c.JPeG")
    assert images.read(2) == b"c.JPeG"
    assert images.files.read(2, 3) == b"c.J"
