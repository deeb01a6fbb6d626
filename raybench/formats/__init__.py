"""Bytes to values and back, one module per published format. No paths, no Ray."""
