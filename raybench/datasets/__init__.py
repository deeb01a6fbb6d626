"""Published data sets: what they are, as data, and whether a folder holds one. Nothing here downloads anything."""
