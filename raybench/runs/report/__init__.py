"""One self-contained page from tables and manifests."""
