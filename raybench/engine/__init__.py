"""Plans, stages, runs and the two executors. Knows no image, no descriptor and no metric by name."""
