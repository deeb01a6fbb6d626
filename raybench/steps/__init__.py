"""The steps that benchmarks are wired from: each is a Stage over handles of earlier ones."""
