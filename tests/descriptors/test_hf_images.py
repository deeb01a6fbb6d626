import json
import pickle
import shutil
import socket
import subprocess
import sys

import huggingface_hub
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from vision_models import model_folder, write_json

from raybench.descriptors.image_descriptors import resolve_by_name, resolve_images
from raybench.descriptors.patch_descriptors import resolve
from raybench.descriptors.precision import Precision
from raybench.errors import ConfigError, DataError, InputError
from raybench.formats.images import Preprocess

KINDS = ("vit", "wide", "dinov2", "clip", "siglip", "aimv2", "resnet", "convnext", "swin")
REVISION = "0123456789abcdef0123456789abcdef01234567"


def pictures(count=3, height=60, width=90):
    return np.random.default_rng(0).integers(0, 256, (count, height, width, 3), np.uint8)


def described(descriptor, images):
    return descriptor.describe(np.stack([descriptor.prepare(image) for image in images]))


def rows_of(folder, images, **arguments):
    return described(resolve_by_name(f"hf:{folder}", arguments, None).open(), images)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each kind of model, made when it is asked for; tests change copies of them."""
    base, made = tmp_path_factory.mktemp("models"), {}

    def folder(kind):
        if kind not in made:
            made[kind] = model_folder(base / kind, kind)
        return made[kind]

    return folder


def directly(folder, images):
    """What transformers itself makes of pictures: its own image processor, its own model."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    values = processor(images=list(images), return_tensors="pt")["pixel_values"]
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        if hasattr(model, "get_image_features"):
            return model.get_image_features(pixel_values=values), model.vision_model(pixel_values=values)
        answer = model(pixel_values=values)
    return answer, answer


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_what_transformers_itself_publishes_for_the_picture(kind, folders):
    published, _ = directly(folders(kind), pictures())
    expected = published.pooler_output.flatten(1).numpy()
    np.testing.assert_allclose(rows_of(folders(kind), pictures()), expected, atol=2e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_does_not_depend_on_the_other_pictures_of_its_batch(kind, folders):
    descriptor = resolve_by_name(f"hf:{folders(kind)}", {}, None).open()
    together = described(descriptor, pictures(4))
    for number, image in enumerate(pictures(4)):
        np.testing.assert_allclose(described(descriptor, [image])[0], together[number], atol=2e-5)


@pytest.mark.parametrize(("kind", "before"), [("vit", 1), ("dinov2", 4), ("clip", 1)])
def test_tokens_are_pooled_without_class_token_and_registers(kind, before, folders):
    tokens = directly(folders(kind), pictures())[1].last_hidden_state.numpy()
    assert tokens.shape[1] == before + 16
    patches = tokens[:, before:].astype(np.float64)
    gem = np.cbrt((patches.clip(1e-6) ** 3).mean(axis=1))
    fifth = (patches.clip(1e-6) ** 5).mean(axis=1) ** 0.2
    folder = folders(kind)
    np.testing.assert_allclose(rows_of(folder, pictures(), pooling="cls"), tokens[:, 0], atol=2e-5)
    np.testing.assert_allclose(rows_of(folder, pictures(), pooling="avg"), patches.mean(axis=1), atol=2e-5)
    np.testing.assert_allclose(rows_of(folder, pictures(), pooling="gem"), gem, atol=1e-4)
    np.testing.assert_allclose(rows_of(folder, pictures(), pooling="gem", pool_param=5.0), fifth, atol=1e-4)


def test_a_token_of_the_head_is_none_of_those_that_are_pooled(folders):
    """AIMv2 has patches alone, and a `cls_token` in the head that weighs them."""
    tokens = directly(folders("aimv2"), pictures())[1].last_hidden_state.numpy()
    assert tokens.shape[1] == 16
    np.testing.assert_allclose(rows_of(folders("aimv2"), pictures(), pooling="avg"), tokens.mean(axis=1), atol=2e-5)
    with pytest.raises(ConfigError, match="has no class token"):
        rows_of(folders("aimv2"), pictures(), pooling="cls")


def test_a_feature_map_is_pooled_over_its_places(folders):
    maps = directly(folders("resnet"), pictures())[1].last_hidden_state.numpy()
    np.testing.assert_allclose(rows_of(folders("resnet"), pictures(), pooling="avg"), maps.mean(axis=(2, 3)), atol=2e-5)
    gem = np.cbrt((maps.clip(1e-6) ** 3).mean(axis=(2, 3)))
    np.testing.assert_allclose(rows_of(folders("resnet"), pictures(), pooling="gem"), gem, atol=1e-4)


def test_the_published_preprocessing_brings_a_model_to_other_sizes(folders):
    steps = Preprocess(48)
    spec = resolve_by_name(f"hf:{folders('vit')}", {}, steps)
    values = torch.from_numpy(np.stack([steps.apply(image) for image in pictures()]))
    model = transformers.AutoModel.from_pretrained(folders("vit")).eval()
    with torch.inference_mode():
        expected = model(pixel_values=values, interpolate_pos_encoding=True).pooler_output.numpy()
    np.testing.assert_allclose(described(spec.open(), pictures()), expected, atol=2e-5)
    assert spec.preprocess == steps


def test_positions_that_are_of_no_square_are_not_brought_to_other_sizes(folders):
    spec = resolve_by_name(f"hf:{folders('wide')}", {}, Preprocess(48, "square"))
    with pytest.raises(ConfigError, match=r"takes pictures of 16 x 64 px \(height x width\) only, not 48 x 48 px"):
        described(spec.open(), pictures(1))


def test_a_spec_goes_to_a_worker_and_says_what_its_rows_are(folders):
    spec = pickle.loads(pickle.dumps(resolve_by_name(f"hf:{folders('clip')}", {}, None)))
    assert spec.name == "clip" and spec.rows == "the embedding that the model compares with texts"
    assert spec.uses_gpu and spec.distance == "L2"
    assert spec.open().shape(90, 60) == (32, 32)
    assert "short edge 32 px, bicubic, its middle 32 x 32 px" in spec.preprocess.words


def test_content_pooling_preprocessing_and_precision_are_in_the_digest(folders, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "vit")
    spec = f"hf:{folder}"

    def digest(arguments=None, steps=None, precision=None):
        return resolve_by_name(spec, arguments or {}, steps, precision or Precision()).digest

    digests = [
        digest(),
        digest({"pooling": "cls"}),
        digest({"pooling": "gem"}),
        digest({"pooling": "gem", "pool_param": 4.0}),
        digest(steps=Preprocess(32)),
        digest(precision=Precision("bfloat16")),
    ]
    assert resolve_by_name(f"hf:{folders('vit')}", {}, None).digest == digests[0]  # paths do not count
    write_json(folder / "preprocessor_config.json", {"image_processor_type": "ViTImageProcessor", "resample": 3})
    digests.append(digest())
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "layernorm.bias": tensors["layernorm.bias"] + 1}, folder / "model.safetensors")
    digests.append(digest())
    assert len(set(digests)) == len(digests)


def test_weights_that_change_during_a_run_end_it(folders, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "vit")
    spec = resolve_by_name(f"hf:{folder}", {}, None)
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "layernorm.bias": tensors["layernorm.bias"] + 1}, folder / "model.safetensors")
    with pytest.raises(DataError, match="not the file that the run began with"):
        spec.open()


def test_a_node_that_has_no_such_folder_says_what_to_do(folders, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "vit")
    spec = resolve_by_name(f"hf:{folder}", {}, None)
    shutil.rmtree(folder)
    with pytest.raises(DataError, match=r"config\.json is not on .*; give a folder that every node reaches"):
        described(spec.open(), pictures(1))


def test_a_folder_in_an_object_store_gives_the_same_rows_and_digest(folders):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in folders("vit").iterdir():
        memory.pipe(f"/models-test/vit/{path.name}", path.read_bytes())
    there = resolve_by_name("hf:memory://models-test/vit", {}, None)
    assert there.digest == resolve_by_name(f"hf:{folders('vit')}", {}, None).digest and there.name == "vit"
    np.testing.assert_array_equal(described(there.open(), pictures()), rows_of(folders("vit"), pictures()))


def test_weights_in_several_files_are_one_model(folders, tmp_path):
    folder = tmp_path / "sharded"
    transformers.AutoModel.from_pretrained(folders("vit")).save_pretrained(folder, max_shard_size="5KB")
    shutil.copy(folders("vit") / "preprocessor_config.json", folder)
    shards = sorted(folder.glob("model-*.safetensors"))
    assert len(shards) > 1
    np.testing.assert_array_equal(rows_of(folder, pictures()), rows_of(folders("vit"), pictures()))
    shards[-1].unlink()
    with pytest.raises(DataError, match=rf"lacks 1 of {len(shards)} weight files, such as model-"):
        resolve_by_name(f"hf:{folder}", {}, None)
    write_json(folder / "model.safetensors.index.json", {"weight_map": {}})
    with pytest.raises(DataError, match=r"index\.json: expected `weight_map`, which says the file of each tensor"):
        resolve_by_name(f"hf:{folder}", {}, None)
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"a": "../../secret.bin"}})
    with pytest.raises(DataError, match=r"index\.json: names '\.\./\.\./secret\.bin', expected names of \.safetensors"):
        resolve_by_name(f"hf:{folder}", {}, None)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """The hub's local cache, empty; no network."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))

    def refuse(*_):
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tmp_path / "hub"


def test_a_name_is_found_in_the_local_cache_of_the_hub_without_a_network(folders, hub):
    snapshot = hub / "models--lab--tiny-vit" / "snapshots" / REVISION
    shutil.copytree(folders("vit"), snapshot)
    (hub / "models--lab--tiny-vit" / "refs").mkdir()
    (hub / "models--lab--tiny-vit" / "refs" / "main").write_text(REVISION)
    named = resolve_by_name("hf:lab/tiny-vit", {}, None)
    assert named.name == "tiny-vit"
    assert named.digest == resolve_by_name(f"hf:lab/tiny-vit@{REVISION}", {}, None).digest
    np.testing.assert_array_equal(described(named.open(), pictures()), rows_of(folders("vit"), pictures()))
    with pytest.raises(DataError, match="hf download lab/tiny-vit --revision other; or give a folder"):
        resolve_by_name("hf:lab/tiny-vit@other", {}, None)


def test_a_name_that_is_not_there_is_said_without_trying_the_network(hub):
    with pytest.raises(
        DataError, match=r"hf:lab/none: is no folder here and not in the local cache \(.*hub\).*hf downl"
    ):
        resolve_by_name("hf:lab/none", {}, None)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("hf:", "names no model; give hf:NAME"),
        ("hf:https://huggingface.co/a/b", "is a page of the hub, not a model's files; give hf:a/b"),
        ("hf:/no/such/folder", "hf:/no/such/folder: no such folder; give one with config.json"),
        ("hf:./none", "no such folder"),
        ("hf:a/b/c", "no such folder"),
        ("hf:https://huggingface.co/lab/vit?x=1", "must not carry credentials, a query"),
        ("hf:lab--x/..y", "is no name that the hub could have"),
    ],
)
def test_a_name_that_can_not_be_is_said(spec, words, hub):
    with pytest.raises(InputError, match=words.replace("?", r"\?")):
        resolve_by_name(spec, {}, None)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])


def only_pickle(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def renamed_tensor(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["layernorm.other"] = tensors.pop("layernorm.bias")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def other_shape(folder):
    tensors = load_file(folder / "model.safetensors")
    save_file({**tensors, "layernorm.bias": torch.zeros(3)}, folder / "model.safetensors", {"format": "pt"})


DAMAGES = {
    "no config": (
        lambda folder: (folder / "config.json").unlink(),
        r"has no config\.json; expected a folder as save_p",
    ),
    "config cut": (lambda folder: cut_short(folder / "config.json"), r"config\.json: can't be read as JSON"),
    "config of no model": (
        lambda folder: write_json(folder / "config.json", {}),
        r"loaded \(Unrecognized model in /.*/broken",
    ),
    "config a list": (lambda folder: write_json(folder / "config.json", []), "expected a JSON object, found list"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"has no weights; expected model\.safetens"),
    "weights cut": (lambda folder: cut_short(folder / "model.safetensors"), "can't be loaded"),
    "only a pickle": (only_pickle, r"weights in pytorch_model\.bin only, a kind of file that can hold code"),
    "another tensor": (renamed_tensor, r"weights lack 1 tensors of the model, such as layernorm\.bias"),
    "another shape": (other_shape, r"1 tensors of its weights have another shape .* layernorm\.bias: \(3,\), expected"),
    "no preprocessor": (
        lambda folder: (folder / "preprocessor_config.json").unlink(),
        r"has no preprocessor_config\.json, so its own preprocessing is unknown; .*--preprocess published",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_broken_model_is_told_in_one_line(damage, folders, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "broken")
    harm, words = DAMAGES[damage]
    harm(folder)
    with pytest.raises(InputError, match=words) as caught:
        resolve_by_name(f"hf:{folder}", {}, None)
    assert len(caught.value.lines()) == 1 and "\n" not in str(caught.value)
    assert "broken" in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        {"attn_implementation": "kernels-community/flash-attn"},
        {"_attn_implementation_internal": {"vision_config": "someone/kernel"}},
        {"vision_config": {"_attn_implementation": "flash_attention_2"}},
        {"model_type": "dpt", "backbone": "facebook/dinov2-base", "use_pretrained_backbone": True},
        {"model_type": "detr", "backbone": "microsoft/resnet-50", "use_timm_backbone": False},
    ],
)
def test_a_config_that_names_code_or_another_model_is_refused(said, folders, hub, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "vit")
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | said)
    with pytest.raises(DataError, match=r"config\.json: .*download") as caught:
        resolve_by_name(f"hf:{folder}", {}, None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"architecture": "resnet18", "num_classes": 1000, "pretrained_cfg": {}},
            r"config\.json: is of timm, not of transformers; give timm:resnet18 with --weights, or timm:NAME, whose",
        ),
        (
            {"model_type": "vit", "quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
            r"config\.json: its weights are quantised \('bitsandbytes'\), which is not known here; give plain ones",
        ),
    ],
)
def test_a_model_of_timm_and_quantised_weights_are_told_as_such(config, words, folders, tmp_path):
    folder = shutil.copytree(folders("vit"), tmp_path / "vit")
    write_json(folder / "config.json", config)
    (folder / "preprocessor_config.json").unlink()
    with pytest.raises(DataError, match=words):
        resolve_by_name(f"hf:{folder}", {}, None)


def test_nothing_is_asked_of_the_hub_while_a_model_is_loaded(folders, hub, monkeypatch):
    tried = []

    def from_pretrained(*_, **__):
        with pytest.raises(huggingface_hub.errors.LocalEntryNotFoundError) as refused:
            huggingface_hub.hf_hub_download("lab/other", "config.json")
        tried.append(refused.value.__cause__)
        raise OSError("no such model")

    monkeypatch.setattr(transformers.AutoModel, "from_pretrained", from_pretrained)
    with pytest.raises(DataError, match="no such model"):
        resolve_by_name(f"hf:{folders('vit')}", {}, None)
    assert [type(error).__name__ for error in tried] == ["OfflineModeIsEnabled"]
    assert not huggingface_hub.constants.HF_HUB_OFFLINE


@pytest.mark.parametrize("lost", ["vision_model.post_layernorm.bias", "visual_projection.weight"])
def test_of_two_towers_only_the_weights_that_see_pictures_must_be_there(lost, folders, tmp_path):
    folder = shutil.copytree(folders("clip"), tmp_path / "clip")
    tensors = load_file(folder / "model.safetensors")
    pictures_only = {key: value for key, value in tensors.items() if not key.startswith("text_")}
    assert len(pictures_only) < len(tensors)
    save_file(pictures_only, folder / "model.safetensors", {"format": "pt"})
    np.testing.assert_array_equal(rows_of(folder, pictures()), rows_of(folders("clip"), pictures()))
    del pictures_only[lost]
    save_file(pictures_only, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        DataError, match=rf"weights lack 1 tensors of the model, such as {lost.removeprefix('vision_model.')}"
    ):
        resolve_by_name(f"hf:{folder}", {}, None)


def test_a_pooler_without_weights_is_never_used(folders):
    with pytest.raises(ConfigError, match=r"lack the pooler .* would be random numbers; give --pooling cls"):
        resolve_by_name(f"hf:{folders('vit-classifier')}", {}, None)
    first, second = (rows_of(folders("vit-classifier"), pictures(), pooling="cls") for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("kind", "poolings"), [("msn", "cls, avg or gem"), ("ijepa", "avg or gem")])
def test_a_model_that_publishes_no_row_says_which_poolings_it_has(kind, poolings, folders):
    with pytest.raises(ConfigError, match=f"publishes no row for a picture; give --pooling {poolings}$"):
        rows_of(folders(kind), pictures(1))


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("bert", {}, "is a BertModel, which takes no images alone; give a vision model"),
        ("mae", {"pooling": "cls"}, "leaves out patches by chance"),
        (
            "siglip2",
            {},
            r"is a Siglip2VisionModel, which needs more than pictures \(pixel_attention_mask, spatial_shapes\)",
        ),
        ("resnet", {"pooling": "cls"}, "--pooling cls: .* has no class token; give avg or gem"),
        ("swin", {"pooling": "cls"}, "has no class token"),
        ("vit", {"pooling": "max"}, "--pooling max: unknown; there are cls, avg, gem"),
        ("vit", {"pool_param": 2.0}, "--pool-param: goes with --pooling gem"),
        ("vit", {"pooling": "gem", "pool_param": -1.0}, "must be above 0"),
        ("vit", {"weights": "w.pth"}, "--weights: for timm:NAME and torchvision:NAME"),
        ("vit", {"dtype": "float16"}, "dtype is no argument of the model; give it as an option"),
        ("vit", {"layers": 3}, "layers"),
    ],
)
def test_what_does_not_go_with_a_model_is_said(kind, arguments, words, folders):
    with pytest.raises(InputError, match=words):
        resolve_by_name(f"hf:{folders(kind)}", arguments, None)


def test_a_size_that_a_model_does_not_take_is_its_fault(folders):
    spec = resolve_by_name(f"hf:{folders('vit')}", {}, Preprocess(4))
    with pytest.raises(DataError, match=r"hf:.*: fails on a batch of RGB images, \(1, 3, 4, 6\)"):
        described(spec.open(), pictures(1))


def test_benchmarks_of_patches_and_other_names_say_where_these_models_belong():
    with pytest.raises(ConfigError, match="is an image descriptor, which this benchmark does not take"):
        resolve("hf:tiny", {})
    with pytest.raises(ConfigError, match="onnx:URI, hf:NAME, timm:NAME, torchvision:NAME"):
        resolve_images("pdk", {}, Preprocess())


def test_nothing_of_it_is_imported_until_a_model_is_asked_for():
    code = (
        "import sys, raybench.cli.commands, raybench.benchmarks.images.disc2021, raybench.descriptors.hf_images; "
        "from raybench.descriptors.image_descriptors import resolve_images; "
        "from raybench.formats.images import Preprocess; resolve_images('thumbnail', {}, Preprocess()); "
        "sys.exit(bool({'transformers', 'huggingface_hub', 'timm', 'torchvision', 'torch'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
