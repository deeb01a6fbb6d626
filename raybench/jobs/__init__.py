"""Evaluations under the names and flags of the published tools: `python -m raybench.jobs.disc_eval …`."""
