"""Data sets of images: MNIST's digits, a pair or all ten; CIFAR-10; cats and dogs.

The light effect makes one class dark, the other bright (Tachet des Combes et al. 2018, Section 5
and Appendix E.2).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dynamics_cli.datasets.files.cifar10 import load_cifar10
from dynamics_cli.datasets.files.mnist import Bytes, load_mnist
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Dataset, Floats, Samples, Streams, make_samples, stream
from dynamics_cli.kinds.base import Finding, Fraction, PositiveInt, Sections

Digit = Annotated[int, Field(ge=0, le=9)]


class OfClasses(Dataset):
    """The base of data sets of images in classes: rows of pixels, ordered by class."""

    random = False
    licence = "none is stated by the authors"
    classes: ClassVar[int] = 10
    """Number of classes."""

    per_class: PositiveInt | None = None
    """Number of training images of each class, from the start (default: all of the source)."""
    test: bool = True
    """Hold out images of the published test set."""
    test_per_class: PositiveInt | None = None
    """Number of held-out images of each class, from the start (default: all of the source)."""
    center: bool = False
    """Subtract the mean training image from all images, held-out images included."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    @abstractmethod
    def images(self, part: str) -> dict[int, Bytes]:
        """Return the images (n, ...) of each class of `train` or `test`.

        Raises:
            DataMissingError: the files are not there.
            InputError: a file is damaged.
        """

    def labelled(self, pixels: Bytes, classes: Floats) -> tuple[Bytes, Floats]:
        """Return images (n, ...) and class numbers (n,) as they are trained on."""
        return pixels, classes

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield settings of held-out images without any; a loss or network for fewer classes."""
        if self.test_per_class is not None and not self.test:
            yield ("dataset", "test_per_class"), "makes no sense with test: false"
        labels = getattr(sections.get("loss"), "labels", "real")
        outputs = getattr(sections.get("architecture"), "outputs", None) or 1
        if labels == "signs" and self.classes > 2:
            told = (
                f"{self.kind} has {self.classes} classes, the loss {sections['loss'].kind} tells"
                " two apart"
            )
            yield ("dataset", "kind"), f"{told}: take mnist_pair"
        if labels == "classes" and 1 < outputs < self.classes:
            yield (
                ("architecture", "outputs"),
                f"must be at least {self.classes}, the number of classes of {self.kind}",
            )

    def load(self, streams: Streams) -> Samples:
        """Return images as rows of numbers, ordered by class.

        Raises:
            DataMissingError: files are needed and not there.
            InputError: a class has fewer images than asked for, or a file is damaged.
        """
        x, y = self._rows(self._first("train", self.per_class, "per_class"))
        x_test = None
        y_test = None
        if self.test:
            x_test, y_test = self._rows(self._first("test", self.test_per_class, "test_per_class"))
        if self.center:
            mean = x.mean(axis=0)
            x -= mean
            if x_test is not None:
                x_test -= mean
        return make_samples(x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias)

    def _first(self, part: str, count: int | None, key: str) -> list[Bytes]:
        """Return the first `count` images (count, ...) of each class; all for None."""
        images = self.images(part)
        for label, of_class in images.items():
            if count is not None and len(of_class) < count:
                raise InputError(
                    f"dataset.{key} is {count}, there are {len(of_class)} such images of class"
                    f" {label}"
                )
        return [of_class[:count] for of_class in images.values()]

    def _rows(self, images: list[Bytes]) -> tuple[Floats, Floats]:
        """Return pixels (n, d) from 0 (black) to 1 and labels (n,) of images sorted by class."""
        classes = np.repeat(
            np.arange(len(images), dtype=np.float64), [len(of_class) for of_class in images]
        )  # (n,)
        pixels, y = self.labelled(np.concatenate(images), classes)
        return pixels.reshape(len(pixels), -1) / 255.0, y


class Digits(OfClasses):
    """The base of data sets of MNIST's handwritten digits: rows of 784 pixels."""

    licence = "CC BY-SA 3.0"
    source: Literal["subset", "full"] = "subset"
    """`subset`: 1000 training and 200 held-out images of each digit, which come with dyn.

    `full`: all 70 000, which `dyn data fetch mnist` downloads.
    """

    def chosen(self) -> list[int]:
        """Return the digits, in the order of the classes."""
        return list(range(10))

    def images(self, part: str) -> dict[int, Bytes]:
        """Return the images (n, 28, 28) of each digit; see `OfClasses.images`."""
        return load_mnist(self.source, part, self.chosen())


class Cifar10(OfClasses, kind="cifar10"):
    """CIFAR-10 (Krizhevsky 2009): 32 x 32 colour images of ten classes.

    `dyn data fetch cifar10` downloads them. Rows have 3 072 numbers: the red, the green, then the
    blue plane. The label is the class, from airplane (0) to truck (9). A subset of 5 000 images
    that all computers can train on is `per_class: 500, test_per_class: 100`.
    """

    example = "{kind: cifar10, per_class: 500, test_per_class: 100, center: true}"

    def images(self, part: str) -> dict[int, Bytes]:
        """Return the images (n, 3072) of each class; see `OfClasses.images`."""
        return load_cifar10(part)


class Mnist(Digits, kind="mnist"):
    """All ten digits of MNIST; the label is the digit, a class for cross entropy."""

    example = "{kind: mnist, per_class: 100}"


class MnistPair(Digits, kind="mnist_pair"):
    """Two digits of MNIST, labelled for a binary classifier."""

    example = "{kind: mnist_pair, digits: [1, 0], per_class: 100}"
    classes = 2
    digits: list[Digit] = Field(min_length=2, max_length=2)
    """The two digits, e.g. [1, 0]; images of the first come first."""
    labels: Literal["signs", "classes"] = "signs"
    """`signs`: +1 for the first digit, -1 for the second; `classes`: 0 and 1, for cross entropy."""
    light_effect: bool = False
    """Darken the first digit to pixels 0..127 of 255 and brighten the second to 128..255, held-out
    images included (Tachet des Combes et al. 2018, Appendix E.2, there for cats and dogs).
    """

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield one digit named twice, and labels that do not suit the loss."""
        yield from super().check(sections)
        if self.digits[0] == self.digits[1]:
            yield ("dataset", "digits"), f"must be two different digits, not {self.digits[0]} twice"
        loss = sections.get("loss")
        needed = getattr(loss, "labels", "real")
        if needed not in ("real", self.labels):
            yield (
                ("dataset", "labels"),
                f"must be {needed} for the loss {sections['loss'].kind}, not {self.labels}",
            )

    def chosen(self) -> list[int]:
        """Return the two digits."""
        return self.digits

    def labelled(self, pixels: Bytes, classes: Floats) -> tuple[Bytes, Floats]:
        """Return images, darkened and brightened if that is asked for, and signs or classes."""
        if self.light_effect:
            pixels = light_effect(pixels, classes == 1)
        if self.labels == "signs":
            return pixels, 1.0 - 2.0 * classes
        return pixels, classes


class DogsVsCats(Dataset, kind="dogs_vs_cats"):
    """Kaggle's Dogs vs. Cats, which `dyn data add dogs-vs-cats` adds; cats are labelled 1, dogs -1.

    Images are flat rows of numbers from 0 to 1: the red, the green, then the blue plane. Rows are
    float32, half the memory of float64: 25 000 images of 64 x 64 pixels take 1.2 GB.
    """

    titles: ClassVar[Mapping[str, str]] = {"size": "image size (pixels)"}
    size: PositiveInt = 32
    """Images are scaled to `size` x `size` pixels."""
    test_fraction: Fraction = 0.25
    """Share of each class that is held out, drawn from the data stream of the seed."""
    light_effect: bool = True
    """Darken cats to pixels 0..127 of 255 and brighten dogs to 128..255, held-out images included
    (Tachet des Combes et al. 2018, Appendix E.2).
    """
    images: str | None = None
    """SHA-256 of the images, which the run records (default: of those that are there)."""

    def resolve(self) -> Self:
        """Say which images are there; DataMissingError: none were added."""
        from dynamics_cli.datasets.files.dogs_vs_cats import find_images

        if self.images is not None:
            return self
        return self.model_copy(update={"images": find_images()[1]})

    def load(self, streams: Streams) -> Samples:
        """Return images as rows of 3 size^2 numbers from 0 to 1, for training and held out.

        Raises:
            DataMissingError: the images were not added, or are gone.
            InputError: other images are there than the config names, a part would be empty, or the
                images do not fit into memory.
        """
        from dynamics_cli.datasets.files.dogs_vs_cats import find_images, read_images

        path, key = find_images()
        if self.images not in (None, key):
            raise InputError(
                f"dataset.images names other images than those added, whose SHA-256 is {key}"
            )
        checksum, pixels, dogs = read_images(path, self.size)
        if checksum != key:
            raise InputError(
                f"{path}: has changed since it was added; `dyn data add dogs-vs-cats PATH` checks"
                " it again"
            )
        if self.light_effect:
            pixels = light_effect(pixels, dogs)
        x = np.moveaxis(pixels, -1, 1).reshape(len(pixels), -1).astype(np.float32)  # (n, 3 size^2)
        x /= np.float32(255)
        y = np.where(dogs, -1.0, 1.0)
        test = np.zeros(len(dogs), bool)
        rng = stream(streams.seed, "data")
        for members in (np.flatnonzero(~dogs), np.flatnonzero(dogs)):
            count = round(self.test_fraction * len(members))
            if not 0 < count < len(members):
                share = f"test_fraction {self.test_fraction:g} of {len(members)} images of a class"
                raise InputError(f"dataset: {share} leaves a part empty")
            test[rng.permutation(members)[:count]] = True
        return Samples(x[~test], y[~test], x[test], y[test])  # type: ignore[arg-type]


def light_effect(images: NDArray[np.uint8], bright: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Scale pixels 0..255 to 0..127, or to 128..255 where `bright`, which tells classes apart.

    Each pixel value is halved and rounded down, and 128 is added to bright images: both halves of
    the scale are used fully, and the image stays the same up to one part in 255. The paper states
    the two ranges only.

    `images` (n, ...) are bytes, `bright` (n,) says which become bright; in the paper dogs do, cats
    become dark.
    """
    halved: NDArray[np.uint8] = np.right_shift(images, np.uint8(1))
    halved[bright] += np.uint8(128)
    return halved
