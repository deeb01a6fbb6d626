"""PR and ROC points of rankings: as arrays of a scored shard, and as the Parquet file that is written from it."""

from __future__ import annotations

import dataclasses
from typing import Any

from raybench.formats.parquet import write_parquet
from raybench.formats.shardfile import Arrays
from raybench.metrics.ranking import Curve, Flags, curve

COLUMNS = tuple(field.name for field in dataclasses.fields(Curve))


def curve_arrays(ranked: Flags) -> Arrays:
    """The points of a ranking, for the shard in which its figures stand."""
    points = curve(ranked)
    return {name: getattr(points, name) for name in COLUMNS}


def curve_file(item: Any, scores: Arrays) -> bytes:
    """The points of a scored item, as Parquet; its arrays are all that is needed."""
    return write_parquet({name: scores[name] for name in COLUMNS})
