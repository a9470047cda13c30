"""The light effect: one class dark, the other bright (Tachet des Combes et al. 2018, Section 5 and Appendix E.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.errors import InputError


def light_effect(images: NDArray[np.uint8], bright: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Scale pixels 0..255 to 0..127, or to 128..255 where `bright`, so that brightness alone tells the classes apart.

    Each pixel value is halved and rounded down, and 128 is added to bright images: both halves of the scale are used
    fully, and what an image shows stays the same up to one part in 255. The paper states the two ranges only.

    Args:
        images: pixels (n, ...), one image a row.
        bright: (n,) whether each image becomes bright; in the paper dogs do, cats become dark.

    Returns:
        New images of the same shape.

    Raises InputError: the images are not bytes, or there is not one flag for each.
    """
    if images.dtype != np.uint8 or bright.shape != images.shape[:1]:
        raise InputError(
            f"the light effect needs bytes and one flag an image, not {images.dtype} and {bright.shape} "
            f"for {images.shape[:1]}"
        )
    offset = np.where(bright, np.uint8(128), np.uint8(0)).astype(np.uint8)  # (n,)
    halved: NDArray[np.uint8] = np.right_shift(images, np.uint8(1))
    halved += offset.reshape(-1, *[1] * (images.ndim - 1))
    return halved
