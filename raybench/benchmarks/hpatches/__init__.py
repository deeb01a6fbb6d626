"""HPatches 2017: verification, matching, retrieval (split CSVs)."""
