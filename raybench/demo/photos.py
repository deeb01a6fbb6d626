"""The photos that every demo set is made from: those that come inside scikit-image's wheel, without a download.

What is made of them is the business of the other modules here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from raybench.errors import ConfigError

# Our name: the function of skimage.data.
PHOTOS = {
    "astronaut": "astronaut",
    "brick": "brick",
    "camera": "camera",
    "cell": "cell",
    "chelsea": "chelsea",
    "clock": "clock",
    "coffee": "coffee",
    "coins": "coins",
    "grass": "grass",
    "gravel": "gravel",
    "hubble": "hubble_deep_field",
    "moon": "moon",
    "motorcycle": "stereo_motorcycle",
    "page": "page",
    "retina": "retina",
    "rocket": "rocket",
    "text": "text",
    "tissue": "immunohistochemistry",
}


def load_photos() -> dict[str, NDArray[np.uint8]]:
    """RGB photos (height, width, 3) by name, in alphabetical order; grey ones with three equal channels."""
    try:
        from skimage import data
    except ImportError as cause:
        raise ConfigError("the demo needs scikit-image: pip install 'raybench[demo]'") from cause
    return {name: _rgb(getattr(data, function)()) for name, function in PHOTOS.items()}


def _rgb(photo: NDArray[np.uint8] | tuple[NDArray[np.uint8], ...]) -> NDArray[np.uint8]:
    """The photo, or the left one of a stereo pair, with three channels."""
    if isinstance(photo, tuple):
        photo = photo[0]
    return photo if photo.ndim == 3 else np.repeat(photo[:, :, np.newaxis], 3, axis=2)
