"""HPatches 2016: classification, matching, retrieval (`.benchmark` files)."""
