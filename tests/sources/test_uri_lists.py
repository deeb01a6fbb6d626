"""Lists of images by URI: names, relative URIs, what is wrong with lines, and which Parquet files are none."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from archives import write_list

from raybench import remote, storage
from raybench.errors import DataError, InputError
from raybench.sources.image_files import ImageFiles
from raybench.sources.uri_lists import is_image_list


@pytest.fixture
def folder(tmp_path):
    for name in ("b.jpg", "a.png", "below/c.jpg"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "set"


def parquet(file, **columns):
    pq.write_table(pa.table(columns), file)
    return str(file)


def test_images_go_by_their_stems_in_name_order(folder, tmp_path):
    images = ImageFiles.scan(str(write_list(folder, tmp_path / "list.csv")))
    assert tuple(images.keys) == ("a", "b", "c")
    assert [images.read(place) for place in range(3)] == [b"a.png", b"b.jpg", b"below/c.jpg"]
    assert list(images.files.read_each([2, 0])) == [b"below/c.jpg", b"a.png"]
    assert images.taken(np.array([2])).uri(0) == f"{folder}/below/c.jpg"


def test_names_may_be_given_and_parquet_says_the_same_as_csv(folder, tmp_path):
    (tmp_path / "list.csv").write_text("name,uri\nz,set/b.jpg\n,set/a.png\n")
    uris = [f"{folder}/b.jpg", "set/a.png"]
    found = [
        ImageFiles.scan(one)
        for one in (f"{tmp_path}/list.csv", parquet(tmp_path / "list.parquet", uri=uris, name=["z", None]))
    ]
    assert [tuple(one.keys) for one in found] == 2 * [("a", "z")]
    assert found[0].digest == found[1].digest


def test_a_comma_between_quotes_is_part_of_a_column_name_or_a_uri(folder, tmp_path):
    (folder / "d, e.png").write_bytes(b"d")
    (tmp_path / "list.csv").write_text('"uri","note, by whom"\n"set/d, e.png",me\nset/b.jpg,"x, y"\n')
    assert tuple(ImageFiles.scan(f"{tmp_path}/list.csv").keys) == ("b", "d, e")


def test_text_of_parquet_may_be_of_any_kind(folder, tmp_path):
    kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())]
    for number, kind in enumerate(kinds):
        columns = {"uri": pa.array(["set/b.jpg", "set/a.png"]), "name": pa.array(["y", None])}
        columns = {name: column.cast(kind) for name, column in columns.items()}
        assert tuple(ImageFiles.scan(parquet(tmp_path / f"{number}.parquet", **columns)).keys) == ("a", "y"), kind


def test_file_uris_may_be_written_by_pathlib_or_by_hand(folder, tmp_path):
    for name in ("d ä.png", "50%25.png", "e#?.png"):
        (folder / name).write_bytes(name.encode())
    paths = [folder / name for name in ("d ä.png", "50%25.png", "e#?.png")]
    for number, uri in enumerate([lambda path: path.as_uri(), lambda path: f"file://{path}"]):
        images = ImageFiles.scan(parquet(tmp_path / f"{number}.parquet", uri=[uri(path) for path in paths]))
        assert tuple(images.keys) == ("50%25", "d ä", "e#?")
        assert [images.read(place).decode() for place in range(3)] == ["50%25.png", "d ä.png", "e#?.png"]
    named = parquet(tmp_path / "named.parquet", uri=[paths[0].as_uri()], name=["x%20"])
    assert tuple(ImageFiles.scan(named).keys) == ("x%20",)


def test_the_digest_changes_with_an_image_and_not_with_the_place_of_all(folder, tmp_path):
    uri = str(write_list(folder, tmp_path / "list.csv"))
    before = ImageFiles.scan(uri).digest
    (tmp_path / "other").mkdir()
    folder.rename(tmp_path / "other/set")
    (tmp_path / "list.csv").rename(tmp_path / "other/list.csv")
    assert ImageFiles.scan(f"{tmp_path}/other/list.csv").digest == before
    os.utime(tmp_path / "other/set/b.jpg", ns=(1, 1))
    assert ImageFiles.scan(f"{tmp_path}/other/list.csv").digest != before


def test_names_that_two_files_of_one_size_and_time_exchange_change_the_digest(folder, tmp_path):
    for name in ("b.jpg", "a.png"):
        os.utime(folder / name, ns=(1, 1))  # as from an archive that was made with one time for all
    digests = []
    for text in ("set/b.jpg,x\nset/a.png,y\n", "set/b.jpg,y\nset/a.png,x\n", "set/a.png,x\nset/b.jpg,y\n"):
        (tmp_path / "list.csv").write_text(f"uri,name\n{text}")
        digests.append([ImageFiles.scan(f"{tmp_path}/list.csv", by_content=way).digest for way in (False, True)])
    assert digests[1] == digests[2]
    assert not set(digests[0]) & set(digests[1])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("url,name\na,b\n", r"no column uri \(it has: url, name\)"),
        ("", "no column uri"),
        ("uri\n", "lists no image"),
        ("uri,name\n,x\n", "line 2: no uri"),
        ("uri\nset/b.jpg\nset/b.jpg\n", "line 2 and line 3: both named 'b'"),
        ("uri\nset/none.jpg\n", "line 2: .*set/none.jpg does not exist; mend the uri"),
        ("uri\nset/b.jpg,1\n", r"line 2: 2 columns, expected 1 \(uri\)"),
        ("uri,uri\na,b\n", "column uri twice"),
        ("uri\ns3://key:secret@b/a.jpg\n", "line 2: s3://…: a URI must not carry credentials"),
        ("uri\nfoo://b/a.jpg\n", "unknown scheme 'foo'"),
        ("uri,name\nset/b.jpg,../b\n", "leads elsewhere"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(folder, tmp_path, text, words):
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        ImageFiles.scan(f"{tmp_path}/list.csv")


def test_all_that_is_wrong_with_a_list_is_said_together(folder, tmp_path):
    (tmp_path / "list.csv").write_text(
        "uri,name\n,x\nset/none.jpg,y\nset/a.png,z\nset/b.jpg,z\nfoo://b/a.jpg,w\nset/b.jpg\nset/none.png,../v\n"
    )
    with pytest.raises(InputError) as raised:
        ImageFiles.scan(f"{tmp_path}/list.csv")
    lines = raised.value.lines()
    expected = ["line 7: 1 columns", "line 2: no uri", "line 4 and line 5: both named 'z'", "'../v' leads elsewhere"]
    expected += ["line 6: foo://b: unknown scheme", "line 3: ", "line 8: "]
    assert len(lines) == len(expected)
    for line, words in zip(lines, expected, strict=True):
        assert line.startswith(f"{tmp_path}/list.csv: ") and words in line


def test_missing_images_are_counted(folder, tmp_path):
    (tmp_path / "list.csv").write_text("uri\n" + "".join(f"{number}.jpg\n" for number in range(9)))
    with pytest.raises(InputError, match="9 images that do not exist in all, 5 are shown"):
        ImageFiles.scan(f"{tmp_path}/list.csv")


def test_names_that_no_file_can_have_are_said_line_by_line(folder, tmp_path):
    (tmp_path / "l.csv").write_text(f"uri\nin/{'x' * 300}.jpg\nin/a\0.jpg\n{'x/' * 3_000}b.jpg\n")
    with pytest.raises(InputError) as said:
        ImageFiles.scan(str(tmp_path / "l.csv"))
    missing = [line for line in said.value.lines() if "does not exist; mend the uri" in line]
    assert [line.partition("l.csv: ")[2][:6] for line in missing] == ["line 2", "line 3", "line 4"]


def test_a_list_that_is_not_there_is_said(tmp_path):
    for read in (ImageFiles.scan, is_image_list):
        with pytest.raises(DataError, match="does not exist"):
            read(f"{tmp_path}/list.parquet")


def test_lists_are_told_from_vectors(tmp_path):
    vectors = pa.array([[0.5, 1.0]], pa.list_(pa.float32()))
    assert is_image_list(parquet(tmp_path / "a.parquet", uri=["x"], label=["y"]))
    assert not is_image_list(parquet(tmp_path / "b.parquet", image_names=["x"], vectors=vectors))
    assert not is_image_list(parquet(tmp_path / "c.parquet", uri=["x"], embeddings=vectors))
    assert is_image_list(f"{tmp_path}/d.csv")
    assert not is_image_list(f"{tmp_path}/d.npz")
    (tmp_path / "e.csv").mkdir()
    assert not is_image_list(f"{tmp_path}/e.csv")
    (tmp_path / "f.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no Parquet file"):
        is_image_list(f"{tmp_path}/f.parquet")
    neither = r"no column uri \(it has: path\); expected uri and perhaps name, or vectors and image_names"
    with pytest.raises(DataError, match=neither):
        is_image_list(parquet(tmp_path / "g.parquet", path=["x"]))


def test_many_images_of_a_folder_on_object_storage_take_one_listing(tmp_path, s3, monkeypatch):
    (tmp_path / "set").mkdir()
    for number in range(50):
        (tmp_path / f"set/{number}.jpg").write_bytes(b"x")
    uri = s3.upload(tmp_path / "set", f"{s3.bucket('listed')}/set")
    storage.publish(f"{uri}.csv", b"uri\n" + b"".join(b"set/%d.jpg\n" % number for number in range(50)))
    asked = []
    monkeypatch.setattr(remote, "facts", asked.append)
    images = ImageFiles.scan(f"{uri}.csv")
    assert (len(images), asked) == (50, [])
    assert images.read(0) == b"x"
