"""A job always knows where its stages go: below its output folder, or nowhere."""

import numpy as np
import pytest
from conftest import GOLDEN
from number_stages import Squares

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.hbench.inputs import HBenchOptions
from raybench.benchmarks.job import Job
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run
from raybench.errors import ConfigError
from raybench.runs.evaluate import evaluate, evaluate_all
from raybench.runs.jobs import Settings, make_job
from raybench.runs.sessions import coming_session

HBENCH = GOLDEN / "hbench_classification/data"
OPTIONS = HBenchOptions(benchmarks=str(HBENCH / "benchmarks"), features=str(HBENCH / "descriptors/block4"))
QUIET = Settings(ray="off", progress="none")


def test_a_job_made_in_python_keeps_its_stages_below_its_own_folder(tmp_path):
    job = Job("hbench-classification", OPTIONS, out=str(tmp_path / "out"))
    with coming_session(job, QUIET) as session:
        evaluate(job, QUIET, session)
    assert job.store == str(tmp_path / "out/stages")
    assert list((tmp_path / "out/stages").iterdir())


def test_a_job_without_a_folder_is_refused_before_anything_is_written():
    job = Job("hbench-classification", OPTIONS)
    assert job.store == ""
    with pytest.raises(ConfigError, match="--out is missing"):
        evaluate_all([job], QUIET)
    with coming_session(job, QUIET) as session, pytest.raises(ConfigError, match="--out is missing"):
        evaluate(job, QUIET, session)


def test_a_run_of_no_folder_writes_nothing_anywhere():
    run = Run("", "", InlineExecutor(Observer(), 0, 1.0), Observer())
    with pytest.raises(ConfigError, match="no folder is given"):
        run.map(Squares(), 4, 2)


def test_settings_made_in_python_join_the_ray_of_the_environment(monkeypatch):
    monkeypatch.setattr("raybench.runs.jobs.is_joined", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert Settings().ray == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert Settings().ray == "auto"


def test_values_of_python_are_taken_as_the_options_have_them(tmp_path):
    given = {"features": tmp_path / "in", "out": tmp_path / "out", "codecs": ["Flat", "L2norm,Flat"], "k": np.int64(5)}
    given |= {"mean": [0.5, 0.4, 0.3]}
    job, _ = make_job(BENCHMARKS["disc2021"].open(), given)
    assert (job.options.features, job.out) == (str(tmp_path / "in"), str(tmp_path / "out"))
    assert (job.options.codecs, job.options.k, job.options.mean) == ("Flat;L2norm,Flat", 5, "0.5,0.4,0.3")
    job, _ = make_job(BENCHMARKS["hpatches-matching"].open(), {"split": "a", "normalise": (0.5, 0.25)})
    assert (job.options.split, job.options.normalise) == (("a",), "0.5,0.25")
