"""A shard computed again by another cut than the one it was stored by: items in two parts, or smaller tiles.

What comes out is the same to the byte, which `verify` holds against the store. Stages of which nothing smaller can be
computed, such as one figure of everything, are computed as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raybench.engine.shards import Shard
from raybench.engine.stages import Loaded, Place, Stage, compute_shard, load_shard
from raybench.formats.shardfile import Arrays
from raybench.metrics.partials import Counts, Rows, TopK
from raybench.search.count_closer import CloserTile, CountCloser
from raybench.search.running import References
from raybench.search.set_search import SearchRuns
from raybench.search.set_standings import CountStandings, MeasurePairs


def computed_otherwise(stage: Stage, shard: Shard) -> Arrays:
    """The shard's arrays by another cut, where the stage has one."""
    if isinstance(stage, SearchRuns):
        return _by_smaller_tiles(stage, shard)
    if isinstance(stage, CountCloser):
        return _by_fewer_references(stage, shard)
    if isinstance(stage, MeasurePairs | CountStandings):
        return _by_references_apart(stage, shard)
    join = JOINS.get(stage.name)
    if join is None or len(shard) == 1:
        return _computed(stage, _loaded(stage, shard))
    middle = shard.start + -(-len(shard) // 3)
    cut = [replace(shard, stop=middle), replace(shard, start=middle)]
    return join([_computed(stage, _loaded(stage, part)) for part in cut])


def _loaded(stage: Stage, shard: Shard) -> Any:
    return load_shard(stage, shard, Place.here()).payload


def _computed(stage: Stage, payload: Any) -> Arrays:
    return compute_shard(stage, Loaded(payload, Place.here(), 0.0, 0.0)).arrays


def _one_behind_the_other(parts: Sequence[Arrays]) -> Arrays:
    parts = [part for part in parts if "vectors" not in part or len(part["vectors"])] or parts[:1]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _nearest_of_all(parts: Sequence[Arrays]) -> Arrays:
    return TopK.merged([TopK.from_arrays(part) for part in parts]).to_arrays()


# How the parts of a shard become the whole, by stage; of the others a part means something else than the whole.
JOINS: dict[str, Callable[[Sequence[Arrays]], Arrays]] = {
    "extract": _one_behind_the_other,
    "read-vectors": _one_behind_the_other,
    "read-set": _one_behind_the_other,
    "pairs": _one_behind_the_other,
    "match-images": _one_behind_the_other,
    "matches": _one_behind_the_other,
    "neighbours": _nearest_of_all,
}


def _halves(whole: range) -> list[range]:
    middle = whole.start + -(-len(whole) // 2)
    return [part for part in (range(whole.start, middle), range(middle, whole.stop)) if len(part)]


def _by_smaller_tiles(stage: SearchRuns, shard: Shard) -> Arrays:
    """A tile of a search as four: half of the queries by half of the references."""
    queries, references = stage.tiles.at(shard.index)
    parts: list[Arrays] = []
    asked = []
    for rows in _halves(queries):
        piece = stage.queries.read(rows.start, rows.stop)
        asked.append(piece[0])
        for among in _halves(references):
            found = References(*stage.references.pieces(among.start, among.stop))
            parts.append(_computed(stage, (piece, found)))
    query = np.concatenate(asked)
    arrays: Arrays = {"query": query}
    for distance in stage.distances:
        far, place = f"{distance}.distance", f"{distance}.reference"
        top = TopK.merged([TopK(part["query"], part[far], part[place]) for part in parts])
        row = np.searchsorted(top.query, query)
        arrays |= {far: top.distance[row], place: top.reference[row]}
    return arrays


def _by_fewer_references(stage: CountCloser, shard: Shard) -> Arrays:
    """A tile of counts as two: all queries by half of the references."""
    tile: CloserTile = _loaded(stage, shard)
    halves = _halves(range(tile.references.start, tile.references.stop))
    tiles = [replace(tile, references=slice(half.start, half.stop)) for half in halves]
    return Counts.merged([Counts.from_arrays(_computed(stage, one)) for one in tiles]).to_arrays()


def _by_references_apart(stage: MeasurePairs | CountStandings, shard: Shard) -> Arrays:
    """A tile of labelled pairs as two: all queries by half of the references that were read."""
    queries, (place, references) = _loaded(stage, shard)
    halves = [slice(half.start, half.stop) for half in _halves(range(len(place)))] or [slice(0, 0)]
    parts = [_computed(stage, (queries, (place[half], references[half]))) for half in halves]
    if isinstance(stage, MeasurePairs):
        return Rows.merged([Rows.from_arrays(part) for part in parts]).to_arrays()
    return Counts.merged([Counts.from_arrays(part) for part in parts]).to_arrays()
