"""`python -m small_shards N …`: the `raybench` command with N pairs per shard, so that small data has many shards."""

import sys

from raybench.cli.commands import main
from raybench.search import pairs

if __name__ == "__main__":
    pairs.PAIRS_PER_SHARD = int(sys.argv[1])
    main(sys.argv[2:])
