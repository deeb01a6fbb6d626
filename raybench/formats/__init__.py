"""Bytes to values and back, one module a published format. No paths, no Ray."""
