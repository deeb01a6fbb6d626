"""Toy: the share of vowels in words. It has what every benchmark has (see tests/benchmarks/test_new_benchmark.py):
options, inputs that are found and checked, a walk over stages, a figure, files.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from raybench import storage
from raybench.benchmarks.job import Benchmark, Job, Outcome
from raybench.benchmarks.options import option
from raybench.digests import digest_of
from raybench.engine.run import Run
from raybench.errors import ConfigError, DataError, ProblemList
from raybench.extract.trials import NoTrial
from raybench.formats.shardfile import Arrays
from raybench.table import Figure, Table, columns_of, fractions_of, note_of


@dataclass(frozen=True)
class ToyOptions:
    words: str | None = option(None, "folder of word lists NAME.txt", "input", is_uri=True)
    vowels: str = option("aeiou", "letters that count", "protocol")


@dataclass(frozen=True)
class WordList:
    name: str
    words: tuple[str, ...]


def prepare(job: Job[ToyOptions]) -> ToyPlan:
    if not job.options.words:
        raise ConfigError(f"{job.benchmark}: --words is missing, the folder of word lists")
    problems, lists = ProblemList(), []
    for entry in storage.list_files(job.options.words):
        with problems.noting():
            uri = storage.join(job.options.words, entry.name)
            lists.append(WordList(entry.name.removesuffix(".txt"), read_words(storage.read(uri), uri)))
    problems.check()
    return ToyPlan(tuple(lists), job.options.vowels, {"words": digest_of(lists)})


def read_words(data: bytes, name: str) -> tuple[str, ...]:
    if not data.split():
        raise DataError(f"{name}: empty; expected words")
    return tuple(data.decode().split())


@dataclass(frozen=True)
class ToyPlan:
    lists: tuple[WordList, ...]
    vowels: str
    inputs: dict[str, str]

    @property
    def summary(self) -> str:
        return f"{len(self.lists)} lists"

    @property
    def trial(self) -> NoTrial:
        return NoTrial()

    def execute(self, run: Run) -> Outcome:
        scores = run.each(score_list, self.lists, self.vowels, version=1)
        run.write("results/{name}.txt", result_file, self.lists, scores)
        found = zip(self.lists, run.read_each(scores), strict=True)
        rows = [(one.name, len(one.words), arrays["share"].mean()) for one, arrays in found]
        columns = ("list", "words", *columns_of(FIGURES))
        return Outcome(Table("toy", columns, tuple(rows), fractions_of(FIGURES), (note_of(FIGURES),)))


FIGURES = (Figure("vowel_share", "mean share of vowels per word"),)


def score_list(words: WordList, vowels: str) -> Arrays:
    return {"share": np.array([sum(letter in vowels for letter in word) / len(word) for word in words.words])}


def result_file(words: WordList, scores: Arrays) -> bytes:
    return "".join(f"{word},{share}\n" for word, share in zip(words.words, scores["share"], strict=True)).encode()


BENCHMARK = Benchmark(
    name="toy",
    options=ToyOptions,
    prepare=prepare,
    keys=("list",),
    figures=columns_of(FIGURES),
    fractions=fractions_of(FIGURES),
)
