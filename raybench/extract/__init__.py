"""Source x descriptor -> vectors in published shards: of patches, of images, or read from disk."""
