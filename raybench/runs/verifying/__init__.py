"""Shards of a finished run computed again by other cuts, and what differs."""
