"""Every public reader of input, as one call from bytes to values, with the seeds that are damaged for it.

A call looks at the file in all ways that a run would (header, then content), and asserts what both must agree on.
"""

import io
import json
import os
import signal
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz import seeds

from raybench.benchmarks.cases import cases_text, parsed_cases
from raybench.benchmarks.job import PicturePanel, ReportPicture
from raybench.benchmarks.samples import SamplesIndex, read_sample
from raybench.datasets import told_names
from raybench.errors import DataError, ProblemList, RaybenchError
from raybench.formats import (
    disc,
    disc_predictions,
    flo,
    hbench,
    hbench_matching,
    hbench_retrieval,
    hpatches,
    relevance,
    revisited,
    shardfile,
)
from raybench.formats import images as pictures
from raybench.formats import tss as tss_files
from raybench.formats.archive_members import LINK_TO_NOTHING
from raybench.formats.copydays import CopydaysLayout
from raybench.formats.forward_bytes import ForwardBytes
from raybench.formats.image_lists import read_image_list
from raybench.formats.limits import Limits
from raybench.formats.names import Names
from raybench.formats.pair_lists import read_pair_list
from raybench.formats.pair_scores import read_pair_scores
from raybench.formats.tar_members import tar_members
from raybench.formats.vector_kinds import plain_shape, read_plain
from raybench.formats.whole_numbers import whole_rows
from raybench.formats.zip_members import zip_content, zip_members
from raybench.runs.result_file import parsed_figures
from raybench.sources.archive_index import parsed_index
from raybench.sources.listings import parsed_listing, parsed_tree

OWN_ERRORS = (RaybenchError, shardfile.BrokenShardFile)
LIMITS = Limits(pixels=2**22, unpacked_bytes=2**26)
NAME = "dir/file"
PAIRS = hbench_matching.read_image_pairs(b"i_a.ref,i_a.e1\nv_b.ref,v_b.h2\n", NAME)
CASES = cases_text([ReportPicture("a", "b", kind="missed", panels=(PicturePanel("c", "d", b"\xff\xd8\xff", True),))])
TASK = hbench_retrieval.read_retrieval_task(b"i_a.ref,i_a.e1\ni_a.ref.0\ni_a.ref.1\n", NAME)


@dataclass(frozen=True)
class Reader:
    """`read` takes the bytes and a folder to write them into; `inputs` is its share of 50,000."""

    read: Callable[[bytes, Path], object]
    seeds: Callable[[], list[bytes]]
    repack: str = ""
    inputs: int = 1_000


def text(read: Callable[[bytes, str], object], *files: bytes) -> Reader:
    """A reader of text, which needs no folder."""
    return Reader(lambda data, _: read(data, NAME), lambda: list(files), inputs=800)


def _descriptors(data: bytes, _: Path) -> object:
    rows = read_plain(data, NAME, ".csv")
    assert plain_shape(data, NAME, ".csv") == rows.shape
    assert np.isfinite(rows).all()
    return rows


def _sample(data: bytes, _: Path) -> object:
    sample = read_sample(data, NAME)
    drawn = sample.draw(np.ones(len(sample.units), np.int64))
    assert drawn.shape == (len(sample.figures),)
    return drawn


def _plain(suffix: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, _: Path) -> object:
        shape = plain_shape(data, NAME, suffix, LIMITS)
        rows = read_plain(data, NAME, suffix, LIMITS)
        assert rows.shape == shape
        return rows

    return read


def _numbered(suffix: str) -> Callable[[bytes, Path], object]:
    """Vectors without names, a row per patch."""

    def read(data: bytes, folder: Path) -> object:
        from raybench.sources.vector_blocks import VectorBlocks, has_names

        file = folder / f"set{suffix}"
        file.write_bytes(data)
        has_names(str(file))
        blocks = VectorBlocks.plain(str(file), LIMITS)
        assert sum(len(rows) for _, rows in blocks.read(0, len(blocks.keys))) == blocks.count
        return blocks

    return read


def _named(suffix: str) -> Callable[[bytes, Path], object]:
    """As a run opens a set of vectors: names, digest, a check of all values, then ranges of rows."""

    def read(data: bytes, folder: Path) -> object:
        from raybench.sources.named_vectors import NamedVectors

        file = folder / f"set{suffix}"
        file.write_bytes(data)
        problems = ProblemList()
        found = NamedVectors.scan([str(file)], "path", problems)
        problems.check()
        assert found is not None
        index, rows = found.rows.read(0, len(found))
        assert rows.shape == (len(found), found.dimension)
        assert sorted(index.tolist()) == list(range(len(found)))
        return rows

    return read


def _is_picture(name: str) -> bool:
    return name.endswith(".jpg")


def _tar(data: bytes, _: Path) -> object:
    """Every member lies in the file; a link to nothing nowhere."""
    places = tar_members(_forward(data), NAME, _is_picture).places
    assert ((places.start >= 0) & (places.start + places.span <= len(data))).all()
    assert (places.size == places.span).all()
    return places


def _zip(data: bytes, _: Path) -> object:
    """The directory, then the content of each member, whole and its start."""
    places = zip_members(_forward(data), NAME, _is_picture, LIMITS).places
    contents = []
    for start, span, size, method, crc in zip(*(one.tolist() for one in places.columns().values()), strict=True):
        assert 0 <= start <= start + span <= len(data)
        if method == LINK_TO_NOTHING:
            continue
        contents.append(zip_content(data[start : start + span], NAME, method, size, crc))
        assert zip_content(data[start : start + span], NAME, method, size, crc, 5) == contents[-1][:5]
    return contents


def _forward(data: bytes) -> ForwardBytes:
    return ForwardBytes(lambda start, end: data[start:end], len(data), far_bytes=2**12)


def _image_list(suffix: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, _: Path) -> object:
        problems = ProblemList()
        found = read_image_list(data, NAME + suffix, problems, LIMITS)
        assert len(found.uris) == len(found.names) == len(found.line)
        assert "" not in found.uris.to_pylist()
        problems.check()
        return found

    return read


def _ground_truth(data: bytes, _: Path) -> object:
    truth = disc.read_ground_truth(data, NAME)
    problems = ProblemList()
    return truth.indices(Names.of(["Q1", "Q2"]), Names.of(["R1", "R2"]), problems)


def _relevance(name: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, _: Path) -> object:
        problems = ProblemList()
        truth = relevance.read_relevance(data, name, problems, LIMITS)
        assert len(truth) == len(truth.grades.gain) == len(truth.grades.hard)
        problems.check()
        assert not np.any(truth.grades.gain < 0) and np.any(truth.grades.gain > 0)
        return truth.indices(Names.of(["Q1", "Q2"]), Names.of(["R1", "R2"]), ProblemList())

    return read


def _pair_list(data: bytes, name: str) -> object:
    problems = ProblemList()
    found = read_pair_list(data, name, problems)
    assert len(found) and "" not in (*found.a.to_pylist(), *found.b.to_pylist())
    assert len(found) == len(found.a) == len(found.b) == len(found.line)
    problems.check()
    return found


def _predictions(data: bytes, _: Path) -> object:
    checked = disc_predictions.check_predictions(io.BytesIO(data), NAME, block_bytes=64)
    parts = [disc_predictions.read_block(io.BytesIO(data), block, NAME) for block in checked.blocks]
    assert sum(len(part[2]) for part in parts) == checked.count
    return parts


def _layout(data: bytes, _: Path) -> object:
    names = Names.of(sorted(set(data.decode("utf-8", "replace").split("\n"))))
    problems = ProblemList()
    layout = CopydaysLayout.of(names, NAME, problems)
    problems.check()
    return layout


def _revisited(data: bytes, _: Path) -> object:
    problems = ProblemList()
    found = revisited.read_revisited_truth(data, NAME, problems)
    assert found is not None or problems.lines
    problems.check()
    assert found.boxes.shape == (len(found.queries), 4)
    assert len(found.query) == len(found.reference) == len(found.label)
    assert (found.reference < len(found.references)).all()
    return found


def _distractors(data: bytes, _: Path) -> object:
    problems = ProblemList()
    names = revisited.read_distractor_names(data, NAME, problems)
    problems.check()
    return names


def _flow(suffix: str) -> Callable[[bytes, Path], object]:
    def read(data: bytes, _: Path) -> object:
        start = data[: flo.FLOW_FORMATS[suffix].header_bytes]
        size = flo.flow_size(start, len(data), NAME, suffix, LIMITS)
        flow = flo.read_flow(data, NAME, suffix, LIMITS)
        assert flow.shape == (size[1], size[0], 2)
        assert flow.dtype == np.float32
        return flow

    return read


def _picture(data: bytes, _: Path) -> object:
    sizes = [pictures.image_size(data, NAME, turn, LIMITS) for turn in (False, True)]
    pixels = [pictures.decode_image(data, NAME, turn, LIMITS) for turn in (False, True)]
    assert [(one.shape[1], one.shape[0]) for one in pixels] == sizes
    return pixels


def _strip(data: bytes, _: Path) -> object:
    shape = hbench.strip_shape(data[: hbench.PNG_HEADER_BYTES], NAME)
    patches = hbench.read_strip(data, NAME, LIMITS)
    assert patches.shape == (shape[0], shape[1], shape[1])
    return patches


def _manifest(data: bytes, folder: Path) -> object:
    from raybench.runs.manifest import read_manifest, refuse_other_run

    (folder / "manifest.json").write_bytes(data)
    found = read_manifest(str(folder))
    asked = read_manifest_seed(folder)
    found.is_done_as(asked)
    refuse_other_run(found, asked, str(folder))
    return found


def read_manifest_seed(folder: Path):
    from raybench.runs.manifest import Manifest

    return Manifest(**seeds.manifest())


def _finished(name: str) -> Callable[[bytes, Path], object]:
    """A finished run of which one file is damaged, shown as `raybench report` shows it."""

    def read(data: bytes, folder: Path) -> object:
        from raybench.runs.finished import shown_run
        from raybench.runs.report.page import write_report

        manifest = seeds.manifest()
        manifest["files"].append("curves/Flat.parquet")
        files = {
            "manifest.json": json.dumps(manifest).encode(),
            "disc_metrics.csv": seeds.TABLE,
            "tables/disc_variants.csv": seeds.TABLE,
            "curves/Flat.parquet": seeds.curve(),
            name: data,
        }
        for path, content in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content)
        shown = shown_run(str(folder), pictured=False)
        texts = [form for table in shown.tables for form in (table.to_text(), table.to_html(), table.to_latex())]
        return texts, write_report([shown])

    return read


def _config(data: bytes, folder: Path) -> object:
    import click

    from raybench.benchmarks import BENCHMARKS
    from raybench.cli.options import command_options, jobs_of

    (folder / "job.yaml").write_bytes(data)
    members = [BENCHMARKS["disc2021"].open()]
    made = []

    def run(**given: object) -> None:
        made.append(jobs_of(members, given))

    command = click.Command("run", params=command_options(members, out_required=False)[0], callback=run)
    try:
        command.main(["--config", str(folder / "job.yaml"), "--out", str(folder / "out")], standalone_mode=False)
    except click.ClickException:  # wrong values of options are click's to say, as `main` shows them
        return None
    return made


def _json_argument(data: bytes, folder: Path) -> object:
    from raybench.benchmarks import BENCHMARKS
    from raybench.cli.options import jobs_of
    from raybench.runs.jobs import options_for

    benchmark = BENCHMARKS["disc2021"].open()
    given = {one.key: None for one in options_for(benchmark)}
    given |= {"descriptor": "a:B", "out": str(folder), "descriptor_args": data.decode("utf-8", "replace")}
    return jobs_of([benchmark], given)


def _model_kind(data: bytes, folder: Path) -> object:
    from raybench.cli.sscd_flags import disc_arguments
    from raybench.descriptors.model_files import kind_of_model

    (folder / "model").write_bytes(data)
    disc_arguments(["--output_path", "/o", "--model_state", str(folder / "model")])
    return kind_of_model(str(folder / "model"))


def _torchscript(data: bytes, folder: Path) -> object:
    from raybench.descriptors.torch_models import load_torchscript

    (folder / "model.pt").write_bytes(data)
    return load_torchscript(str(folder / "model.pt"), "cpu")


def _weights(data: bytes, folder: Path) -> object:
    from raybench.descriptors.sscd import check_state, read_state

    (folder / "w.pt").write_bytes(data)
    state = read_state(str(folder / "w.pt"))
    return check_state(state, str(folder / "w.pt"), "CV_RESNET50", 512)


def _onnx(data: bytes, folder: Path) -> object:
    from raybench.descriptors.onnx_images import OnnxImages

    (folder / "m.onnx").write_bytes(data)
    return OnnxImages(str(folder / "m.onnx"), 8, "square").load("cpu")


def _hf_config(data: bytes, folder: Path) -> object:
    from raybench.descriptors.hf_files import model_files, place_of, read_json

    (folder / "config.json").write_bytes(b"{}")
    (folder / "model.safetensors.index.json").write_bytes(data)
    (folder / "a.safetensors").write_bytes(b"")
    files = model_files("hf:m", place_of(str(folder))[1])
    assert set(files) == {"config.json", "model.safetensors.index.json", "a.safetensors"}
    return read_json(files["config.json"])


def _hf_preprocessor(data: bytes, folder: Path) -> object:
    from raybench.descriptors.hf_preprocessing import preprocess_of_model

    (folder / "preprocessor_config.json").write_bytes(data)
    steps = preprocess_of_model({"preprocessor_config.json": str(folder / "preprocessor_config.json")}, "hf:m")
    assert min(steps.shape(70, 50)) > 0 and steps.words and np.isfinite([*steps.mean, *steps.std]).all()
    return steps


PHOTOTOUR = b"0 0 0 2 0 0 0\n1 0 0 7 3 0 0\n"
DISTANCES = b"0.5,1\n1.25,0\nnan,1\n3,0\n"
MATCHES = b"i_a.ref,i_a.e1\n1,0,2\n0.1,0.2,0.3\n2,1,0\n0.5,0.5,0.5\nv_b.ref,v_b.h2\n0,1\n0.1,0.2\n1,0\n0.4,0.5\n"
LISTS = b"i_a.ref,i_a.e1\ni_a.ref.0,i_a.e1.0\ni_a.ref.1,i_a.e1.1\n"
REVISITED = (
    b'{"imlist": ["r0", "r1", "r2"], "qimlist": ["q0", "q1"], "gnd": [{"bbx": [1.5, 2, 30, 40.25], "easy": [2], '
    b'"hard": [], "junk": [0]}, {"bbx": [0, 0, 9, 9], "easy": [], "hard": [1, 0], "junk": []}]}\n'
)
PREDICTIONS = b"query_id,reference_id,score\nQ1,R1,0.5\nQ1,R2,0.25\nQ2,R2,1e-3\n"
IMAGE_KINDS = ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "JPEG2000")
READERS = {
    "hbench .pairs": text(hbench.read_pairs, b"i_a.ref.0,i_a.e1.0,1\ni_a.ref.1,v_b.h2.12,0\n", b"i_a.ref.0,v_b.e1.3\n"),
    "pair list": text(_pair_list, b"a,b,label\nx/p1.png,p2,1\np3,p4,0\n", b"p1,p2,true\np3,p4,false\n", PHOTOTOUR),
    "pair scores": text(read_pair_scores, b"distance,label\n0.5,1\n1.25,0\n", b"label,x,score\n1.0,a,-0.5\n0.0,b,-3\n"),
    "pair scores .npz": Reader(lambda data, _: read_pair_scores(data, "x.npz", LIMITS), seeds.pair_scores, "zip"),
    "hbench .labels": text(hbench.read_labels, b"0\n1\n1\n"),
    "hbench .results": text(hbench.read_distances, b"0.5,1\n1.25,0\n3,0\n", b"1.5\n2\n"),
    "hbench .results, holes": text(lambda data, name: hbench.read_distances(data, name, True), DISTANCES),
    "hbench .benchmark": text(hbench.read_list_names, b"a.pairs\nb_c.pairs\n"),
    "hbench descriptors": Reader(
        _descriptors, lambda: [b"0,255,3\n17,3,9\n", b"0.5;1e3;-2\n1;2;3\n", b"1 2 3\n4 5 6\n"]
    ),
    "matching .benchmark": text(hbench_matching.read_image_pairs, b"i_a.ref,i_a.e1\nv_b.ref,v_b.h2\n"),
    "matching .labels": text(
        lambda data, name: hbench_matching.read_true_matches(data, name, PAIRS),
        b"i_a.ref,i_a.e1\n1,0,2\nv_b.ref,v_b.h2\n0,1\n1,0\n",
    ),
    "matching .results": text(lambda data, name: hbench_matching.read_matches(data, name, PAIRS), MATCHES),
    "retrieval .benchmark": text(hbench_retrieval.read_retrieval_task, b"i_a.ref,i_a.e1\ni_a.ref.0\ni_a.e1.17\n"),
    "retrieval .labels": text(lambda data, name: hbench_retrieval.read_clusters(data, name, TASK), LISTS),
    "retrieval .results": text(lambda data, name: hbench_retrieval.read_lists(data, name, TASK), LISTS),
    "hpatches splits.json": text(hpatches.read_splits, seeds.splits()),
    "hpatches verif_*.csv": text(
        hpatches.read_numbered_pairs, b"s1,t1,idx1,s2,t2,idx2\ni_a,0,3,v_b,5,0\ni_a,1,3,i_a,2,9\n"
    ),
    "hpatches retr_*.csv": text(hpatches.read_reference_patches, b"s,idx\ni_a,0\nv_b,17\n"),
    "names told by a Revisited truth": text(
        told_names.revisited_names,
        b'{"imlist": ["a", "b"], "qimlist": ["c"], "gnd": [{"bbx": [0,0,9,9], "easy": [0], "hard": [], "junk": []}]}',
    ),
    "listed names": text(told_names.listed_names, b"a/1.jpg\nb/2.jpg\n"),
    "disc ground truth": Reader(_ground_truth, lambda: [b"query_id,reference_id\nQ1,R1\nQ2,\n", b'Q1,R1\n"Q2",R2\n']),
    "own truth .csv": Reader(
        _relevance("truth.csv"),
        lambda: [b"query,reference,grade\nQ1,R1,positive\nQ2,,\nQ1,R2,junk\n", b"Q1,R1.jpg,2\nQ2,x/R2,0.5\n"],
    ),
    "own truth .parquet": Reader(_relevance("truth.parquet"), seeds.own_truth),
    "disc predictions": Reader(_predictions, lambda: [PREDICTIONS, PREDICTIONS[28:]]),
    "copydays names": Reader(_layout, lambda: ["\n".join(seeds.NAMES).encode()]),
    "revisited gnd.json": Reader(_revisited, lambda: [REVISITED]),
    "revisited names": Reader(_distractors, lambda: [b"00/0000000.jpg\n01/0000037.jpg\r\n"], inputs=500),
    "tss pair.txt": text(tss_files.read_pair, b"Image1,Image2\na/b.jpg,c.png\n"),
    "tss flip_gt.txt": text(tss_files.read_flip, b"1\n"),
    "whole numbers": text(lambda data, _: whole_rows(data or b"1", ","), b"0,255\n17,3\n", b"123456789012,1\n1,2\n"),
    ".flo": Reader(_flow(".flo"), lambda: seeds.flows(".flo")),
    "flow .npy": Reader(_flow(".npy"), lambda: seeds.flows(".npy")),
    "flow .npz": Reader(_flow(".npz"), lambda: seeds.flows(".npz"), "zip"),
    "flow .png": Reader(_flow(".png"), lambda: seeds.flows(".png"), "png"),
    **{
        f"image {kind}": Reader(
            _picture, lambda kind=kind: seeds.images(kind), "png" if kind == "PNG" else "", inputs=1_500
        )
        for kind in IMAGE_KINDS
    },
    "tss mask": Reader(lambda data, _: tss_files.read_mask(data, NAME, LIMITS), seeds.strips, "png"),
    "tss image": Reader(lambda data, _: tss_files.read_image(data, NAME, LIMITS), lambda: seeds.images("PNG"), "png"),
    "patch strip": Reader(_strip, seeds.strips, "png"),
    "patch": Reader(lambda data, _: pictures.grey_levels(data, NAME, LIMITS), seeds.strips, "png"),
    "numbered .npy": Reader(_numbered(".npy"), seeds.npy),
    "numbered .npz": Reader(_numbered(".npz"), lambda: [seeds.saved(np.savez, vectors=seeds.ROWS)], "zip"),
    "vectors .npy": Reader(_plain(".npy"), seeds.npy, inputs=2_000),
    "vectors .h5": Reader(_plain(".h5"), lambda: seeds.hdf5(names=False), inputs=4_000),
    "vectors .parquet": Reader(
        _plain(".parquet"), lambda: [*seeds.parquet(names=False), seeds.plain_columns()], inputs=2_000
    ),
    "named .h5": Reader(_named(".h5"), lambda: seeds.hdf5(names=True), inputs=5_000),
    "named .npz": Reader(_named(".npz"), seeds.npz, "zip", inputs=2_000),
    "named .parquet": Reader(_named(".parquet"), lambda: seeds.parquet(names=True), inputs=2_000),
    "named .pt": Reader(_named(".pt"), seeds.features, "zip"),
    "shard file": Reader(lambda data, _: shardfile.decode(data), seeds.shard_files, "shard", inputs=2_000),
    "tar": Reader(_tar, seeds.tars),
    "zip": Reader(_zip, seeds.zips, "zip"),
    "archive index": Reader(lambda data, _: parsed_index(data, NAME, ""), seeds.indexes, "shard"),
    "image list .csv": Reader(_image_list(".csv"), lambda: [seeds.LIST, b"name,uri\n,a/b.jpg\nx,c.png\n"]),
    "image list .parquet": Reader(_image_list(".parquet"), seeds.image_lists),
    "listing": Reader(lambda data, _: parsed_listing(data, NAME), seeds.listings, "shard"),
    "listed parts": text(parsed_tree, b'{"a/truth": "/store/listings/1.json", "a/queries": "s3://b/2.listing"}'),
    "manifest.json": Reader(_manifest, lambda: [json.dumps(seeds.manifest()).encode()]),
    "finished manifest": Reader(
        _finished("manifest.json"), lambda: [json.dumps(seeds.manifest()).encode()], inputs=500
    ),
    "finished table": Reader(_finished("disc_metrics.csv"), lambda: [seeds.TABLE]),
    "finished curves": Reader(_finished("curves/Flat.parquet"), lambda: [seeds.curve()]),
    "finished cases": text(parsed_cases, CASES),
    "finished sample": Reader(_sample, seeds.samples, "zip"),
    "finished samples.json": text(SamplesIndex.from_json, seeds.SAMPLES_INDEX),
    "result.json": text(parsed_figures, seeds.RESULT),
    "config YAML": Reader(_config, seeds.config),
    "JSON argument": Reader(_json_argument, lambda: [b'{"size": 32, "path": ["a", {"b": null}]}'], inputs=500),
    "model kind": Reader(
        _model_kind, lambda: [*seeds.weights(), *seeds.torchscript(), seeds.zipped({"a/code/x.py": b"1"})], "zip"
    ),
    # Not with checksums that fit: who may write such a file may write one that runs code, and the user trusts it.
    "torchscript": Reader(_torchscript, seeds.torchscript),
    "sscd weights": Reader(_weights, seeds.weights, "zip"),
    "onnx": Reader(_onnx, seeds.onnx),
    "hf weights index": Reader(_hf_config, lambda: [seeds.HF_INDEX], inputs=500),
    "hf preprocessor_config.json": Reader(_hf_preprocessor, lambda: list(seeds.HF_PREPROCESSORS)),
}


def _faulty(data: bytes, _: Path) -> object:
    """What no reader may do, by the input's checksum."""
    kind = zlib.crc32(data) % 6
    if kind == 0:
        raise KeyError("a library's own")
    if kind == 1:
        return sum(iter(int, 1))  # an endless loop outside of Python's reach
    if kind == 2:
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == 3:
        return bytes(2**31)
    if kind == 4:
        raise DataError("one of ours")
    return data


FAULTY = Reader(_faulty, lambda: [b"valid"])
