"""Small valid files of every format that raybench reads, from which `mutations` makes broken ones."""

import io
import json
import tarfile
import tempfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from raybench.benchmarks.samples import SamplesIndex, sample_file
from raybench.formats import flo, shardfile
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.tar_members import tar_members
from raybench.metrics.samples import FigureOf, MeanOf, MeanSample, RankedSample, Units
from raybench.sources.archive_index import ArchiveIndex
from raybench.sources.listings import Listing
from raybench.sources.packed_keys import PackedKeys

NAMES = ["original/2000.jpg", "original/2001.jpg", "strong/2000_a.jpg", "crops/10/2000.jpg", "crops/10/2001.jpg"]
ROWS = np.random.default_rng(7).random((5, 4), np.float32)
PIXELS = np.random.default_rng(8).integers(0, 256, (12, 16, 3), np.uint8)


def saved(write, *arguments, **named) -> bytes:
    """What a function writes into a file."""
    file = io.BytesIO()
    write(file, *arguments, **named)
    return file.getvalue()


def picture(kind: str, pixels=PIXELS, mode: str | None = None, **options) -> bytes:
    image = Image.fromarray(pixels)
    image = image if mode is None else image.convert(mode)
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def hdf5(names: bool) -> list[bytes]:
    files = []
    for options in ({}, {"chunks": (2, 4), "compression": "gzip"}, {"chunks": (2, 4), "compression": "lzf"}):
        for text in (np.array(NAMES, "S"), NAMES):
            file = io.BytesIO()
            with h5py.File(file, "w") as out:
                out.create_dataset("vectors", data=ROWS, **options)
                if names:
                    kind = h5py.string_dtype() if isinstance(text, list) else None
                    out.create_dataset("image_names", data=text, dtype=kind)
            files.append(file.getvalue())
    newest = io.BytesIO()
    with h5py.File(newest, "w", libver="latest") as out:
        out.create_dataset("vectors", data=ROWS, chunks=(2, 4), compression="gzip", shuffle=True, fletcher32=True)
        if names:
            out.create_dataset("image_names", data=NAMES, dtype=h5py.string_dtype(), chunks=(2,), maxshape=(None,))
    return [*files, newest.getvalue()]


def parquet(names: bool) -> list[bytes]:
    lists = pa.array(ROWS.tolist(), pa.list_(pa.float32()))
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.reshape(-1)), 4)
    files = []
    for column in (lists, fixed):
        table = pa.table({"vectors": column} | ({"image_names": NAMES} if names else {}))
        for options in (
            {"compression": "snappy"},
            {"compression": "zstd", "row_group_size": 2},
            {"compression": "none"},
        ):
            files.append(saved(lambda file, made, kept: pq.write_table(made, file, **kept), table, options))
    return files


def own_truth() -> list[bytes]:
    """Truth of one's own data with words, and with numbers."""
    pairs = {"query": ["Q1", "Q2", "Q1"], "reference": ["R1", "", "R2"]}
    tables = [pa.table({**pairs, "grade": grades}) for grades in (["hard", None, "junk"], [1.0, None, 0.5])]
    return [saved(lambda file, table=table: pq.write_table(table, file)) for table in tables]


def plain_columns() -> bytes:
    return saved(lambda file: pq.write_table(pa.table({str(i): ROWS[:, i] for i in range(4)}), file))


def curve() -> bytes:
    from raybench.formats.parquet import write_parquet

    return write_parquet({"recall": np.linspace(0, 1, 6), "precision": np.linspace(1, 0.5, 6)})


def npz() -> list[bytes]:
    text = np.array(NAMES)
    by_columns = np.asfortranarray(ROWS)
    return [
        saved(np.savez, vectors=ROWS, image_names=text),
        saved(np.savez_compressed, embeddings=ROWS, names=text.astype("S")),
        saved(np.savez_compressed, vectors=by_columns, image_names=text),
    ]


SAMPLES_INDEX = SamplesIndex(
    "pairs", (MeanOf(FigureOf("mean", "T5"), (FigureOf("a", "T5"), FigureOf("b", "T5"))),), {"references": "0f3e"}
).to_json()
RESULT = json.dumps({"figures": [{"row": "a", "figure": "uAP", "value": 0.5, "low": 0.4, "high": None}]}).encode()


def samples() -> list[bytes]:
    """What a run keeps of its figures: means, a ranking, and a ranking of pairs of units."""
    units, figure = Units.plain(["a", "b", "c"]), (FigureOf("Flat", "uAP"),)
    unit, other = np.array([0, 1, 2, 1], np.int32), np.array([0, 2, 2, 0], np.uint8)
    means = MeanSample(figure, units, unit, np.array([[0.25], [0.5], [np.nan], [1.0]]))
    flags, missed = np.array([True, False, True, False]), np.array([0, 1, 0])
    ranked = [RankedSample(figure, ("step_ap",), units, flags, unit, second, missed) for second in (unit, other)]
    return [sample_file(None, one.to_arrays()) for one in (means, *ranked)]


def listings() -> list[bytes]:
    found = [Listing("s3://bucket/images", "0f3e", tuple(NAMES), counts) for counts in (None, np.arange(len(NAMES)))]
    found.append(Listing("s3://bucket/list.csv", "0f3e", tuple(NAMES), uris=tuple(NAMES)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.listing")
        return [(one.publish(str(file)), file.read_bytes())[1] for one in found]


def pair_scores() -> list[bytes]:
    labels = np.array([1, 0, 0, 1], np.uint8)
    return [
        saved(np.savez, labels=labels, distances=ROWS[0]),
        saved(np.savez_compressed, labels=labels > 0, scores=-ROWS[1]),
    ]


def tars() -> list[bytes]:
    """Each form of tar, with a long name, a hard link, a link to nothing, a folder and a file that is no picture."""
    return [_tar(form) for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)]


def _tar(form: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, size in (("./a.jpg", 700), ("b/" + "c" * 90 + "/d.jpg", 3), ("a.json", 5), ("e.jpg", 0)):
            info = tarfile.TarInfo(name)
            info.size = size
            archive.addfile(info, io.BytesIO(bytes(size)))
        for name, kind in (("f.jpg", tarfile.LNKTYPE), ("b/g.jpg", tarfile.SYMTYPE), ("b", tarfile.DIRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "./a.jpg"
            archive.addfile(info)
    return file.getvalue()


def zips() -> list[bytes]:
    """Stored and deflated, with zip64 sizes and something before the archive."""
    found = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", method) as archive:
            archive.writestr("a.jpg", bytes(300))
            archive.writestr("b/ä.jpg", b"abc" * 50)
            with archive.open("c.jpg", "w", force_zip64=True) as member:
                member.write(b"d" * 10)
            archive.writestr("a.json", b"{}")
        found += [file.getvalue(), b"#!/bin/sh\n" + file.getvalue()]
    return found


def indexes() -> list[bytes]:
    file = ForwardBytes(lambda start, end: tars()[1][start:end], len(tars()[1]), 2**20)
    members = tar_members(file, "x.tar", lambda name: name.endswith(".jpg"))
    index = ArchiveIndex(PackedKeys.of(members.names), members.places, members.others, members.is_rooted)
    return [index.encoded("")]


LIST = b"uri,name,other\ns3://b/a.jpg,a,1\nb/c.png,,2\n/d/e.jpg,x y,3\n"


def image_lists() -> list[bytes]:
    uris = ["s3://b/a.jpg", "b/c.png", "/d/e.jpg"]
    tables = [pa.table({"uri": uris, "name": ["a", None, "x"]}), pa.table({"n": [1, 2, 3], "uri": uris})]
    return [saved(lambda file, made: pq.write_table(made, file), table) for table in tables]


def npy() -> list[bytes]:
    return [saved(np.save, array) for array in (ROWS, ROWS.astype(np.float64), (255 * ROWS).astype(np.uint8))]


def flows(suffix: str) -> list[bytes]:
    rng = np.random.default_rng(9)
    flow = rng.normal(size=(6, 7, 2)).astype(np.float32)
    if suffix == ".flo":
        return [flo.write_flo(flow)]
    if suffix == ".npy":
        return [saved(np.save, flow), saved(np.save, flow.astype(np.float64))]
    if suffix == ".npz":
        return [saved(np.savez, flow=flow), saved(np.savez_compressed, flow)]
    import cv2

    kitti = rng.integers(0, 2**16, (6, 7, 3)).astype(np.uint16)
    return [bytes(cv2.imencode(".png", kitti)[1])]


def strips() -> list[bytes]:
    grey = np.random.default_rng(10).integers(0, 256, (24, 8), np.uint8)
    return [picture("PNG", grey), picture("PNG", grey, mode="1"), picture("PNG", grey, mode="P")]


def images(kind: str) -> list[bytes]:
    frames = [Image.fromarray(np.roll(PIXELS, shift, axis=0)) for shift in (3, 5, 7)]
    several = {"save_all": True, "append_images": frames}
    exif = Image.Exif()
    exif[0x0112] = 6
    made = {
        "PNG": lambda: [
            picture("PNG"),
            picture("PNG", mode="P"),
            picture("PNG", mode="RGBA"),
            picture("PNG", **several),
        ],
        "JPEG": lambda: [picture("JPEG", exif=exif), picture("JPEG", progressive=True), picture("JPEG", mode="CMYK")],
        "GIF": lambda: [picture("GIF"), picture("GIF", **several, disposal=2)],
        "WEBP": lambda: [picture("WEBP"), picture("WEBP", lossless=True), picture("WEBP", **several)],
        "TIFF": lambda: [
            *(picture("TIFF", compression=how) for how in (None, "tiff_lzw", "tiff_deflate", "packbits", "jpeg")),
            picture("TIFF", **several),
            picture("TIFF", mode="1", compression="group4"),
        ],
        "BMP": lambda: [picture("BMP"), picture("BMP", mode="P"), picture("BMP", mode="1")],
        "PPM": lambda: [picture("PPM"), picture("PPM", mode="L"), b"P3\n2 2\n255\n1 2 3 4 5 6 7 8 9 10 11 12\n"],
        "JPEG2000": lambda: [picture("JPEG2000"), picture("JPEG2000", mode="RGBA")],
    }
    return made[kind]()


def shard_files() -> list[bytes]:
    return [shardfile.encode({"vectors": ROWS, "index": np.arange(5), "names": np.array(NAMES)})]


def manifest() -> dict:
    return {
        "benchmark": "disc2021",
        "arguments": {"data": "/d", "k": 10},
        "execution": {"out": "/o"},
        "inputs": {"queries": "abc"},
        "status": "done",
        "versions": {"raybench": "0.1.0"},
        "cluster": {},
        "stages": [{"name": "x", "digest": "0f3e", "shards": 3}],
        "skipped": [],
        "files": ["disc_metrics.csv", "tables/disc_variants.csv"],
        "notes": ["uAP: micro average precision."],
        "further_notes": {"disc_variants": ["a note"]},
    }


TABLE = b"codec,score_norm,uAP,accuracy-at-1,recall-at-p90\nFlat,None,0.5,0.25,0.125\nPCA64,1.0[0;2],1.0,,0\n"


def config() -> list[bytes]:
    return [
        b"data: /d\ndescriptor: pdq\ncodecs: Flat;PCA64\nk: 10\nlimit: 3\n",
        b'descriptor: "my:Class"\ndescriptor-args: {size: 3, path: x}\nglobal_candidates: true\n',
        b"# a note\nqueries: &a /q\nreferences: *a\n",
    ]


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return file.getvalue()


def _torch_files(tensors) -> list[bytes]:
    """As torch writes them now, and as it did before 1.6."""
    import torch

    files = []
    for is_zip in (True, False):
        file = io.BytesIO()
        torch.save(tensors, file, _use_new_zipfile_serialization=is_zip)
        files.append(file.getvalue())
    return files


def weights() -> list[bytes]:
    import torch

    tensors = {"embeddings.weight": torch.arange(6.0).reshape(2, 3), "embeddings.bias": torch.zeros(2)}
    return _torch_files(tensors)


def features() -> list[bytes]:
    import torch

    count = torch.arange(5)
    tensors = {"embeddings": torch.tensor(ROWS), "split": count % 3, "image_num": count, "instance_id": count}
    return _torch_files(tensors)


def torchscript() -> list[bytes]:
    import torch

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, values):
            return self.layer(values.flatten(1)[:, :4])

    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(Small(), torch.zeros(1, 1, 2, 2)), file)
    return [file.getvalue()]


def onnx() -> list[bytes]:
    import onnx as library
    from onnx import TensorProto, helper

    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])
    node = helper.make_node("GlobalAveragePool", ["x"], ["p"])
    flat = helper.make_node("Flatten", ["p"], ["y"])
    graph = helper.make_graph([node, flat], "g", [given], [found])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return [library.ModelProto.SerializeToString(model)]


HF_INDEX = b'{"metadata": {"total_size": 8}, "weight_map": {"x.weight": "a.safetensors", "x.bias": "a.safetensors"}}'
HF_PREPROCESSORS = (
    b'{"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 9}, "crop_size": 8, "resample": 3}',
    b'{"image_processor_type": "ViTImageProcessorFast", "size": {"height": 9, "width": 8}, "image_mean": [0.5, 0, 1]}',
    b'{"image_processor": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 9}, '
    b'"crop_pct": 0.875, "rescale_factor": 0.004, "image_std": 0.25}}',
)


def splits() -> bytes:
    return json.dumps({"a": {"train": ["i_x", "v_y"], "test": ["i_z"]}, "full": {"test": ["i_z", "v_w"]}}).encode()
