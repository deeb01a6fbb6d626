"""raybench: distributed batch evaluation, on Ray, of image and patch descriptors, copy detection and dense flow."""

__version__ = "0.1.0"
