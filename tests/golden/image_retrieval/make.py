"""Makes the data of this case again, and its figures by trec_eval: python make.py [OUT], with numpy and pytrec_eval.

Junk can't be said in trec_eval's files, so it is taken out of the ranking before; so are queries without relevant ones.
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytrec_eval

QUERIES, REFERENCES, TRAINING, DIMENSION = 40, 300, 60, 16
CUTS = (1, 5, 10)
MEASURES = {"mAP": "map", "nDCG": "ndcg", "nDCG_at_10": "ndcg_cut_10"}
MEASURES |= {f"mAP_at_{cut}": f"map_cut_{cut}" for cut in CUTS}
MEASURES |= {f"precision_at_{cut}": f"P_{cut}" for cut in CUTS}
MEASURES |= {f"recall_at_{cut}": f"recall_{cut}" for cut in CUTS}


def make(folder: Path) -> None:
    random = np.random.default_rng(20)
    rows = {
        role: random.standard_normal((count, DIMENSION)).astype(np.float32)
        for role, count in (("queries", QUERIES), ("references", REFERENCES), ("training", TRAINING))
    }
    names = {role: [f"{role[0]}{number:03}" for number in range(len(own))] for role, own in rows.items()}
    lines = {"numbers": [], "words": []}
    for query in range(QUERIES - 4):
        for reference in random.choice(REFERENCES, int(random.integers(1, 25)), replace=False).tolist():
            near = random.random() < 0.5  # some are found
            if near:
                rows["references"][reference] = rows["queries"][query] + random.standard_normal(DIMENSION) * 0.7
            pair = names["queries"][query], names["references"][reference]
            lines["numbers"].append((*pair, str(random.choice([0, 1, 2, 3, 5]))))
            lines["words"].append((*pair, str(random.choice(["positive", "hard", "junk"]))))
    for role, own in rows.items():
        order = random.permutation(len(own))
        np.savez_compressed(folder / f"{role}.npz", names=np.array(names[role])[order], vectors=own[order])
    for name, own in lines.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([("query", "reference", "grade"), *own])


def figures(folder: Path, truth: str) -> dict:
    files = {role: np.load(folder / f"{role}.npz") for role in ("queries", "references")}
    queries, references = (
        dict(zip(file["names"].tolist(), file["vectors"].astype(np.float64), strict=True)) for file in files.values()
    )
    with (folder / f"{truth}.csv").open() as file:
        grades = list(csv.DictReader(file))
    found = {}
    for query, vector in queries.items():
        own = {row["reference"]: row["grade"] for row in grades if row["query"] == query}
        relevant = {name: int({"positive": 1, "hard": 1}.get(grade, grade)) for name, grade in own.items() if grade != "junk"}
        if not any(relevant.values()):
            continue
        distance = {name: ((vector - row) ** 2).sum() for name, row in references.items() if own.get(name) != "junk"}
        ranked = sorted(distance, key=distance.get)
        run = {query: {name: float(-place) for place, name in enumerate(ranked)}}
        evaluator = pytrec_eval.RelevanceEvaluator({query: relevant}, {"map", "map_cut", "P", "recall", "ndcg", "ndcg_cut"})
        extra = pytrec_eval.RelevanceEvaluator({query: relevant}, {"map_cut.1", "P.1", "recall.1"})
        found[query] = evaluator.evaluate(run)[query] | extra.evaluate(run)[query]
    means = {name: float(np.mean([one[measure] for one in found.values()])) for name, measure in MEASURES.items()}
    return {"queries": len(found), **means}


if __name__ == "__main__":
    here = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    (here / "data").mkdir(exist_ok=True)
    make(here / "data")
    expected = {name: figures(here / "data", name) for name in ("numbers", "words")}
    said = {"reference": "trec_eval by pytrec_eval-terrier 0.5.11", "tolerance": 1e-9, "expected": expected}
    (here / "expected.json").write_text(json.dumps(said, indent=1) + "\n")
