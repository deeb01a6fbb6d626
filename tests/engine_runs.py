"""Runs of the engine's own in tests: an observer that remembers, and what a run left in its folder."""

import json
from collections import Counter

from raybench.engine.progress import Observer
from raybench.engine.run import Run


class Heard(Observer):
    def __init__(self):
        self.retries, self.messages, self.most_in_flight, self.actors = Counter(), [], 0, 0

    def retried(self, stage, cause):
        self.retries[cause] += 1

    def said(self, message):
        self.messages.append(message)

    def in_flight(self, stage, shards, actors):
        self.most_in_flight, self.actors = max(self.most_in_flight, shards), max(self.actors, actors)


def new_run(folder, executor, heard=None):
    return Run(str(folder), str(folder / "stages"), executor, heard or Heard())


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted((folder / "stages").rglob("*.shard"))}


def receipts(folder):
    return [
        json.loads(line) for file in sorted((folder / "receipts").iterdir()) for line in file.read_text().splitlines()
    ]
