"""Files of a few kB that would take a machine's memory, lead elsewhere, or run for ever: refused by what they say."""

import io
import struct
import zipfile
import zlib

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from raybench.errors import DataError, Problems
from raybench.formats import flo, tss
from raybench.formats.hbench import read_strip
from raybench.formats.hdf5_vectors import Hdf5Vectors, read_hdf5_rows
from raybench.formats.images import decode_image, image_size
from raybench.formats.limits import MOST_PIXELS, Limits
from raybench.formats.npz_vectors import NpzVectors
from raybench.formats.parquet_vectors import ParquetVectors, read_parquet_rows

ROWS = np.random.default_rng(0).random((6, 4), np.float32)
NAMES = [f"R{number}" for number in range(6)]
SMALL = Limits(pixels=1_000, unpacked_bytes=1_000)


def refused(read, *words):
    with pytest.raises((DataError, Problems)) as caught:
        read()
    assert all(word in str(caught.value) for word in words), caught.value


def png_of(width, height, bits=8, colour=0):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(bytes(1_000))), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def gif_of(width, height):
    stream = io.BytesIO()
    Image.new("P", (4, 4)).save(stream, "GIF")
    data = bytearray(stream.getvalue())
    data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


def saved(write, *arguments, **named):
    stream = io.BytesIO()
    write(stream, *arguments, **named)
    return stream.getvalue()


def hdf5(fill, **options):
    stream = io.BytesIO()
    with h5py.File(stream, "w", **options) as file:
        fill(file)
    stream.seek(0)
    return stream


def named(file, **options):
    file.create_dataset("vectors", data=ROWS, **options)
    file["image_names"] = np.array(NAMES, "S")


@pytest.mark.parametrize("data", [png_of(30_000, 30_000), gif_of(40_000, 40_000)], ids=["PNG", "GIF"])
def test_a_picture_of_a_billion_pixels_in_a_kilobyte_is_refused(data):
    assert len(data) < 2_000
    width, height = image_size(data, "bomb")
    assert width * height > MOST_PIXELS
    refused(lambda: decode_image(data, "bomb"), f"bomb: {width} x {height} px", "--max-image-pixels")


def test_masks_images_strips_and_flows_are_held_to_the_same_limit():
    grey = png_of(40, 400)
    refused(lambda: tss.read_mask(grey, "m.png", SMALL), "m.png: 40 x 400 px", "--max-image-pixels")
    refused(lambda: tss.read_image(grey, "i.png", SMALL), "i.png: 40 x 400 px", "--max-image-pixels")
    refused(lambda: read_strip(grey, "s.png", SMALL), "s.png: 40 x 400 px", "--max-image-pixels")
    flow = np.zeros((40, 40, 2), np.float32)
    files = {".flo": flo.write_flo(flow), ".npy": saved(np.save, flow), ".npz": saved(np.savez_compressed, flow)}
    files[".png"] = png_of(40, 40, bits=16, colour=2)
    for suffix, data in files.items():
        refused(lambda data=data, suffix=suffix: flo.read_flow(data, "f", suffix, SMALL), "40 x 40 px", "--max-image")
        start = data[: flo.FLOW_FORMATS[suffix].header_bytes]
        refused(lambda start=start, data=data, suffix=suffix: flo.flow_size(start, len(data), "f", suffix, SMALL), "40")


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_only_the_first_picture_of_an_animation_is_decoded(kind):
    first, others = (np.full((8, 8, 3), value, np.uint8) for value in (250, 5))
    stream = io.BytesIO()
    frames = [Image.fromarray(np.roll(others, shift, 1)) for shift in range(3)]
    Image.fromarray(first).save(
        stream, kind, save_all=True, append_images=frames, **({"lossless": True} if kind == "WEBP" else {})
    )
    assert abs(int(decode_image(stream.getvalue(), "x").mean()) - 250) <= 2


def test_a_flow_header_that_says_more_than_the_file_has_is_refused():
    refused(lambda: flo.read_flow(b"PIEH" + struct.pack("<ii", 10**9, 10**9), "x.flo", ".flo"), "1000000000x1000000000")
    refused(lambda: flo.read_flow(b"PIEH" + struct.pack("<ii", 99_999, 99_999), "x.flo", ".flo"), "body has 0 bytes")


def test_an_npz_that_says_more_than_it_holds_or_is_oddly_packed_is_refused():
    whole = saved(np.savez, vectors=ROWS, image_names=np.array(NAMES))
    refused(lambda: NpzVectors(io.BytesIO(whole.replace(b"(6, 4), ", b"(6,1024)")), "x.npz"), "x.npz")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("vectors.npy", saved(np.save, ROWS))
        archive.writestr("names.npy", saved(np.save, np.array(NAMES)))
    refused(lambda: NpzVectors(packed, "x.npz"), "packed in a way that numpy does not")


def test_what_an_npz_must_hold_whole_is_held_to_the_limit():
    wide = np.asfortranarray(np.zeros((6, 400), np.float32))
    file = io.BytesIO(saved(np.savez_compressed, vectors=wide, names=np.array(NAMES)))
    refused(lambda: NpzVectors(file, "x.npz", SMALL).rows(0, 1), "9,600 bytes", "--max-unpacked-bytes")
    long = io.BytesIO(saved(np.savez_compressed, vectors=ROWS, names=np.array(NAMES, "S4000")))
    refused(lambda: NpzVectors(long, "x.npz", SMALL).names(), "24,000 bytes", "--max-unpacked-bytes")
    assert NpzVectors(long, "x.npz").names().to_pylist() == NAMES


def test_hdf5_never_leads_to_another_file(tmp_path):
    other = tmp_path / "secret.h5"
    with h5py.File(other, "w") as file:
        named(file)
    layout = h5py.VirtualLayout((6, 4), np.float32)
    layout[:] = h5py.VirtualSource(str(other), "vectors", (6, 4))
    raw = tmp_path / "secret.raw"
    raw.write_bytes(ROWS.tobytes())

    def linked(file):
        file["vectors"] = h5py.ExternalLink(str(other), "vectors")

    def soft(file):
        file["v"] = ROWS
        file["vectors"] = h5py.SoftLink("/v")

    def virtual(file):
        file.create_virtual_dataset("vectors", layout)

    def outside(file):
        file.create_dataset("vectors", (6, 4), np.float32, external=[(str(raw), 0, h5py.h5f.UNLIMITED)])

    for make, words in ((linked, "is a link"), (soft, "is a link"), (virtual, "other files"), (outside, "other files")):
        path = tmp_path / f"{make.__name__}.h5"
        with h5py.File(path, "w") as file:
            make(file)
            file["image_names"] = np.array(NAMES, "S")
        with path.open("rb") as opened:
            refused(lambda opened=opened: Hdf5Vectors(opened, "x.h5"), "x.h5: vectors", words)


def test_hdf5_rows_that_nobody_wrote_are_refused_by_what_the_file_says():
    def huge(file):
        file.create_dataset("vectors", (10**9, 512), np.float32, chunks=(1, 512))
        file.create_dataset("image_names", (10**9,), "S8", chunks=(1,))

    refused(lambda: Hdf5Vectors(hdf5(huge), "x.h5"), "says that it holds 2,056,000,000,000 bytes")
    refused(
        lambda: read_hdf5_rows(hdf5(lambda file: file.create_dataset("vectors", (10**7, 512))).getvalue(), "x"), "says"
    )


def test_hdf5_chunks_and_names_are_held_to_the_limit():
    refused(
        lambda: Hdf5Vectors(hdf5(lambda file: named(file, chunks=(6, 4))), "x", Limits(unpacked_bytes=90)), "a chunk of"
    )
    names = Hdf5Vectors(hdf5(lambda file: named(file)), "x.h5", Limits(unpacked_bytes=11))
    refused(names.names, "--max-unpacked-bytes")


def test_an_hdf5_chunk_that_unpacks_to_more_than_a_chunk_is_refused():
    def bomb(file):
        made = file.create_dataset("vectors", (6, 40_000), np.float32, chunks=(6, 40_000), compression="gzip")
        made.id.write_direct_chunk((0, 0), zlib.compress(bytes(2**27), 9))
        file["image_names"] = np.array(NAMES, "S")

    refused(lambda: Hdf5Vectors(hdf5(bomb), "x.h5").rows(0, 6), "unpacks to more than that")


def test_an_hdf5_heap_that_would_be_walked_for_ever_is_refused():
    def strings(file):
        file["vectors"] = ROWS
        file.create_dataset("image_names", data=NAMES, dtype=h5py.string_dtype())

    data = bytearray(hdf5(strings).getvalue())
    assert Hdf5Vectors(io.BytesIO(data), "x.h5").names().to_pylist() == NAMES
    at = data.index(b"GCOL") + 16
    data[at : at + 2], data[at + 8 : at + 16] = bytes(2), bytes(8)  # free space of no size
    refused(lambda: Hdf5Vectors(io.BytesIO(data), "x.h5").names(), "x.h5: the strings at byte", "are damaged")
    data[at : at + 2], data[at + 8 : at + 16] = b"\x01\x00", b"\xf0" + b"\xff" * 7  # one that ends where it begins
    refused(lambda: Hdf5Vectors(io.BytesIO(data), "x.h5").names(), "are damaged")


def test_a_parquet_file_of_endless_equal_values_is_refused():
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2**25, np.float32)), 2**10)
    table = pa.table({"vectors": zeros, "names": [str(number) for number in range(2**15)]})
    data = saved(lambda file: pq.write_table(table, file, compression="zstd"))
    assert len(data) < 2**17
    refused(lambda: ParquetVectors(io.BytesIO(data), "x.parquet"), "says that it holds")
    refused(lambda: read_parquet_rows(data, "x.parquet"), "says that it holds")


def test_a_long_name_that_stands_for_every_row_of_parquet_is_held_to_the_limit():
    table = pa.table({"vectors": ROWS[[0] * 1_000].tolist(), "names": ["x" * 10_000] * 1_000})
    file = io.BytesIO(saved(lambda file: pq.write_table(table, file)))
    limits = Limits(unpacked_bytes=2**20)
    refused(lambda: ParquetVectors(file, "x.parquet", limits).names(), "10,000,000 bytes", "--max-unpacked-bytes")


def test_a_dimension_of_millions_is_refused():
    wide = np.zeros((1, 2**20 + 1), np.float16)
    refused(lambda: NpzVectors(io.BytesIO(saved(np.savez, vectors=wide, names=np.array(["a"]))), "x"), "1,048,577")
