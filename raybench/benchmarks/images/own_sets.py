"""Where a search of one's own images finds them: images or vectors of each role, in whatever they lie.

A set is a folder, an archive or a list of images, or a file of vectors; which of these, its name and columns say. All
are images, or all are vectors. What is true of them `own_labels` says.
"""

from __future__ import annotations

from collections.abc import Mapping

from raybench import storage
from raybench.benchmarks.images import sets as image_sets
from raybench.benchmarks.images.disc_sets import find_stored
from raybench.benchmarks.images.image_options import IDLE, OF_NETWORKS
from raybench.benchmarks.images.retrieval_options import RetrievalOptions
from raybench.benchmarks.images.sets import ImageSet, PictureSet
from raybench.benchmarks.job import Job
from raybench.benchmarks.options import asked
from raybench.errors import DataError, ProblemList
from raybench.sources.uri_lists import is_image_list
from raybench.sources.vector_files import SET_SUFFIXES, SSCD_SUFFIX

ROLES = ("queries", "references", "training")
WANTED = ROLES[:2]
# What stands for a set below --data, by its role and one of these.
KINDS = ("", ".tar", ".zip", ".csv", *(suffix for suffix in SET_SUFFIXES if suffix != SSCD_SUFFIX))
UNNAMED = ".npy"  # vectors without names
NAMED_BY = "shortest"  # images in folders by class often share their stems


def find_sets(job: Job[RetrievalOptions], problems: ProblemList) -> Mapping[str, ImageSet | None]:
    """The images or vectors of each role; a missing training set is none, anything else that is wrong is noted."""
    options, before = job.options, len(problems.lines)
    if options.descriptor is None and options.descriptor_args:
        problems.add(f"{job.benchmark}: --descriptor-args goes with --descriptor")
    if options.features:
        if options.descriptor:
            problems.add(f"{job.benchmark}: give --descriptor or --features, not both")
        _refuse_idle(job, IDLE["features"], "--features", problems)
        return find_stored(options.features, job.limits, problems, NAMED_BY)
    uris = {role: getattr(options, role) or set_beside(options.data, role) for role in ROLES}
    for role in WANTED:
        if not uris[role]:
            where = f"{options.data} has none" if options.data else f"give --{role}, or --features with vectors"
            problems.add(f"{job.benchmark}: no {role}; {where}")
    known: dict[str, str] = {role: uri for role, uri in uris.items() if uri}
    are_vectors: dict[str, bool] = {}
    for role, uri in known.items():
        with problems.noting():
            are_vectors[role] = has_vectors(uri)
    if len(problems.lines) == before:
        _note_disagreement(job, known, are_vectors, problems)
    if len(problems.lines) > before:
        return dict.fromkeys(ROLES)
    if not all(are_vectors.values()):
        return dict.fromkeys(ROLES) | _pictures(job, known, problems)
    stored = {
        role: image_sets.vectors_on_disk(
            role, [uri], problems, NAMED_BY, part=role if uri.endswith(SSCD_SUFFIX) else "", limits=job.limits
        )
        for role, uri in known.items()
    }
    image_sets.note_other_dimensions(stored.values(), problems)
    return dict.fromkeys(ROLES) | stored


def _pictures(
    job: Job[RetrievalOptions], uris: Mapping[str, str], problems: ProblemList
) -> dict[str, PictureSet | None]:
    """The pictures of each role.

    Sets in two places whose names, sizes and stamps agree, as from archives with one time for all, count by content.
    """

    def found(role: str, by_content: bool) -> PictureSet | None:
        return image_sets.pictures(role, uris[role], by_content, problems, NAMED_BY, job.limits, job.store)

    sets = {role: found(role, job.verify_inputs) for role in uris}
    places: dict[str, set[str]] = {}  # by digest
    for role, images in sets.items():
        if images is not None:
            places.setdefault(images.source.digest, set()).add(storage.one_spelling(uris[role]))
    alike = [role for role, images in sets.items() if images and len(places[images.source.digest]) > 1]
    return sets | {role: found(role, by_content=True) for role in alike}


def set_beside(data: str | None, role: str) -> str | None:
    """What stands for a role below a folder."""
    known = [storage.join(data, role + kind) for kind in KINDS] if data else []
    return next((uri for uri in known if storage.exists(uri)), None)


def has_vectors(uri: str) -> bool:
    """Whether a set is a file of vectors, by its name; of Parquet by its columns; raises DataError."""
    if uri.lower().endswith(UNNAMED) and not storage.is_folder(uri):
        raise DataError(f"{uri}: has no names; give .npz, .h5 or .parquet with vectors and image_names")
    is_file = uri.lower().endswith(SET_SUFFIXES) and not storage.is_folder(uri)
    return is_file and not is_image_list(uri)


def _note_disagreement(
    job: Job[RetrievalOptions], uris: Mapping[str, str], are_vectors: Mapping[str, bool], problems: ProblemList
) -> None:
    """Note sets of two kinds, and options that do not go with the one."""
    vectors, images = (
        [f"--{role} {uris[role]}" for role, is_so in are_vectors.items() if is_so is wanted] for wanted in (True, False)
    )
    if vectors and images:
        problems.add(
            f"{job.benchmark}: a mixture, with vectors in {', '.join(vectors)} and images in {', '.join(images)}; "
            "give images for all, with --descriptor, or vectors for all"
        )
    elif images and not job.options.descriptor:
        problems.add(f"{job.benchmark}: images in {', '.join(images)} need a --descriptor; or give files of vectors")
    elif vectors:
        idle = ("descriptor", *OF_NETWORKS, "exif_rotate")
        _refuse_idle(job, idle, "vectors", problems)


def _refuse_idle(job: Job[RetrievalOptions], keys: tuple[str, ...], way: str, problems: ProblemList) -> None:
    idle = asked(job.options, keys)
    if idle:
        problems.add(f"{job.benchmark}: {', '.join(idle)}: would do nothing with {way}; leave it out")
