"""Whether a folder holds a published set: whole ones are good, and each thing that is wrong is a line that says it."""

import shutil
from dataclasses import replace

import pytest
from small_sets import COUNT, content, make, scaled, small

from raybench import storage
from raybench.datasets import contents
from raybench.datasets.checking import check_set
from raybench.datasets.parts import Exactly, KnownFile
from raybench.datasets.published import PUBLISHED
from raybench.storage import Entry


@pytest.fixture
def found(tmp_path):
    """What is found in a small set's folder, after something was done to it."""

    def check(name, change=lambda root: None, read="sample", at="", published=None):
        chosen = published or small(name)
        root = make(chosen, tmp_path / "set")
        change(root)
        return check_set(name, chosen, str(root / at) if at else str(root), read)

    return check


@pytest.mark.parametrize("read", ["sample", "headers"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_whole_set_is_good_and_enough_for_all_its_commands(found, name, read):
    checked = found(name, read=read)
    assert checked.problems == ()
    assert len(checked.runs) == len(PUBLISHED[name].uses) and not checked.lacking
    assert checked.files > 0 and checked.size_bytes > 0
    assert all(f" {checked.root}" in command or "--features" in command for command in checked.runs)


def removed(name):
    return lambda root: (root / name).unlink()


def written(name, data=b"x"):
    def change(root):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)

    return change


def linked(name):
    def change(root):
        (root / name).unlink()
        (root / name).symlink_to(root / "nowhere")

    return change


def gone(folder):
    return lambda root: shutil.rmtree(root / folder)


BROKEN = [
    ("hpatches", removed("i_autannes/h3.png"), "patches: i_autannes lacks h3.png"),
    ("hpatches", removed("i_autannes/t3.png"), "tough patches: i_autannes lacks t3.png"),
    ("hpatches", written("i_castel/ref.png"), "folders that are not of this set: 1 (i_castel)"),
    ("hpatches", written("i_autannes/e1.png", b""), "i_autannes/e1.png: is empty"),
    ("hpatches", written("i_autannes/e1.png", b"<html>404"), "e1.png: no PNG file"),
    ("hpatches", written("i_autannes/e1.png", content("a.png")), "e1.png: 30x20 px; the height of a patch strip"),
    ("hpatches", written("i_autannes/e1.png", content("a.png", True, 3)), "e1.png: 3 patches, other images of its"),
    ("hbench-tasks", removed("matching/train_hard_illum.benchmark"), "1 of 4 missing (train_hard_illum.benchmark)"),
    ("hbench-tasks", removed("classification/train_easy_pos.pairs"), "1 of 8 missing (train_easy_pos.pairs)"),
    ("hpatches-tasks", removed("verif_neg_intra_split-b.csv"), "1 of 18 missing (verif_neg_intra_split-b.csv)"),
    ("hpatches-tasks", removed("splits/splits.json"), "no splits; expected splits.json in splits/"),
    ("hpatches-tasks", written("splits/splits.json", b"{"), "splits.json: no JSON"),
    ("disc2021", removed("val_ref/R000002.jpg"), "references: 1 of 4 missing (R000002.jpg)"),
    ("disc2021", removed("training/T000003.jpg"), "training: 1 of 4 missing (T000003.jpg)"),
    (
        "disc2021",
        written("val_ref/R9999999.jpg"),
        "references: not of this set, which has R000000.jpg …: 1 (R9999999.jpg)",
    ),
    ("disc2021", written("val_ref/more/R000001.jpg"), "there twice, in several folders: 1 (more/R000001.jpg)"),
    ("disc2021", written("val_query/Q00006.jpg"), "queries: 1 more than the 4 from Q00000.jpg on"),
    ("disc2021", written("val_ref/R000001.jpg", b"<html>"), "val_ref/R000001.jpg: no JPEG image (it starts with"),
    ("disc2021", linked("val_ref/R000001.jpg"), "R000001.jpg: is a link to nothing"),
    ("disc2021", removed("val_groundtruth_matches.csv"), "no truth; expected val_groundtruth_matches.csv or public_"),
    ("disc2021", written("val_groundtruth_matches.csv", b"Q1\n"), "val_groundtruth_matches.csv: line 1"),
    ("disc2021", gone("val_query"), "no queries; expected 4 files Q00000.jpg … in val_query/ or queries/"),
    ("copydays", removed("strong/200100.jpg"), "strong: 3 files .jpg, expected 4: 1 missing"),
    ("copydays", written("crops/40/x.jpg", content("x.jpg")), "crops: 5 files .jpg, expected 4: 1 too many"),
    ("copydays", gone("jpegqual/75"), "no jpegqual; expected 4 files .jpg in jpegqual/75/"),
    ("tss", removed("JODS/pair1/flow2.flo"), "JODS: truth: pair1 lacks flow2.flo"),
    ("tss", gone("JODS/pair1"), "JODS: truth: 1 of 4 folders missing"),
    ("tss", written("JODS/pair1/flow1.flo", content("a.flo")[:-3]), "body has 13 bytes (expected 16)"),
    ("roxford5k", removed("roxford5k/jpg/200100.jpg"), "images: 1 of 4 missing (200100.jpg)"),
    ("roxford5k", written("roxford5k/gnd_roxford5k.json", b"[]"), "gnd_roxford5k.json: list at the top; expected"),
    (
        "rparis6k",
        removed("rparis6k/gnd_rparis6k.json"),
        "no truth; expected gnd_rparis6k.json (made from gnd_rparis6k.pkl; `raybench datasets` shows how) in",
    ),
    ("revisitop1m", removed("revisitop1m/jpg/200300.jpg"), "images: 1 of 4 missing (200300.jpg)"),
    ("revisitop1m", written("revisitop1m/revisitop1m.txt", b"200000.jpg\n"), "names 1 images, published are 4"),
    ("revisitop1m", written("revisitop1m/revisitop1m.txt", b"\xff\n"), "revisitop1m.txt: no UTF-8 text"),
    ("liberty", removed("patches0001.bmp"), "patches: 1 of 4 missing (patches0001.bmp)"),
    (
        "liberty",
        written("patches0001.bmp", content("a.bmp")[:50]),
        "of another size than 90 bytes: 1 (patches0001.bmp has 50 bytes)",
    ),
    ("liberty", removed("m50_100000_100000_0.txt"), "no pairs; expected m50_100000_100000_0.txt in the folder itself"),
]


@pytest.mark.parametrize(("name", "change", "words"), BROKEN)
def test_one_thing_that_is_wrong_is_said_with_its_place(found, name, change, words):
    checked = found(name, change)
    saying = [line for line in checked.problems if words in line]
    assert len(saying) == 1, checked.problems
    assert checked.root in saying[0]
    assert len(checked.problems) <= 2  # a pair's folder has truth and images; a broken BMP is short, too
    assert checked.lacking


def test_everything_that_is_wrong_is_said_at_once(found):
    def change(root):
        for one in (
            removed("val_ref/R000002.jpg"),
            written("val_query/Q00001.jpg", b""),
            removed("val_groundtruth_matches.csv"),
        ):
            one(root)

    assert len(found("disc2021", change).problems) == 3


def test_what_is_left_is_enough_for_some_commands(found):
    checked = found("disc2021", gone("val_ref"))
    assert [command.split("--")[2].split()[0] for command in checked.runs] == ["features", "results"]
    assert all("lacks references" in line for line in checked.lacking)
    checked = found("disc2021", gone("training"))
    assert checked.problems == () and checked.notes == ("no training, which is optional",)
    assert [line.rpartition(" ")[2] for line in checked.lacking] == ["training"]


def test_the_release_of_2016_without_tough_patches_is_good_for_hbench(found):
    def change(root):
        for path in root.glob("*/t?.png"):
            path.unlink()

    checked = found("hpatches", change)
    assert checked.problems == () and checked.notes == ("no tough patches, which is optional",)
    assert "run hbench " in checked.runs[0] and "run hpatches " in checked.lacking[0]


def test_other_names_of_a_folder_and_the_queries_of_the_test_are_taken(found):
    def change(root):
        (root / "val_ref").rename(root / "references")
        for number in range(COUNT):
            query = root / f"val_query/Q0000{number}.jpg"
            query.rename(root / f"val_query/Q0000{number + COUNT}.jpg")

    assert found("disc2021", change).problems == ()


@pytest.mark.parametrize(
    ("name", "at", "words"),
    [
        ("hpatches", "i_autannes", "is a level too low; name {}"),
        ("disc2021", "val_ref", "is a level too low; name {}"),
        ("copydays", "crops/40", "is 2 levels too low; name {}"),
        ("tss", "JODS", "is a level too low; name {}"),
        ("roxford5k", "roxford5k", "is a level too low; name {}"),
        ("disc2021", "..", "is a level too high; name {}"),
        ("hpatches", "..", "is a level too high; name {}"),
        ("liberty", "../..", "is 2 levels too high; name {}"),
        ("copydays", "nowhere", "does not exist"),
        ("tss", "FG3DCar/pair0/pair.txt", "is a file"),
    ],
)
def test_a_folder_in_the_place_of_another_is_told_which_is_meant(found, tmp_path, name, at, words):
    root = (tmp_path / "in/it/set").resolve()
    published = small(name)
    make(published, root)
    asked = (root / at).resolve()
    (line,) = check_set(name, published, str(asked)).problems
    assert line.startswith(f"{asked}: {words.format(root)}; expected ")


def test_a_folder_of_something_else_and_an_empty_one_are_said_to_be_so(tmp_path):
    (line,) = check_set("tss", small("tss"), str(tmp_path)).problems
    assert "is empty" in line
    (tmp_path / "notes.txt").write_text("x")
    (line,) = check_set("tss", small("tss"), str(tmp_path)).problems
    assert "holds 1 files (notes.txt …) and none of this set" in line


@pytest.mark.parametrize("names", [("liberty.zip",), ("README.txt", "val_ref.0.tar.gz", "val_ref.1.tar.gz")])
def test_a_folder_of_archives_is_said_to_need_unpacking(tmp_path, names):
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    (line,) = check_set("liberty", small("liberty"), str(tmp_path)).problems
    packed = next(name for name in names if name.endswith(("zip", "gz")))
    assert f"holds {packed} packed and none of this set; unpack it there, or name the folder that has it" in line


def test_another_content_or_size_than_the_published_one_is_seen(found):
    rule = Exactly((KnownFile("info.txt", 5, "0" * 64),))
    published = small("liberty")
    parts = tuple(replace(part, names=rule) if part.role == "points" else part for part in published.parts)
    published = replace(published, parts=parts)
    (line,) = found("liberty", published=published).problems
    assert "info.txt: has another content than the published file (sha256 " in line
    (line,) = found("liberty", written("info.txt", b"long text\n"), published=published).problems
    assert "info.txt has 10 bytes, expected 5" in line


def test_a_picture_that_is_cut_off_shows_where_files_are_read_whole(found, copies):
    picture = (copies / "copydays/original/200000.jpg").read_bytes()
    for data, count in ((picture, 0), (picture[:-100], 1), (picture + b"trailing bytes", 0)):
        change = written("val_ref/R000001.jpg", data)
        assert found("disc2021", change, read="headers").problems == ()
        checked = found("disc2021", change, read="all")
        assert len(checked.problems) == count, checked.problems


def test_what_all_files_have_wrong_is_said_of_five_and_counted(found):
    def change(root):
        for path in root.glob("*/*.png"):
            path.write_bytes(b"")

    checked = found("hpatches", change)
    assert len(checked.problems) == 12
    assert "44 broken files of patches in all, 5 are shown" in "\n".join(checked.problems)


def test_sets_on_object_storage_are_checked_alike(found, s3, tmp_path):
    bucket = s3.bucket("sets")
    for name, change in (("disc2021", removed("val_ref/R000002.jpg")), ("tss", lambda root: None)):
        local = found(name, change)
        uri = s3.upload(tmp_path / "set", f"{bucket}/{name}")
        far = check_set(name, small(name), uri)
        assert [line.replace(uri, local.root) for line in far.problems] == list(local.problems)
        assert (far.files, far.size_bytes, len(far.runs)) == (local.files, local.size_bytes, len(local.runs))
        shutil.rmtree(tmp_path / "set")
    (line,) = check_set("tss", small("tss"), f"{bucket}/tss/JODS").problems
    assert f"is a level too low; name {bucket}/tss;" in line


def test_a_large_listing_is_read_once_and_no_file_but_the_sample(monkeypatch):
    read = []
    names = [f"val_ref/R{number:06d}.jpg" for number in range(20_000) if number != 77]
    monkeypatch.setattr(storage, "each_file", lambda uri: iter(Entry(name, 9, "1") for name in names))
    monkeypatch.setattr(storage, "read_start", lambda uri, count: read.append(uri) or b"\xff\xd8\xff")
    published = scaled(PUBLISHED["disc2021"], {"references": 20_000})
    checked = check_set("disc2021", published, "/nowhere")
    assert "references: 1 of 20,000 missing (R000077.jpg)" in checked.problems[0]
    assert len(read) == len(set(read)) == 64


@pytest.mark.parametrize(
    ("name", "below", "counts"),
    [
        ("disc2021", "disc", {"references": 160, "queries": 60, "training": 95}),
        ("copydays", "copydays", {"strong": 30, "any": 20}),
    ],
)
def test_the_demos_data_have_the_published_layout_but_for_their_counts(copies, name, below, counts):
    published = PUBLISHED[name]
    assert check_set(name, published, str(copies / below)).problems
    checked = check_set(name, scaled(published, counts), str(copies / below), "all")
    assert checked.problems == (), checked.problems
    assert not checked.lacking


def test_every_reader_of_a_set_is_one_that_there_is():
    from raybench.datasets.told_names import READERS

    for published in PUBLISHED.values():
        for part in published.parts:
            files = part.names.files if isinstance(part.names, Exactly) else ()
            assert all(one.reader in ("", *contents.READERS) for one in files)
            assert getattr(part.names, "reader", "lines") in READERS
