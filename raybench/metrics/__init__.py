"""What is measured: rankings, mergeable partial results. Pure numpy; no paths, no Ray."""
