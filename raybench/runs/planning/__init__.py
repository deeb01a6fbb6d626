"""What a run will take: stages are sampled, the rest is arithmetic."""
