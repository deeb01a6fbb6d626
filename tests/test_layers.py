"""A module imports its own package and the layers before it; certain libraries belong to certain modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "raybench"

# In the order in which data meets them: a module imports its own folder and those before it.
ORDER = [
    {"visible", "masking"},
    {"__init__", "errors", "digests", "table", "citation"},
    {"formats"},
    {"metrics"},
    {"retries", "parallel", "atomic_files"},
    {"disk", "remote"},
    {"node_cache"},
    {"storage"},
    {"sources"},
    {"datasets"},
    {"descriptors"},
    {"engine"},
    {"extract"},
    {"search"},
    {"benchmarks"},
    {"runs"},
    {"api"},
    {"demo"},
    {"cli"},
    {"jobs"},
    {"__main__"},
]
LAYERS = {name: number for number, names in enumerate(ORDER) for name in names}
PURE_LAYERS = 4
# Where a library may be imported; a library that is not named here may be imported anywhere its layer allows.
HOMES = {
    "ray": {
        *(f"engine/ray_{part}.py" for part in ("cases", "core", "flow", "loads", "nodes", "pool")),
        "engine/telemetry.py",
    },
    "fsspec": {"remote.py"},
    "faiss": {"search/by_faiss.py", "search/codecs.py"},
    "torch": {
        f"descriptors/{name}.py"
        for name in (
            *("cuda", "device_batches", "torch_models", "torchscript", "image_networks", "sscd", "sscd_network"),
            *("hf_images", "hf_network", "library_networks", "models_by_name", "named_weights", "timm_images"),
            *("token_pooling", "torchvision_images"),
        )
    }
    | {"sources/sscd_features.py", "search/by_torch.py", "search/coarse.py"},
    "cv2": {
        f"descriptors/{name}.py"
        for name in ("libraries", "opencv", "patch_canvas", "pixels", "flow_opencv", "dense_sift")
    }
    | {"demo/hpatches.py", "demo/tss.py", "formats/png.py"},
    "onnxruntime": {"descriptors/onnx_images.py"},
    "transformers": {"descriptors/hf_images.py"},
    "huggingface_hub": {"descriptors/hf_files.py", "descriptors/timm_images.py"},
    "safetensors": {"descriptors/named_weights.py"},
    "timm": set(),  # by `models_by_name.imported` alone, since it may fail in ways of its own
    "torchvision": set(),
    "pdqhash": {"descriptors/pdq.py"},
    "click": {path.relative_to(ROOT).as_posix() for path in (ROOT / "cli").glob("*.py")},
}
# What the pure layers may import beside the standard library, and beside cv2 in `formats/png`, its home there.
PURE = {"numpy", "pyarrow", "PIL", "h5py", "xxhash"}
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))


def imports(module: str) -> list[str]:
    tree = ast.parse((ROOT / module).read_text())
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names.append(node.module or "")
            names += [f"{node.module}.{alias.name}" for alias in node.names if node.module == "raybench"]
    return names


def layer(name: str) -> int:
    return LAYERS[name.split("/")[0].split(".")[0]]


@pytest.mark.parametrize("module", [module for module in MODULES if module != "__init__.py"])
def test_a_module_imports_only_its_own_layer_and_those_before(module):
    for name in imports(module):
        if name.startswith("raybench."):
            other = name.split(".")[1]
            if other == "__version__":
                continue
            own_package = other == module.split("/")[0]
            assert own_package or layer(other) < layer(module), f"{module} imports {name}"


@pytest.mark.parametrize("module", MODULES)
def test_a_library_is_imported_only_where_it_is_at_home(module):
    for name in imports(module):
        library = name.split(".")[0]
        assert module in HOMES.get(library, {module}), f"{module} imports {library}"


@pytest.mark.parametrize("module", [module for module in MODULES if layer(module) < PURE_LAYERS])
def test_the_pure_layer_imports_numpy_and_decoders_only(module):
    import sys

    for name in imports(module):
        library = name.split(".")[0]
        pure = library in sys.stdlib_module_names | PURE | {"raybench"}
        assert pure or module in HOMES.get(library, ()), f"{module} imports {library}"


@pytest.mark.parametrize("module", MODULES)
def test_importing_a_module_leaves_the_environment_alone(module):
    tree = ast.parse((ROOT / module).read_text())
    inside = {inner for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) for inner in ast.walk(node)}
    touched = [node for node in ast.walk(tree) if getattr(node, "attr", "") in ("environ", "putenv", "setenv")]
    assert set(touched) <= inside, f"{module} touches the environment when it is imported"


def test_a_run_without_ray_does_not_import_it():
    import subprocess
    import sys

    code = (
        "import sys, raybench.cli.commands, raybench.engine.run, raybench.engine.inline; sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_package_imports_nothing_of_it():
    import subprocess
    import sys

    code = "import sys, raybench; sys.exit(any(name.startswith('raybench.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_the_package_sets_no_environment_variable():
    import subprocess
    import sys

    code = "import os; before = dict(os.environ); import raybench.engine.inline; assert dict(os.environ) == before"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
