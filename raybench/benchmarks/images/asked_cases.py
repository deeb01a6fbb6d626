"""Queries of a finished run that are asked for by name, as cases: what was found first, and where the true match is.

They are read from the run's own `results/predictions.csv` and drawn from the images, where these are still there: how
a page shows what one run found and another did not.
"""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from raybench import storage
from raybench.benchmarks.images.disc_sets import find_truth, role_folder
from raybench.benchmarks.images.mistakes import Case, pixels_of
from raybench.benchmarks.images.own_labels import OwnTruth, labels_of, own_pairs, truth_uri
from raybench.benchmarks.images.own_sets import NAMED_BY, WANTED, has_vectors, set_beside
from raybench.benchmarks.images.sets import PictureSet, pictures
from raybench.benchmarks.images.sheets import Panel
from raybench.benchmarks.job import ReportPicture
from raybench.errors import ConfigError, DataError, InputError, ProblemList, Problems, blamed_on_file
from raybench.formats.copydays import ORIGINAL, CopydaysLayout
from raybench.formats.images import SUFFIXES, decode_image
from raybench.sources.archive_names import is_archive
from raybench.sources.file_names import check_names
from raybench.sources.image_files import ImageFiles, list_images
from raybench.sources.uri_lists import is_list
from raybench.table import Table, row_name

PREDICTIONS = "results/predictions.csv"
MOST_ASKED = 60  # queries
COLUMNS = {"query_id": pa.string(), "reference_id": pa.string(), "score": pa.float64()}
TRIED = (*SUFFIXES, ".JPG", ".JPEG", ".PNG")
KEYS = ("codec", "score_norm")  # columns that name a row of the main tables

Found = dict[str, list[tuple[str, float]]]  # reference and score of each query's candidates, by falling score
Truth = dict[str, list[str]]  # references that are true of each query
Reader = Callable[[str], NDArray[np.uint8] | None]


@dataclass(frozen=True)
class Readers:
    """How the image of a query, and of a reference, is read by its name."""

    query: Reader
    reference: Reader


def disc_cases(
    out: str, arguments: dict[str, Any], tables: Sequence[Table], units: Sequence[str]
) -> list[ReportPicture]:
    """These queries of a disc2021 run; none without images, or without its predictions."""
    data, asked = arguments.get("data"), units[:MOST_ASKED]
    folders = [arguments.get(role) or role_folder(data, role, ProblemList()) for role in ("queries", "references")]
    if not all(folders):
        return []
    try:
        truth = find_truth(arguments.get("ground_truth"), [data, arguments.get("features")]).pairs
    except (ConfigError, DataError, Problems):
        return []
    known: Truth = {}
    own = pc.is_in(truth.query, value_set=pa.array(asked, pa.string()))
    pairs = (column.filter(own).to_pylist() for column in (truth.query, truth.reference))
    for query, reference in zip(*pairs, strict=True):
        known.setdefault(query, []).append(reference)
    readers = Readers(*(_reader(folder or "") for folder in folders))
    return _pictures(found_of(out, asked), known, asked, readers, tables)


def copydays_cases(
    out: str, arguments: dict[str, Any], tables: Sequence[Table], units: Sequence[str]
) -> list[ReportPicture]:
    """These queries (`BLOCK/FILE`) of a copydays run; none without images, or without its predictions."""
    data, asked, problems = arguments.get("data"), units[:MOST_ASKED], ProblemList()
    images = pictures("copydays", data, False, problems, "path") if data else None
    layout = CopydaysLayout.of(images.names, data or "", problems) if images is not None else None
    if images is None or layout is None:
        return []
    known: Truth = {}
    places = images.names.indices(pa.array(asked, pa.string()))
    for query in places[places >= 0].tolist():
        true = layout.originals[layout.true_original[layout.true_query == query]]
        known[images.names[query]] = [images.names[original] for original in true.tolist()]
    copies, others = _reader(data or ""), _reader(arguments.get("distractors") or "")
    originals = f"{ORIGINAL}/"
    readers = Readers(copies, lambda name: copies(name) if name.startswith(originals) else others(name))
    return _pictures(found_of(out, asked), known, asked, readers, tables)


def retrieval_cases(
    out: str, arguments: dict[str, Any], tables: Sequence[Table], units: Sequence[str]
) -> list[ReportPicture]:
    """These queries of an image-retrieval run; none without images, or without its predictions."""
    data, asked, problems = arguments.get("data"), units[:MOST_ASKED], ProblemList()
    uris = {role: arguments.get(role) or set_beside(data, role) or "" for role in WANTED}
    try:
        if not all(uri and not has_vectors(uri) for uri in uris.values()):
            return []
        queries, references = (pictures(role, uri, False, problems, NAMED_BY) for role, uri in uris.items())
        mistakes = ProblemList()
        truth = OwnTruth.read(truth_uri(arguments.get("ground_truth"), data), mistakes).relevance
        mistakes.check()
    except (ConfigError, DataError, Problems):
        return []
    if queries is None or references is None:
        return []
    pairs = labels_of(truth, queries, references, own_pairs(queries, references), problems).relevant
    known: Truth = {}
    places = queries.names.indices(pa.array(asked, pa.string()))
    for query in places[places >= 0].tolist():
        true = pairs.reference[pairs.query == query]
        known[queries.names[query]] = [references.names[reference] for reference in true.tolist()]
    return _pictures(found_of(out, asked), known, asked, Readers(_reader_of(queries), _reader_of(references)), tables)


def _reader_of(images: PictureSet) -> Reader:
    """Reads the image of a name in a set; None if it is not there or broken."""

    def read(name: str) -> NDArray[np.uint8] | None:
        index = int(images.names.indices(pa.array([name], pa.string()))[0])
        return None if index < 0 else pixels_of(images, index)

    return read


def found_of(out: str, asked: Sequence[str]) -> Found:
    """The candidates of these queries in the run's predictions; of a run that has no such file none."""
    uri, names, found = storage.join(out, PREDICTIONS), pa.array(asked, pa.string()), Found()
    if not storage.exists(uri):
        return found
    with blamed_on_file(f"{uri}: not as a run leaves it", "run again with --overwrite"):
        kinds, lines = pacsv.ConvertOptions(column_types=COLUMNS), pacsv.ParseOptions(newlines_in_values=True)
        for batch in pacsv.open_csv(storage.fetch(uri), convert_options=kinds, parse_options=lines):
            own = batch.filter(pc.is_in(batch["query_id"], value_set=names))
            for query, reference, score in zip(*(own[name].to_pylist() for name in COLUMNS), strict=True):
                found.setdefault(query, []).append((reference, score))
    return {query: sorted(own, key=lambda pair: -pair[1]) for query, own in found.items()}


def _pictures(
    found: Found, truth: Truth, asked: Sequence[str], readers: Readers, tables: Sequence[Table]
) -> list[ReportPicture]:
    main = tables[0]
    row = row_name(*(cell for column, cell in zip(main.columns, main.rows[0], strict=True) if column in KEYS))
    cases = [query_case(query, found[query], truth.get(query, []), readers) for query in asked if query in found]
    return [case.picture(row) for case in cases if any(panel.image is not None for panel in case.panels)]


def query_case(query: str, found: Sequence[tuple[str, float]], true: Sequence[str], readers: Readers) -> Case:
    """A query with its first result, and its true match where that is another."""
    first, score = found[0]
    is_right = first in true
    place = next((number for number, (name, _) in enumerate(found) if name in true), None)
    label = f"first, score {score:.4g}"
    panels = [Panel("query", query, readers.query(query)), Panel(label, first, readers.reference(first), is_right)]
    if is_right:
        return Case("right", query, f"The first result is right, with score {score:.4g}.", tuple(panels))
    words = f"The first result is wrong, with score {score:.4g}."
    if not true:
        return Case("false alarm", query, f"{words} The query has no true match.", tuple(panels))
    match = true[0] if place is None else found[place][0]
    where = f"not among the {len(found)} candidates"
    if place is not None:
        where = f"number {place + 1}, score {found[place][1]:.4g}"
    panels.append(Panel(f"true, {where}", match, readers.reference(match), True))
    return Case("missed", query, f"{words} The true match is {where}.", tuple(panels))


def _reader(root: str) -> Reader:
    """Reads the image of a name in a folder, with a suffix or without; None if it is not there or broken.

    In archives and lists images are found by name.

    A folder may hold a million images: it is listed only on disk, once, for images that are in folders below it.
    """
    if root and (is_archive(root) or is_list(root)):
        return _reader_by_name(root)
    below = functools.cache(lambda: _below(root))

    def read(name: str) -> NDArray[np.uint8] | None:
        names = [name] if name.lower().endswith(SUFFIXES) else [name + suffix for suffix in TRIED]
        try:
            check_names(root, names)
            data = next((found for one in names if (found := _content(storage.join(root, one)))), b"")
            if not data and name in below():
                data = _content(storage.join(root, below()[name]))
            return decode_image(data, name)
        except (DataError, Problems):
            return None

    return read


def _reader_by_name(root: str) -> Reader:
    try:
        images = ImageFiles.scan(root, recursive=True)
    except InputError:
        return lambda name: None
    places = {posixpath.splitext(posixpath.basename(key))[0]: place for place, key in enumerate(images.keys)}
    places |= {key: place for place, key in enumerate(images.keys)}

    def read(name: str) -> NDArray[np.uint8] | None:
        try:
            return images.decoded(places[name], images.read(places[name])) if name in places else None
        except DataError:
            return None

    return read


def _below(root: str) -> dict[str, str]:
    """The files in folders below one on disk, by their stems."""
    if storage.local_path(root) is None:
        return {}
    keys = [entry.name for entry in list_images(root, recursive=True) if "/" in entry.name]
    return {posixpath.splitext(posixpath.basename(key))[0]: key for key in keys}


def _content(uri: str) -> bytes:
    try:
        return storage.read(uri)
    except FileNotFoundError:
        return b""
