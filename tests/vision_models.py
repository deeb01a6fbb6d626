"""Tiny models as transformers saves them, with random weights and the preprocessing that their kind has."""

import json
from pathlib import Path

import torch
import transformers

EDGE = 32
WIDE = [16, 64]  # height, width
TOWER = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
PATCHES = {**TOWER, "image_size": EDGE, "patch_size": 8}
LANGUAGE = {**TOWER, "vocab_size": 50, "max_position_embeddings": 8, "bos_token_id": 0, "eos_token_id": 1}


def made(kind):
    """A model of this kind, the same each time."""
    torch.manual_seed(0)
    if kind == "vit":
        return transformers.ViTModel(transformers.ViTConfig(**PATCHES))
    if kind == "vit-classifier":  # as most of the hub's are: without a pooler
        return transformers.ViTForImageClassification(transformers.ViTConfig(**PATCHES, num_labels=3))
    if kind == "dinov2":
        config = transformers.Dinov2WithRegistersConfig(**PATCHES, num_register_tokens=3)
        return transformers.Dinov2WithRegistersModel(config)
    if kind == "aimv2":
        return transformers.Aimv2VisionModel(transformers.Aimv2VisionConfig(**PATCHES))
    if kind == "msn":
        return transformers.ViTMSNModel(transformers.ViTMSNConfig(**PATCHES))
    if kind == "ijepa":
        return transformers.IJepaModel(transformers.IJepaConfig(**PATCHES))
    if kind == "wide":  # its 2 x 8 patches are as many as those of a square
        return transformers.ViTModel(transformers.ViTConfig(**{**TOWER, "image_size": WIDE, "patch_size": 8}))
    if kind == "clip":
        config = transformers.CLIPConfig(vision_config=PATCHES, text_config=LANGUAGE, projection_dim=12)
        return transformers.CLIPModel(config)
    if kind == "siglip":
        config = transformers.SiglipConfig(vision_config=PATCHES, text_config={**LANGUAGE, "pad_token_id": 1})
        return transformers.SiglipModel(config)
    if kind == "siglip2":  # of pictures in patches, whatever their shape
        config = transformers.Siglip2VisionConfig(**TOWER, patch_size=8, num_patches=16)
        return transformers.Siglip2VisionModel(config)
    if kind == "resnet":
        config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
        return transformers.ResNetModel(config)
    if kind == "convnext":
        return transformers.ConvNextModel(
            transformers.ConvNextConfig(hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1])
        )
    if kind == "swin":
        config = transformers.SwinConfig(image_size=EDGE, patch_size=4, embed_dim=8, depths=[1, 1], num_heads=[2, 2])
        config.window_size = 4
        return transformers.SwinModel(config)
    if kind == "mae":
        return transformers.ViTMAEModel(transformers.ViTMAEConfig(**PATCHES))
    assert kind == "bert", kind
    return transformers.BertModel(transformers.BertConfig(**TOWER, vocab_size=50))


PREPROCESSORS = {
    "vit": ("ViTImageProcessor", {"size": {"height": EDGE, "width": EDGE}}),
    "clip": (
        "CLIPImageProcessor",
        {"size": {"shortest_edge": EDGE}, "crop_size": {"height": EDGE, "width": EDGE}},
    ),
    "dinov2": ("BitImageProcessor", {"size": {"shortest_edge": 40}, "crop_size": {"height": EDGE, "width": EDGE}}),
    "siglip": ("SiglipImageProcessor", {"size": {"height": EDGE, "width": EDGE}}),
    "wide": ("ViTImageProcessor", {"size": {"height": WIDE[0], "width": WIDE[1]}}),
    "convnext": ("ConvNextImageProcessor", {"size": {"shortest_edge": 48}, "crop_pct": 0.875}),
}
OF_KIND = {
    "vit-classifier": "vit",
    "msn": "vit",
    "ijepa": "vit",
    "aimv2": "clip",
    "siglip2": "siglip",
    "resnet": "convnext",
    "swin": "vit",
    "mae": "vit",
    "bert": "vit",
}


def model_folder(path, kind="vit"):
    """The folder of such a model, by its kind."""
    made(kind).save_pretrained(path)
    name, more = PREPROCESSORS[OF_KIND.get(kind, kind)]
    write_json(path / "preprocessor_config.json", {"image_processor_type": name, **more})
    return path


def write_json(path, content):
    Path(path).write_text(json.dumps(content))
