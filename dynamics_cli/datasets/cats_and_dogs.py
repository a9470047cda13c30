"""The data set of cats and dogs, with the light effect or untouched (Tachet des Combes et al. 2018, Appendix E.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.base import Fraction, PositiveInt
from dynamics_cli.config.bases import Dataset, Floats
from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.light import light_effect
from dynamics_cli.datasets.samples import Samples, check_size
from dynamics_cli.errors import InputError

if TYPE_CHECKING:
    from dynamics_cli.datasets.files.dogs_vs_cats import ImageSet


class DogsVsCats(Dataset, kind="dogs_vs_cats"):
    """Kaggle's Dogs vs. Cats, which `dyn data add dogs-vs-cats` adds; cats are labelled 1, dogs -1.

    Images are flat rows of numbers from 0 to 1: the red, the green, then the blue plane.
    """

    size: PositiveInt = 32
    """Images are scaled to `size` x `size` pixels."""
    test_fraction: Fraction = 0.25
    """Share of each class that is held out, drawn from the data stream of the seed."""
    light_effect: bool = True
    """Darken cats to pixels 0..127 of 255 and brighten dogs to 128..255, held-out images included (Tachet des Combes et
    al. 2018, Appendix E.2)."""
    images: str | None = None
    """SHA-256 of the images, which the run records; by default those that are there, and others are refused."""

    def resolve(self) -> Self:
        """Say which images are there.

        Raises DataMissingError: none were added.
        """
        from dynamics_cli.datasets.files.dogs_vs_cats import find_place

        return self if self.images is not None else self.model_copy(update={"images": find_place().key})

    def load(self, streams: Streams) -> Samples:
        """Return images as rows of 3 size^2 numbers from 0 to 1, training and held-out ones.

        Rows are float32, half the memory of float64: 25 000 images of 64 x 64 pixels take 1.2 GB.

        Raises:
            DataMissingError: the images were not added, or are gone.
            InputError: other images are there than the config names, a part would be empty, or the images do not fit
                into memory.
        """
        from dynamics_cli.datasets.files.dogs_vs_cats import find_place, load_images, split_per_class

        check_size(len(find_place().names), self.size**2)  # three colours in float32, and the bytes
        found = load_images(self.size)
        if self.images not in (None, found.key):
            raise InputError(f"dataset.images names other images than those added, whose SHA-256 is {found.key}")
        train, test = split_per_class(found.labels, self.test_fraction, streams.seed)
        y = 1.0 - 2.0 * found.labels.astype(np.float64)  # (n,)
        return Samples(self._rows(found, train), y[train], self._rows(found, test), y[test])

    def _rows(self, found: ImageSet, chosen: NDArray[np.int64]) -> Floats:
        """Return the chosen images, flat, colour by colour (n, 3 size^2)."""
        pixels = found.images[chosen]  # (n, size, size, 3)
        if self.light_effect:
            pixels = light_effect(pixels, found.labels[chosen] == 1)
        rows = np.moveaxis(pixels, -1, 1).reshape(len(pixels), -1).astype(np.float32)
        rows /= np.float32(255)
        return rows  # type: ignore[return-value]
