"""TSS: dense flow and cosegmentation of image pairs."""
