"""Listed pairs of one's own patches, and those of Brown's PhotoTour sets."""
