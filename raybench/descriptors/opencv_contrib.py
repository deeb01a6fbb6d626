"""Descriptors of opencv_contrib (`cv2.xfeatures2d`) on patches: VGG, BoostDesc, BEBLID, TEBLID, LATCH, DAISY, BRIEF.

Those learned from cropped patches (VGG, BoostDesc, BEBLID, TEBLID) get patches of the side that they were learned on,
and keypoints of that size with a scale factor of 1, which lays their window on the patch, pixel for pixel. Those with a
pattern of fixed size (LATCH, DAISY, BRIEF) get patches of that size, so that its points cover the patch as SIFT's grid
does. All are upright, and else as OpenCV makes them by default, but for DAISY's norm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybench.descriptors.libraries import contrib_features
from raybench.descriptors.patch_canvas import described_patches
from raybench.descriptors.pixels import resized_patches

# VGG (Simonyan et al., PAMI 2014) samples 64 x 64 px, and blurs its image by 6 px on either side before.
VGG_SIDE_PX, VGG_MARGIN_PX = 64, 8
# BinBoost (Trzcinski et al., CVPR 2013), BEBLID (Suarez et al., PRL 2020) and TEBLID (the same, RA-L 2021) sample
# 32 x 32 px. They count from a corner: the centre, between pixels 15 and 16, is their 16, where BEBLID's
# author puts the keypoint, too (github.com/iago-suarez/BEBLID, issue 4). Cubic interpolation reads 2 px more.
LEARNED_SIDE_PX, LEARNED_CENTRE_PX, LEARNED_MARGIN_PX = 32, 16.0, 4
# LATCH (Levi and Hassner, WACV 2016) and BRIEF (Calonder et al., ECCV 2010): points within 24 px of the keypoint, a
# patch of 48 px in either paper. Mini-patches and boxes around these points read up to 4 px more, LATCH's blur 1 px.
PATTERN_SIDE_PX, PATTERN_MARGIN_PX = 2 * 24 + 1, 5
# DAISY (Tola et al., PAMI 2010): points within 15 px of the keypoint. Its blurs read up to 36 px around these.
DAISY_SIDE_PX, DAISY_MARGIN_PX = 2 * 15 + 1, 38


class Contrib(ABC):
    """What these descriptors share; a class says its sides, dimension and how OpenCV makes it."""

    name: str
    distance = "hamming"
    version = 1
    uses_gpu = False
    side_px: int
    margin_px = PATTERN_MARGIN_PX
    centre_px: float | None = None
    dimension: int  # values of a row; of packed bits their bytes

    @abstractmethod
    def feature(self, made_by: Any) -> Any:
        """OpenCV's own object, of the module `cv2.xfeatures2d`."""

    def prepare(self, patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The patches at this descriptor's side."""
        return resized_patches(patches, self.side_px)

    def describe(self, prepared: NDArray[np.uint8]) -> NDArray[Any]:
        """Rows (n, dimension): packed bits, or float32 where the distance is L2."""
        feature = self.feature(contrib_features())
        rows = np.empty((len(prepared), self.dimension), np.uint8 if self.distance == "hamming" else np.float32)
        return described_patches(feature, prepared, self.margin_px, float(self.side_px), rows, self.centre_px)


class Vgg(Contrib):
    """VGG's learned pooling and projection: 120 values."""

    name = "vgg"
    distance = "L2"
    side_px, margin_px = VGG_SIDE_PX, VGG_MARGIN_PX
    dimension = 120

    def feature(self, made_by: Any) -> Any:
        return made_by.VGG.create(scale_factor=1.0)


class BoostDesc(Contrib):
    """BinBoost: 256 bits."""

    name = "boostdesc"
    side_px, margin_px, centre_px = LEARNED_SIDE_PX, LEARNED_MARGIN_PX, LEARNED_CENTRE_PX
    dimension = 32

    def feature(self, made_by: Any) -> Any:
        return made_by.BoostDesc.create(scale_factor=1.0)


class Beblid(Contrib):
    """BEBLID's 512 comparisons of box averages."""

    name = "beblid"
    side_px, margin_px, centre_px = LEARNED_SIDE_PX, LEARNED_MARGIN_PX, LEARNED_CENTRE_PX
    dimension = 64

    def feature(self, made_by: Any) -> Any:
        return made_by.BEBLID.create(1.0, made_by.BEBLID_SIZE_512_BITS)


class Beblid256(Beblid):
    """BEBLID learned for 256 bits."""

    name = "beblid-256"
    dimension = 32

    def feature(self, made_by: Any) -> Any:
        return made_by.BEBLID.create(1.0, made_by.BEBLID_SIZE_256_BITS)


class Teblid(Contrib):
    """TEBLID (BAD in its paper): BEBLID's comparisons learned by a triplet loss; 512 bits."""

    name = "teblid"
    side_px, margin_px, centre_px = LEARNED_SIDE_PX, LEARNED_MARGIN_PX, LEARNED_CENTRE_PX
    dimension = 64

    def feature(self, made_by: Any) -> Any:
        return made_by.TEBLID.create(1.0, made_by.TEBLID_SIZE_512_BITS)


class Teblid256(Teblid):
    """TEBLID learned for 256 bits."""

    name = "teblid-256"
    dimension = 32

    def feature(self, made_by: Any) -> Any:
        return made_by.TEBLID.create(1.0, made_by.TEBLID_SIZE_256_BITS)


class Latch(Contrib):
    """LATCH's 256 comparisons of three mini-patches each."""

    name = "latch"
    side_px = PATTERN_SIDE_PX
    dimension = 32

    def feature(self, made_by: Any) -> Any:
        return made_by.LATCH.create(rotationInvariance=False)


class Daisy(Contrib):
    """DAISY's 25 histograms of 8 directions, each of norm 1 as in the paper; OpenCV leaves them as they are."""

    name = "daisy"
    distance = "L2"
    side_px, margin_px = DAISY_SIDE_PX, DAISY_MARGIN_PX
    dimension = 200

    def feature(self, made_by: Any) -> Any:
        return made_by.DAISY.create(norm=made_by.DAISY_NRM_PARTIAL)


class Brief(Contrib):
    """BRIEF's 256 comparisons of box averages."""

    name = "brief"
    side_px = PATTERN_SIDE_PX
    dimension = 32

    def feature(self, made_by: Any) -> Any:
        return made_by.BriefDescriptorExtractor.create()
