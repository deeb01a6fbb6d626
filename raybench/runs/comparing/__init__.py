"""Finished runs against each other: which may be compared, their draws, the words."""
