"""Codecs: FAISS index_factory strings of vector transforms before `Flat`. Checked, trained once, applied in shards.

FAISS reads the string and trains; what it learnt is stored as arrays, and `search.projection` applies them, so that a
descriptor's projection depends on nothing but itself. Training vectors are taken in name order, a seeded sample of them
where there are very many, by one thread: neither shards nor workers show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.engine.shards import Shard
from raybench.engine.stages import Mapped
from raybench.errors import DataError
from raybench.extract.vector_set import VectorSet, vector_arrays
from raybench.formats.shardfile import Arrays
from raybench.search.projection import Centre, Linear, Normalise, Projection, Remap, Step

FLAT_CODEC = "Flat"
TRANSFORMS = "PCA, PCAW, PCAR, PCAWR, L2norm, RR, OPQ, ITQ, Pad"
ANY_DIMENSION = 4_096  # to read a string by, where the dimension is not known yet
ROWS_PER_DIMENSION = 1_000  # of which PCA takes no more: FAISS would draw a sample of its own
TRAINING_BYTES = 2**30  # of which a process holds no more: 512,000 rows of 512-d, as many as FAISS itself would take
SCATTERED_AT_ONCE = 8_192  # training rows in float64
OPQ_CENTROIDS = 256
WORDS = {"PCAMatrix": "PCA", "OPQMatrix": "OPQ", "ITQTransform": "ITQ"}  # those that learn


class CodecFailed(DataError):
    """A codec can't be trained on, or gives values that are not finite for, these descriptors."""


class Transforms:
    """FAISS's own reading of a codec: what stands before `Flat`. Holds the index that owns the transforms."""

    def __init__(self, codec: str, dimension: int) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss: Any = faiss
        self._index = faiss.index_factory(dimension, codec)
        outer: Any = faiss.downcast_index(self._index)
        self._chain: list[Any] = []
        if isinstance(outer, faiss.IndexPreTransform):
            chain: Any = outer.chain
            self._chain = [faiss.downcast_VectorTransform(chain.at(n)) for n in range(chain.size())]
            outer = faiss.downcast_index(outer.index)
        self.is_flat = type(outer) in (faiss.IndexFlat, faiss.IndexFlatL2, faiss.IndexFlatIP)

    @property
    def count(self) -> int:
        return len(self._chain)

    @property
    def trains(self) -> bool:
        """Whether any of them learns from training vectors; a random rotation does not."""
        return any(type(one).__name__ in WORDS for one in self._chain)

    def problems(self, dimension_known: bool, training: int | None) -> Iterator[str]:
        """What these transforms can't do, in words, as far as dimension and number of training vectors are known."""
        for one in self._chain:
            kind, out = WORDS.get(type(one).__name__, ""), one.d_out
            if out < 1:
                yield f"{kind} to dimension {out}; give at least 1"
            elif dimension_known and kind in ("PCA", "ITQ") and out > one.d_in:
                yield f"{kind} to dimension {out} of vectors of dimension {one.d_in}; give at most {one.d_in}"
            elif dimension_known and kind == "OPQ" and (one.M < 1 or out % one.M):
                yield f"OPQ of dimension {out} in {one.M} parts; the dimension must be a multiple of the parts"
            white = kind == "PCA" and one.eigen_power != 0
            needed = OPQ_CENTROIDS if kind == "OPQ" else out + white if kind in ("PCA", "ITQ") else 0
            made_up = not dimension_known and out == ANY_DIMENSION  # a bare ITQ keeps the dimension, whatever it is
            if training is not None and training < needed and not (made_up and kind == "ITQ"):
                what = kind if kind == "OPQ" else f"{kind} to dimension {out}"
                yield f"{what} needs {needed:,} training vectors or more, there are {training:,}"

    def trained(self, rows: NDArray[np.float32]) -> Projection:
        """What the transforms learn from these rows, each from what those before it leave of them."""
        steps: list[Step] = []
        waiting: list[Step] = []  # steps that the rows have not gone through: only who learns from them needs it
        for one in self._chain:
            if not one.is_trained:
                rows = Projection(tuple(waiting)).apply(rows) if waiting else rows
                waiting = []
                if type(one) is self._faiss.PCAMatrix:
                    self._train_pca(one, rows)
                else:
                    one.train(np.ascontiguousarray(rows, np.float32))
            own = list(self._steps(one))
            steps, waiting = steps + own, waiting + own
        return Projection(tuple(steps))

    def _train_pca(self, one: Any, rows: NDArray[np.float32]) -> None:
        """Principal axes in float64: FAISS sums in float32, and whitening by a small axis then depends on the CPU.

        One golden µAP moved by 1e-4 between two machines. What is too small to be told from rounding counts as
        nothing, so that whitening by it is not finite on any machine.
        """
        mean = rows.mean(axis=0, dtype=np.float64)
        scatter = np.zeros((len(mean), len(mean)))
        for start in range(0, len(rows), SCATTERED_AT_ONCE):
            wide = rows[start : start + SCATTERED_AT_ONCE] - mean
            scatter += wide.T @ wide
        values, axes = np.linalg.eigh(scatter)
        values = np.where(values > values[-1] * len(values) * np.finfo(np.float64).eps, values, 0.0)
        for name, array in (("mean", mean), ("eigenvalues", values[::-1]), ("PCAMat", axes.T[::-1].ravel())):
            self._faiss.copy_array_to_vector(np.ascontiguousarray(array, np.float32), getattr(one, name))
        one.is_trained = True
        one.prepare_Ab()

    def _steps(self, one: Any) -> Iterator[Step]:
        faiss = self._faiss
        if isinstance(one, faiss.ITQTransform):
            yield Centre(faiss.vector_to_array(one.mean))
            yield Normalise()
            yield from self._steps(one.pca_then_itq)
        elif isinstance(one, faiss.LinearTransform):
            offset = faiss.vector_to_array(one.b) if one.have_bias else np.zeros(one.d_out, np.float32)
            yield Linear(faiss.vector_to_array(one.A).reshape(one.d_out, one.d_in), offset)
        elif isinstance(one, faiss.NormalizationTransform):
            yield Normalise()
        elif isinstance(one, faiss.CenteringTransform):
            yield Centre(faiss.vector_to_array(one.mean))
        elif isinstance(one, faiss.RemapDimensionsTransform):
            yield Remap(faiss.vector_to_array(one.map).astype(np.int64))
        else:
            raise TypeError(f"no projection for a {type(one).__name__}")


def codec_problems(codec: str, dimension: int | None = None, training: int | None = None) -> list[str]:
    """Everything wrong with a codec, a line each; more can be told when dimension and training vectors are known."""
    *before, last = codec.split(",")
    if last != FLAT_CODEC:
        return [f"codec {codec!r}: ends in {last!r}; it must end in Flat, since search is exact"]
    width = dimension or ANY_DIMENSION
    wrong = [word for word in before if not _is_transform(word, width)]
    if wrong:
        return [
            f"codec {codec!r}: {', '.join(map(repr, wrong))} can't stand before Flat; expected vector transforms of "
            f"FAISS's index_factory ({TRANSFORMS}), joined by commas without spaces"
        ]
    found = Transforms(codec, width).problems(dimension is not None, training)
    return [f"codec {codec!r}: {problem}" for problem in found]


def trains(codec: str) -> bool:
    """Whether a codec (without problems) needs training vectors."""
    return codec != FLAT_CODEC and Transforms(codec, ANY_DIMENSION).trains


def default_codecs(dimension: int, normalised: bool) -> tuple[str, ...]:
    """The published list for descriptors of this dimension, of length 1 or not."""
    white = f"PCAW{dimension}"
    if normalised:
        return FLAT_CODEC, f"{white},L2norm,Flat"
    return FLAT_CODEC, "L2norm,Flat", f"{white},L2norm,Flat", f"L2norm,{white},Flat"


@dataclass(frozen=True)
class CodecTraining:
    """A codec and what it is trained on; one that does not learn takes no more than the set's dimension."""

    codec: str
    training: VectorSet
    seed: int

    @property
    def name(self) -> str:
        return f"codec {self.codec} on {self.training.role}"


def _train_codec(asked: CodecTraining) -> Arrays:
    codec, learns = asked.codec, trains(asked.codec)
    rows = sampled_rows(asked.training, asked.seed) if learns else one_row(asked.training)
    problems = codec_problems(codec, rows.shape[1], len(rows) if learns else None)
    if problems:
        raise CodecFailed("; ".join(problems))
    try:
        projection = Transforms(codec, rows.shape[1]).trained(rows)
    except RuntimeError as error:  # FAISS's own
        raise CodecFailed(f"codec {codec!r}: can't be trained ({_last_line(error)})") from error
    if not projection.is_finite:
        raise CodecFailed(
            f"codec {codec!r}: not finite after training on {len(rows):,} vectors, which do not fill the "
            "dimensions asked for; give a smaller dimension or other training images"
        )
    return projection.to_arrays()


@dataclass(frozen=True)
class Project:
    """The stage that projects a set, one shard for each of its shards."""

    codec: str
    trained: Mapped
    vectors: VectorSet

    name = "project"
    version = 1
    on_device = False

    @property
    def digest(self) -> str:
        return digest_of(self.name, self.version, self.trained.digest, self.vectors.digest)

    def load(self, shard: Shard) -> tuple[Arrays, tuple[NDArray[np.int64], NDArray[np.float32]]]:
        return self.trained.read(0), self.vectors.read(shard.index)

    def compute(self, payload: tuple[Arrays, tuple[NDArray[np.int64], NDArray[np.float32]]]) -> Arrays:
        arrays, (index, rows) = payload
        projected = Projection.from_arrays(arrays).apply(rows) if len(rows) else rows
        bad = np.flatnonzero(~np.isfinite(projected).all(axis=1))
        if len(bad):
            raise CodecFailed(f"codec {self.codec!r}: gives values that are not finite for {self.vectors.role}")
        return vector_arrays(index, projected)

    def keys(self, shard: Shard) -> str:
        return f"{self.vectors.role} {shard.start:,}..{shard.stop - 1:,} by codec {self.codec}"


def project_sets(
    run: Run, codec: str, training: VectorSet | None, sets: Sequence[VectorSet], seed: int = 0
) -> tuple[VectorSet, ...]:
    """The sets projected by a codec that is trained on `training`; `Flat` gives the sets themselves.

    Raises CodecFailed, which leaves other codecs to go on.
    """
    if codec == FLAT_CODEC:
        return tuple(sets)
    if training is None and trains(codec):
        raise ValueError(f"codec {codec!r} needs training vectors")
    asked = CodecTraining(codec, sets[0] if training is None else training, seed)
    trained = run.each(_train_codec, [asked], version=2)
    return tuple(_projected(run, codec, trained, one) for one in sets)


def sampled_rows(vectors: VectorSet, seed: int) -> NDArray[np.float32]:
    """The set's rows in name order; of very many a seeded sample, which no cut of the set changes."""
    shards = range(len(vectors.mapped.shards))
    place = [vectors.mapped.read(shard)["index"] for shard in shards]
    dimension = one_row(vectors).shape[1]
    present = np.sort(np.concatenate([np.zeros(0, np.int64), *place]))
    most = min(ROWS_PER_DIMENSION * dimension, TRAINING_BYTES // (4 * dimension))
    if len(present) > most:
        present = np.sort(np.random.default_rng(seed).choice(present, most, replace=False))
    rows = np.empty((len(present), dimension), np.float32)
    for shard in shards if len(present) else ():
        index, own = vectors.read(shard)
        at = np.searchsorted(present, index)
        taken = np.flatnonzero(present[np.minimum(at, len(present) - 1)] == index)
        rows[at[taken]] = own[taken]
    return rows


def one_row(vectors: VectorSet) -> NDArray[np.float32]:
    """Any row of the set, for its dimension."""
    for shard in range(len(vectors.mapped.shards)):
        _, rows = vectors.read(shard)
        if len(rows):
            return rows[:1]
    return np.zeros((0, 1), np.float32)


def _projected(run: Run, codec: str, trained: Mapped, vectors: VectorSet) -> VectorSet:
    shards = vectors.mapped.shards
    count, size = (shards[-1].stop, len(shards[0])) if shards else (0, 1)
    mapped = run.map(Project(codec, trained, vectors), count, size)
    return VectorSet(vectors.role, mapped, vectors.count)


def _is_transform(word: str, dimension: int) -> bool:
    try:
        found = Transforms(f"{word},{FLAT_CODEC}", dimension)
    except RuntimeError:
        return False
    return found.is_flat and found.count == 1


def _last_line(error: RuntimeError) -> str:
    return str(error).splitlines()[-1].rpartition("failed: ")[2].strip()
