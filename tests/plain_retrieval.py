"""Figures of image-retrieval in one process by numpy alone, each query's ranking sorted whole: what tests compare with.

Queries, references and training images are arrays in the order of their names. A grade is a word or a number.
"""

import math

import numpy as np

CUTS = (1, 5, 10)


def scores_of(queries, references, training=None, norm=None):
    """(queries, references) float64, higher is closer."""
    queries, references = queries.astype(np.float64), references.astype(np.float64)
    if norm is None:
        return -np.array([[((query - one) ** 2).sum() for one in references] for query in queries])
    weight, first, last = norm
    found = np.array([[(query * one).sum() for one in references] for query in queries])
    products = np.array([sorted((float((query * one).sum()) for one in training), reverse=True) for query in queries])
    return found - weight * products[:, first : last + 1].mean(axis=1, keepdims=True)


def ranked(scores, junk):
    """References of one query, best first, equal ones by index, without junk."""
    order = sorted(range(len(scores)), key=lambda reference: (-scores[reference], reference))
    return [reference for reference in order if reference not in junk]


def query_figures(scores, grades):
    """The figures of one query, from {reference: grade}; None without a relevant reference."""
    gain = {
        one: 1.0 if grade in ("positive", "hard") else 0.0 if grade == "junk" else float(grade)
        for one, grade in grades.items()
    }
    junk = {one for one, grade in grades.items() if grade == "junk"}
    gains = [gain.get(reference, 0.0) for reference in ranked(scores, junk)]
    relevant = [value > 0 for value in gains]
    positives = sum(relevant)
    if not positives:
        return None

    def ap(cut):
        found, total = 0, 0.0
        for rank, is_relevant in enumerate(relevant[:cut], 1):
            found += is_relevant
            total += is_relevant * found / rank
        return total / positives

    def dcg(values):
        return sum(value / math.log2(rank + 1) for rank, value in enumerate(values, 1))

    best = sorted(gains, reverse=True)
    return {
        "mAP": ap(None),
        **{f"mAP_at_{cut}": ap(cut) for cut in CUTS},
        **{f"precision_at_{cut}": sum(relevant[:cut]) / cut for cut in CUTS},
        **{f"recall_at_{cut}": sum(relevant[:cut]) / positives for cut in CUTS},
        "nDCG": dcg(gains) / dcg(best),
        "nDCG_at_10": dcg(gains[:10]) / dcg(best[:10]),
        "positives": positives,
        "junk": len(junk),
    }


def micro_ap(scores, grades, k, over_all=False):
    """Step AP of the k best of each query, or the best k times the queries, in one pool; wrong ones first at ties."""
    relevant = [{one for one, grade in own.items() if grade != "junk" and grade not in (0, "0")} for own in grades]
    pool = []
    for query, own in enumerate(grades):
        junk = {one for one, grade in own.items() if grade == "junk"}
        listed = ranked(scores[query], junk)
        pool += [(scores[query][one], one, query, one in relevant[query]) for one in listed[: None if over_all else k]]
    if over_all:
        pool = sorted(pool, key=lambda pair: (-pair[0], pair[1], pair[2]))[: k * len(grades)]
    pool.sort(key=lambda pair: (-pair[0], pair[3]))
    found, total = 0, 0.0
    for rank, (*_, is_relevant) in enumerate(pool, 1):
        found += is_relevant
        total += is_relevant * found / rank
    return total / sum(map(len, relevant))


def mean_figures(scores, grades):
    """Means over the queries that have a relevant reference, and how many these are."""
    each = [found for own, row in zip(grades, scores, strict=True) if (found := query_figures(row, own))]
    return {name: sum(one[name] for one in each) / len(each) for name in each[0]} | {"queries": len(each)}


def tied_orders(scores, grades, best):
    """Scores with what is equal put apart: relevant ones first, or last."""
    raised = scores.copy()
    for query, own in enumerate(grades):
        for reference, grade in own.items():
            if grade != "junk" and grade not in (0, "0"):
                raised[query, reference] += 1e-6 if best else -1e-6
    return raised
