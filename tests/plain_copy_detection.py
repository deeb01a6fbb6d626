"""DISC2021 figures of a TorchScript file in one process, by Pillow, torch and faiss alone: what tests compare with."""

import csv
from pathlib import Path

import faiss
import numpy as np
import torch
from PIL import Image

MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def describe(folder, model, size):
    paths = sorted(Path(folder).iterdir())
    rows = []
    for path in paths:
        image = Image.open(path).convert("RGB")
        short, long = sorted(image.size)
        sides = [size if side == short else int(size * long / short) for side in image.size]
        pixels = torch.tensor(np.array(image.resize(sides, Image.Resampling.BILINEAR))) / 255
        with torch.no_grad():
            rows.append(model(((pixels - MEAN) / DEVIATION).permute(2, 0, 1)[None])[0].numpy())
    return [path.stem for path in paths], np.stack(rows)


def described_sets(root, model_file, size):
    """Names and rows of queries, references and training images."""
    model = torch.jit.load(model_file)
    return [describe(Path(root) / name, model, size) for name in ("val_query", "val_ref", "training")]


def disc_figures(root, sets, codec, k=10):
    """uAP, accuracy-at-1 and recall-at-p90 of a codec without score normalisation."""
    (queries, query_rows), (references, reference_rows), (_, training_rows) = sets
    index = faiss.index_factory(query_rows.shape[1], codec)
    index.train(training_rows)
    index.add(reference_rows)
    distance, found = index.search(query_rows, k)
    with (Path(root) / "val_groundtruth_matches.csv").open() as file:
        truth = {(row["query_id"], row["reference_id"]) for row in csv.DictReader(file) if row["reference_id"]}
    pairs = [
        (queries[q], references[r], -d) for q in range(len(queries)) for r, d in zip(found[q], distance[q], strict=True)
    ]
    ranked = sorted(pairs, key=lambda pair: (-pair[2], (pair[0], pair[1]) in truth))
    hits = np.array([(q, r) in truth for q, r, _ in ranked])
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    first = {(queries[q], references[found[q, 0]]) for q in range(len(queries))}
    good = np.cumsum(hits)[precision >= 0.9]
    return precision[hits].sum() / len(truth), len(first & truth) / len(truth), max(good, default=0) / len(truth)
