"""`raybench tasks`: task files for patch data of one's own."""

from __future__ import annotations

import click

from raybench.benchmarks.list_sizes import ListSizes
from raybench.cli.lines import say
from raybench.errors import ConfigError
from raybench.parallel import in_parallel

POSITIVE = click.IntRange(min=1)


@click.command()
@click.argument("protocol", type=click.Choice(["hbench", "hpatches"]))
@click.option("--data", metavar="URI", help="folder of SEQ/IM.png strips")
@click.option("--features", metavar="URI", help="or folder of descriptors, SEQ/IM.csv and other kinds")
@click.option("--out", required=True, metavar="URI", help="where the task files go; becomes --benchmarks or --tasks")
@click.option(
    "--positives", type=POSITIVE, default=ListSizes.positives, show_default=True, help="pairs per list of matches"
)
@click.option(
    "--negatives", type=POSITIVE, default=ListSizes.negatives, show_default=True, help="pairs per list of others"
)
@click.option("--queries", type=POSITIVE, default=ListSizes.queries, show_default=True, help="of a retrieval task")
@click.option(
    "--distractors", type=POSITIVE, default=ListSizes.distractors, show_default=True, help="hpatches: of a split"
)
@click.option(
    "--pool-sequences", type=POSITIVE, default=ListSizes.pool_sequences, show_default=True, help="hbench: of a pool"
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
def tasks(protocol: str, data: str | None, features: str | None, out: str, seed: int, **sizes: int) -> None:
    """Make task files for patch data of your own: .benchmark sets (hbench) or split CSVs (hpatches)."""
    from raybench import storage
    from raybench.benchmarks.task_files import hbench_tasks, hpatches_tasks, patch_counts
    from raybench.sources.strips import Strips
    from raybench.sources.vector_files import VectorFiles

    if (data is None) == (features is None):
        raise ConfigError("tasks: give one of --data, --features")
    source = Strips.scan(storage.checked(data)) if data else VectorFiles.scan(storage.checked(features or ""))
    patches = patch_counts(source)
    make = hbench_tasks if protocol == "hbench" else hpatches_tasks
    files = make(patches, ListSizes(**sizes), seed)
    folder = storage.checked(out)
    in_parallel(lambda name: storage.publish(storage.join(folder, name), files[name].encode()), files)
    say(f"{len(files)} task files over {len(patches)} sequences in {folder}")
