"""Decoding one JPEG that nobody vouches for."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

MAX_PIXELS = 2**22
"""Pixels of the largest picture that is decoded."""

_FORMATS = ("JPEG",)
"""Pillow's other decoders stay out of reach."""


class NotAPictureError(Exception):
    """The bytes are not a JPEG that can be decoded."""


@contextlib.contextmanager
def quiet_pillow() -> Iterator[None]:
    """Keep to itself what Pillow warns of while it reads pictures: odd metadata do not matter for pixels."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def check_jpeg(data: bytes) -> None:
    """Decode a JPEG to its end, at the smallest scale that the format offers.

    Raises:
        NotAPictureError: it cannot be decoded; the message says why.

    """
    _decode(data, size=None)


def decode_jpeg(data: bytes, size: int) -> NDArray[np.uint8]:
    """Decode a JPEG and scale it to a square, whatever its aspect ratio: (size, size, 3), red, green, blue.

    Raises:
        NotAPictureError: it cannot be decoded; the message says why.

    """
    return np.asarray(_decode(data, size), dtype=np.uint8)


def _decode(data: bytes, size: int | None) -> Image.Image:
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > MAX_PIXELS:
                raise NotAPictureError(f"{image.width} x {image.height} pixels are too many")
            # the format scales by 1/2, 1/4 or 1/8 while it decodes; twice the size is left for a good reduction
            image.draft("RGB", (1, 1) if size is None else (2 * size, 2 * size))
            image.load()
            colour = image.convert("RGB")
            return colour if size is None else colour.resize((size, size), Image.Resampling.BILINEAR)
    except UnidentifiedImageError as error:
        raise NotAPictureError("not a JPEG") from error
    except Image.DecompressionBombError as error:
        raise NotAPictureError("too many pixels") from error
    except (OSError, ValueError, SyntaxError, EOFError, ArithmeticError, struct.error) as error:
        raise NotAPictureError(str(error) or type(error).__name__) from error
