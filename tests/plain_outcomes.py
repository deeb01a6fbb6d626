"""A benchmark's outcome in this process, from options as the command line would have them; what was said is kept."""

from raybench.benchmarks import BENCHMARKS
from raybench.benchmarks.job import Job
from raybench.engine.inline import InlineExecutor
from raybench.engine.progress import Observer
from raybench.engine.run import Run


def outcome_of(folder, name, on_bad_input="fail", **options):
    """The outcome of a job into a folder, and its run."""
    benchmark = BENCHMARKS[name].open()
    given = {key: str(value) if key not in ("split", "k") else value for key, value in options.items()}
    job = Job(name, benchmark.options(**given), str(folder), f"{folder}/stages", on_bad_input=on_bad_input)
    run = Run(job.out, job.store, InlineExecutor(Observer()), Observer())
    return benchmark.prepare(job).execute(run), run
