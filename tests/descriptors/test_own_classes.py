"""The digest of a class of the user's own: another whenever something changed that it rests on, else the same."""

import importlib
import os
import pickle
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from raybench.descriptors.own_code import own_code
from raybench.descriptors.patch_descriptors import resolve
from raybench.errors import ConfigError, DataError

CLASS = """
class Mine:
    name = "mine"
    uses_gpu = False

    def __init__(self, **arguments):
        self.arguments = arguments

    def prepare(self, patches):
        return patches

    def describe(self, patches):
        return patches.reshape(len(patches), -1)[:, :16] * float(scale())
"""
USES_PART = "import part\n" + CLASS + "\n\ndef scale():\n    return part.SCALE\n"


def own_modules(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a class in `mine.py` that imports `part.py`."""
    monkeypatch.setattr(sys, "path", [str(tmp_path / "here"), *sys.path])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    before = set(sys.modules)
    own_modules(here, {"mine.py": USES_PART, "part.py": "SCALE = 2\n"})
    yield here
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def digest(**arguments) -> str:
    return resolve("mine:Mine", arguments).digest


def described(**arguments) -> float:
    """What the class makes of a white pixel."""
    opened = resolve("mine:Mine", arguments).open()
    return float(opened.describe(np.ones((1, 4, 4), np.uint8))[0, 0])


# Each is a way to rest on `part`: the sources, and the file in which a 2 becomes a 3.
IMPORTS = {
    "import": ({"mine.py": USES_PART, "part.py": "SCALE = 2\n"}, "part.py"),
    "from": ({"mine.py": f"from part import SCALE\n{CLASS}\ndef scale():\n    return SCALE\n"}, "part.py"),
    "in a function": ({"mine.py": f"{CLASS}\ndef scale():\n    import part\n    return part.SCALE\n"}, "part.py"),
    "under a condition": (
        {"mine.py": f"try:\n    import nowhere_to_be_found\nexcept ImportError:\n    import part\n{CLASS}\n"
         "def scale():\n    return part.SCALE\n"},
        "part.py",
    ),
    "star": ({"mine.py": f"from part import *\n{CLASS}\ndef scale():\n    return SCALE\n"}, "part.py"),
    "by a literal name": (
        {"mine.py": f"import importlib\n{CLASS}\ndef scale():\n    return importlib.import_module('part').SCALE\n"},
        "part.py",
    ),
    "at the second step": (
        {"mine.py": f"import middle\n{CLASS}\ndef scale():\n    return middle.part.SCALE\n",
         "middle.py": "import part\n"},
        "part.py",
    ),
    "in a circle": (
        {"mine.py": USES_PART, "part.py": "import mine\nSCALE = 2\n"},
        "part.py",
    ),
    "of a package": (
        {
            "mine.py": f"from pack.inner import deep\n{CLASS}\ndef scale():\n    return deep.scale()\n",
            "pack/__init__.py": "",
            "pack/inner/__init__.py": "",
            "pack/inner/deep.py": "from ..side import SCALE\ndef scale():\n    return SCALE\n",
            "pack/side.py": "SCALE = 2\n",
        },
        "pack/side.py",
    ),
    "of a package's own file": (
        {"mine.py": f"import pack.a\n{CLASS}\ndef scale():\n    return pack.SCALE\n",
         "pack/__init__.py": "SCALE = 2\n", "pack/a.py": ""},
        "pack/__init__.py",
    ),
    "star of a package": (
        {"mine.py": f"from pack import *\n{CLASS}\ndef scale():\n    return a.SCALE\n",
         "pack/__init__.py": "__all__ = ['a']\n", "pack/a.py": "SCALE = 2\n"},
        "pack/a.py",
    ),
    "of a package without __init__": (
        {"mine.py": f"import space.inner.part\n{CLASS}\ndef scale():\n    return space.inner.part.SCALE\n",
         "space/inner/part.py": "SCALE = 2\n"},
        "space/inner/part.py",
    ),
    "of a folder that the module names itself": (
        {"mine.py": "import pathlib, sys\nsys.path.append(str(pathlib.Path(__file__).parent / 'elsewhere'))\n"
         f"import far\n{CLASS}\ndef scale():\n    return far.SCALE\n",
         "elsewhere/far.py": "SCALE = 2\n"},
        "elsewhere/far.py",
    ),
    "as a base class": (
        {"mine.py": "from base import Base\n\nclass Mine(Base):\n    pass\n",
         "base.py": CLASS.replace("Mine", "Base") + "\ndef scale():\n    return 2\n"},
        "base.py",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", IMPORTS)
def test_a_module_that_changed_gives_another_digest_and_is_what_runs(folder, way):
    files, changed = IMPORTS[way]
    own_modules(folder, files)
    assert described() == 2
    first = digest()
    (folder / changed).write_text((folder / changed).read_text().replace("2", "3"))  # same length, same second
    second = digest()
    assert second != first and described() == 3
    (folder / changed).write_text((folder / changed).read_text().replace("3", "2"))
    assert digest() == first and described() == 2


def test_a_touch_another_folder_and_other_files_change_nothing(folder, tmp_path, monkeypatch):
    own_modules(folder, {"w.txt": "weights", "data/a.txt": "a"})
    first = digest(path="w.txt", more=[{"deep": "data"}])
    for file in folder.rglob("*"):
        os.utime(file, (1, 1))
    (folder / "unrelated.py").write_text("SCALE = 7\n")
    assert digest(path="w.txt", more=[{"deep": "data"}]) == first
    there = tmp_path / "moved"
    shutil.copytree(folder, there)
    monkeypatch.chdir(there)
    shutil.rmtree(folder)
    assert digest(path="w.txt", more=[{"deep": "data"}]) == first
    assert digest(path=str(there / "w.txt"), more=[{"deep": f"file://{there}/data"}]) == first


def change_file(folder):
    (folder / "w.txt").write_text("heavier")


def change_inside(folder):
    (folder / "data/a.txt").write_text("b")


def add_file(folder):
    (folder / "data/b.txt").write_text("a")


def rename_file(folder):
    (folder / "data/a.txt").rename(folder / "data/c.txt")


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        ({"path": "w.txt"}, change_file),
        ({"weights": "w.txt"}, change_file),
        ({"weights": "file://{}/w.txt"}, change_file),
        ({"weights": "{}/w.txt"}, change_file),
        ({"deep": [{"er": ["no file", "w.txt"]}]}, change_file),
        ({"data": "data"}, change_inside),
        ({"data": "data"}, add_file),
        ({"data": "data"}, rename_file),
    ],
)
def test_a_file_that_an_argument_names_counts_by_its_content(folder, arguments, change):
    own_modules(folder, {"w.txt": "weights", "data/a.txt": "a"})
    given = {key: value.format(folder) if isinstance(value, str) else value for key, value in arguments.items()}
    first = digest(**given)
    change(folder)
    assert digest(**given) != first


def test_a_file_that_comes_later_counts_from_then_on(folder):
    first = digest(weights="w.txt")
    (folder / "w.txt").write_text("")
    assert digest(weights="w.txt") != first


def test_a_file_of_an_object_store_counts_by_its_content(folder, s3):
    bucket = s3.bucket("own-weights")
    (folder / "up").mkdir()
    (folder / "up/w.txt").write_text("2")
    s3.upload(folder / "up", bucket)
    given = [{"path": f"{bucket}/w.txt"}, {"weights": [f"{bucket}/w.txt"]}, {"folder": bucket}]
    first = [digest(**one) for one in given]
    assert [digest(**one) for one in given] == first
    (folder / "up/w.txt").write_text("3")
    s3.upload(folder / "up", bucket)
    assert all(a != b for a, b in zip(first, [digest(**one) for one in given], strict=True))


def test_a_secret_in_an_argument_is_refused_and_not_repeated(folder):
    with pytest.raises(ConfigError, match="must not carry credentials") as refused:
        digest(weights="s3://key:secret@bucket/w.txt")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["/", "..", ".", "~", "", "relu", "a\0b", "x" * 5_000, "weird://a/b"])
def test_a_text_that_names_no_file_of_use_is_a_text(folder, text):
    assert digest(mode=text) == digest(mode=text) != digest(mode="other")
    assert not resolve("mine:Mine", {"mode": text}).files


@pytest.mark.parametrize("place", ["beside", "here"])
def test_a_file_that_the_source_names_counts_by_its_content(folder, place):
    own_modules(folder, {"lib/part.py": "from pathlib import Path\nW = Path(__file__).parent / 'w.txt'\nSCALE = 2\n"})
    (folder / "mine.py").write_text(f"import sys\nfrom lib import part\n{CLASS}\ndef scale():\n    return part.SCALE\n")
    file = folder / ("lib/w.txt" if place == "beside" else "w.txt")
    file.write_text("1")
    first = digest()
    file.write_text("2")
    assert digest() != first


DOUBTS = {
    "importlib.import_module(name)": "imports or runs code by a name",
    "exec(text)": "imports or runs code by a name",
    "os.environ['SCALE']": "reads environment variables",
    "os.getenv('SCALE')": "reads environment variables",
    "torch.hub.load('a', 'b')": "fetches from the network",
    "Model.from_pretrained('a')": "fetches from the network",
}


@pytest.mark.parametrize("statement", DOUBTS)
def test_what_the_digest_can_not_cover_is_said_with_its_line(folder, statement):
    (folder / "part.py").write_text(f"SCALE = 2\n\ndef later(name, text, os, torch, Model):\n    return {statement}\n")
    notes = resolve("mine:Mine", {}).digest_notes
    assert len(notes) == 1 and f"part.py {DOUBTS[statement]}" in notes[0] and "(line 4)" in notes[0]
    assert "give the class a `digest`" in notes[0]


def test_an_ordinary_class_leaves_no_doubt(folder):
    (folder / "part.py").write_text("import os, re, json\nimport numpy as np\nSCALE = 2\nmodel = None\n\n"
                                    "def f():\n    return model.eval(), os.path.join('a', 'b')\n")  # fmt: skip
    assert resolve("mine:Mine", {}).doubts == ()


def test_libraries_count_by_their_versions_and_are_not_read(folder):
    (folder / "part.py").write_text("import torch, cv2, PIL.Image, json\nfrom numpy import linalg\nSCALE = 2\n")
    code = own_code("mine", str(folder))
    assert [name for name, _ in code.modules] == ["mine", "part"]
    assert [library.split()[0] for library in code.libraries] == [
        *("numpy", "opencv-python-headless", "pillow", "python", "torch")
    ]


def test_another_version_of_a_library_is_another_digest(folder):
    """As `pip install --target` leaves it, beside what is the user's own."""
    own_modules(folder, {"thing/__init__.py": "", "thing-1.0.dist-info/METADATA": "Name: thing\nVersion: 1.0\n"})
    (folder / "thing-1.0.dist-info/RECORD").write_text("thing/__init__.py,,\n")
    (folder / "part.py").write_text("import thing\nSCALE = 2\n")
    ask = "from raybench.descriptors.own_code import own_code; print(own_code('mine', '.').digest)"

    def asked():  # in a process of its own: where packages are is looked up once
        said = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, '.'); {ask}"],
                              capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})  # fmt: skip
        return said.stdout

    first = asked()
    (folder / "thing/__init__.py").write_text("# patched by hand: the stated blind spot\n")
    assert asked() == first
    (folder / "thing-1.0.dist-info").rename(folder / "thing-1.1.dist-info")
    (folder / "thing-1.1.dist-info/METADATA").write_text("Name: thing\nVersion: 1.1\n")
    assert asked() != first


def test_a_package_installed_as_editable_is_the_users_own(folder, tmp_path):
    """An egg-info beside the sources, as `pip install -e` leaves it, makes them no library."""
    own_modules(tmp_path / "src", {"kit/__init__.py": "SCALE = 2\n", "kit.egg-info/top_level.txt": "kit\n",
                                   "kit.egg-info/PKG-INFO": "Name: kit\nVersion: 1.0\n"})  # fmt: skip
    sys.path.append(str(tmp_path / "src"))  # as the .pth file of an editable install does
    (folder / "mine.py").write_text(f"import kit\n{CLASS}\ndef scale():\n    return kit.SCALE\n")
    assert described() == 2
    (tmp_path / "src/kit/__init__.py").write_text("SCALE = 3\n")
    assert described() == 3


def test_a_compiled_module_counts_by_its_bytes_and_is_not_loaded_twice(folder):
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    built = Path(np.__file__).parent / f"_core/_multiarray_umath{suffix}"
    (folder / f"fast{suffix}").write_bytes(built.read_bytes())
    (folder / "mine.py").write_text(f"{CLASS}\ndef scale():\n    import fast\n    return 2\n")
    spec = resolve("mine:Mine", {})
    assert dict(spec.modules).keys() == {"mine", "fast"}
    assert any("is compiled" in note for note in spec.digest_notes)
    with (folder / f"fast{suffix}").open("ab") as file:
        file.write(b"another build")
    assert digest() != spec.digest


OWN_DIGESTS = {
    "a text": ("digest = 'one'", "digest = 'two'"),
    "a classmethod": (
        "@classmethod\n    def digest(cls, **arguments): return arguments['weights'] + 'one'",
        "@classmethod\n    def digest(cls, **arguments): return arguments['weights'] + 'two'",
    ),
}


@pytest.mark.parametrize("kind", OWN_DIGESTS)
def test_the_own_digest_of_a_class_replaces_that_of_code_and_files(folder, kind):
    one, two = OWN_DIGESTS[kind]
    source = USES_PART.replace('name = "mine"', f'name = "mine"\n    {one}')
    (folder / "mine.py").write_text(source)
    (folder / "w.txt").write_text("1")
    first = digest(weights="w.txt")
    (folder / "w.txt").write_text("2")
    (folder / "part.py").write_text("import os\nSCALE = int(os.environ.get('SCALE', 3))\n")
    assert digest(weights="w.txt") == first and not resolve("mine:Mine", {"weights": "w.txt"}).doubts
    assert digest(weights="other.txt") != first
    assert described(weights="w.txt") == 3  # the new code runs, as it does in a new process
    (folder / "mine.py").write_text(source.replace(one, two))
    assert digest(weights="w.txt") != first


def test_an_inherited_digest_says_nothing_of_the_class_below(folder):
    (folder / "base.py").write_text(CLASS.replace("Mine", "Base").replace('name = "mine"', "digest = 'one'"))
    (folder / "mine.py").write_text("from base import Base\n\nclass Mine(Base):\n    level = 2\n")
    first = digest()
    (folder / "mine.py").write_text("from base import Base\n\nclass Mine(Base):\n    level = 3\n")
    assert digest() != first


@pytest.mark.parametrize("wrong", ["digest = 3", "@property\n    def digest(self): return ''",
                                   "@classmethod\n    def digest(cls): return 'x'"])  # fmt: skip
def test_an_own_digest_that_is_none_is_refused(folder, wrong):
    (folder / "mine.py").write_text(USES_PART.replace('name = "mine"', f'name = "mine"\n    {wrong}'))
    with pytest.raises(ConfigError, match=r"digest.*expected a text, or a classmethod"):
        digest(weights="w.txt")


def test_code_and_files_that_change_while_a_run_goes_on_are_not_used(folder):
    """What a worker that starts late would meet."""
    (folder / "w.txt").write_text("1")
    spec = resolve("mine:Mine", {"path": "w.txt"})
    late = (
        "import pickle, sys; spec = pickle.load(open('spec', 'rb')); sys.path.insert(0, '.')\n"
        "try: print(spec.open().arguments['path'])\nexcept Exception as error: print(type(error).__name__, error)"
    )
    (folder / "spec").write_bytes(pickle.dumps(spec))

    def opened():
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        return subprocess.run([sys.executable, "-c", late], capture_output=True, text=True, env=env).stdout

    assert opened() == "w.txt\n"
    (folder / "part.py").write_text("SCALE = 3\n")
    assert opened().startswith(f"ConfigError {folder}/part.py: is not the code that the run began with")
    (folder / "part.py").write_text("SCALE = 2\n")
    (folder / "w.txt").write_text("2")
    assert opened().startswith(f"DataError {folder}/w.txt: is not the file that the run began with")


def test_a_worker_in_another_folder_takes_the_files_of_the_drivers(folder, tmp_path, monkeypatch):
    own_modules(folder, {"w.txt": "1", "data/a.txt": "a"})
    spec = resolve("mine:Mine", {"path": "w.txt", "more": [{"deep": ["w.txt", "data", "relu"]}]})
    assert spec.open().arguments == {"path": "w.txt", "more": [{"deep": ["w.txt", "data", "relu"]}]}
    monkeypatch.chdir(tmp_path)
    inside = {"path": f"{folder}/w.txt", "more": [{"deep": [f"{folder}/w.txt", f"{folder}/data", "relu"]}]}
    assert spec.open().arguments == inside
    (tmp_path / "w.txt").write_text("another of the same name")
    assert spec.open().arguments["path"] == f"{folder}/w.txt"
    (tmp_path / "w.txt").write_text("1")  # a job's folder, unpacked on another node
    assert spec.open().arguments["path"] == "w.txt"


def test_a_compiled_file_of_an_older_source_is_not_loaded(folder):
    """Python takes `__pycache__/part….pyc` if size and second agree, as after a quick edit of a digit."""
    py_compile.compile(str(folder / "part.py"))
    stamp = (folder / "part.py").stat().st_mtime
    (folder / "part.py").write_text("SCALE = 3\n")
    os.utime(folder / "part.py", (stamp, stamp))
    ask = f"import sys; sys.path.insert(0, {str(folder)!r}); import part; print(part.SCALE)"
    assert subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout == "2\n"
    assert described() == 3


def test_a_module_that_the_process_imported_before_an_edit_is_imported_anew(folder):
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    assert importlib.import_module("part").SCALE == 2
    (folder / "part.py").write_text("SCALE = 3\n")
    assert described() == 3


def test_a_model_file_that_changes_while_a_run_goes_on_is_not_used(tmp_path):
    from image_models import onnx_file

    from raybench.descriptors.image_descriptors import resolve_images
    from raybench.formats.images import Preprocess

    spec = resolve_images(f"onnx:{onnx_file(tmp_path / 'net.onnx')}", {}, Preprocess(40))
    with (tmp_path / "net.onnx").open("ab") as file:
        file.write(b"x")
    with pytest.raises(DataError, match="is not the file that the run began with"):
        spec.open()


def test_an_onnx_file_counts_with_the_files_that_hold_its_tensors(tmp_path):
    import onnx
    from image_models import onnx_file

    from raybench.descriptors.image_descriptors import resolve_images
    from raybench.formats.images import Preprocess

    model = onnx.load(onnx_file(tmp_path / "whole.onnx"))
    weights = onnx.numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "weights")
    model.graph.initializer.append(weights)
    data = "d" * 150 + ".bin"  # a length of two bytes
    onnx.save_model(model, tmp_path / "net.onnx", save_as_external_data=True, location=data, size_threshold=0)
    spec = resolve_images(f"onnx:{tmp_path}/net.onnx", {}, Preprocess(40))
    assert [Path(file.uri).name for file in spec.files] == ["net.onnx", data]
    with (tmp_path / data).open("r+b") as file:
        file.write(b"\x00\x00\x80\x3f")
    assert resolve_images(f"onnx:{tmp_path}/net.onnx", {}, Preprocess(40)).digest != spec.digest
    with pytest.raises(DataError, match="is not the file that the run began with"):
        spec.open()


def test_other_imports_are_left_alone_once_a_descriptor_is_gone(folder):
    opened = resolve("mine:Mine", {}).open()
    before = len(sys.meta_path)
    del opened
    assert len(sys.meta_path) == before - 1
    (folder / "part.py").write_text("SCALE = 5\n")
    del sys.modules["part"]
    assert importlib.import_module("part").SCALE == 5


def test_a_class_with_slots_is_opened_as_any_other(folder):
    (folder / "mine.py").write_text(USES_PART.replace('name = "mine"', '__slots__ = ("arguments",)'))
    assert described() == 2


def test_a_class_made_from_one_of_raybench_counts_with_its_libraries(folder):
    (folder / "mine.py").write_text("from raybench.descriptors.opencv import Sift\n\nclass Mine(Sift):\n    pass\n")
    code = own_code("mine", str(folder))
    assert [name for name, _ in code.modules] == ["mine"]
    assert [library.split()[0] for library in code.libraries] == ["opencv", "raybench"]
