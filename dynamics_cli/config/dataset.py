"""The data set of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import NonNegative, Positive, PositiveInt, Section

Fraction = Annotated[float, Field(gt=0, lt=1)]
Coordinates = Annotated[list[float], Field(min_length=1)]
Labels = Annotated[list[float], Field(min_length=1)]
Digit = Annotated[int, Field(ge=0, le=9)]


class PointsDataset(Section):
    """Points written down in the config itself."""

    kind: Literal["points"]
    x: list[Coordinates] = Field(min_length=1)
    """Inputs, one list of coordinates per sample (n, d)."""
    y: Labels
    """Labels (n,): real numbers, ±1 for margin losses, class numbers 0..C-1 for cross entropy."""
    x_test: Annotated[list[Coordinates], Field(min_length=1)] | None = None
    """Held-out inputs, never trained on."""
    y_test: Labels | None = None
    """Labels of the held-out inputs."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""


class FileDataset(Section):
    """Points read from a `.npz` file (arrays `x`, `y`, optionally `x_test`, `y_test`) or a `.csv` file."""

    kind: Literal["file"]
    path: str
    """The file, relative to the config that names it. A CSV has a header or none; its last column is `y`."""
    test_path: str | None = None
    """A second file of the same form whose `x` and `y` are held out."""
    test_fraction: Fraction | None = None
    """Hold out this share of the samples, drawn from the data stream of the seed."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""


class OrthonormalDataset(Section):
    """`n` orthonormal inputs in `dim` dimensions (Boursier et al. 2022, Assumption 1)."""

    kind: Literal["orthonormal"]
    n: PositiveInt
    """Number of samples; at most `dim`."""
    dim: PositiveInt
    """Input dimension."""
    y: Labels | None = None
    """Labels (n,); by default standard Gaussian draws."""


class OrthogonallySeparableDataset(Section):
    """Gaussian points of the positive orthant (+1) and its opposite (-1) (Phuong and Lampert 2021, Section 5.1).

    So `<x_i, x_j> > 0` within a class and `<= 0` across.
    """

    kind: Literal["orthogonally_separable"]
    n: Annotated[int, Field(ge=2, lt=2**63)]
    """Number of samples, both classes together; each has at least one."""
    dim: PositiveInt
    """Input dimension."""
    filtered: bool = True
    """Keep only points with `<x, z> >= 0` for `z = (1, -1, 1, -1, ...)`."""


class MnistSection(Section):
    """What data sets made of MNIST's handwritten digits share: rows of 784 pixels, ordered by class."""

    source: Literal["auto", "subset", "full"] = "auto"
    """`subset`: the 1000 training and 200 held-out images of each digit that come with dyn; `full`: all 70 000, which
    `dyn data fetch mnist` downloads; `auto`: the subset when it holds all that is asked for, else the full set if it is
    there. The run records which one it was."""
    per_class: PositiveInt | None = None
    """Train on the first so many images of each digit; by default on all that the source has."""
    test: bool = True
    """Hold out images of MNIST's own test set."""
    test_per_class: PositiveInt | None = None
    """Hold out the first so many images of each digit; by default all that the source has."""
    scale: Literal["unit", "raw"] = "unit"
    """Pixels from 0 to 1, or from 0 to 255 as in the files; 0 is the background."""
    center: bool = False
    """Subtract the mean training image from all images, held-out ones included."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""


class MnistDataset(MnistSection):
    """All ten digits of MNIST; the label is the digit, a class for cross entropy."""

    kind: Literal["mnist"]


class MnistPairDataset(MnistSection):
    """Two digits of MNIST, labelled for a binary classifier."""

    kind: Literal["mnist_pair"]
    digits: list[Digit] = Field(min_length=2, max_length=2)
    """The two digits, e.g. [1, 0]; images of the first come first."""
    labels: Literal["signs", "classes"] = "signs"
    """`signs`: +1 for the first digit, -1 for the second; `classes`: 0 and 1, for cross entropy."""
    light_effect: bool = False
    """Darken the first digit to pixels 0..127 of 255 and brighten the second to 128..255, held-out images included
    (Tachet des Combes et al. 2018, Appendix E.2, there for cats and dogs)."""


class GaussiansDataset(Section):
    """Two Gaussians at opposite means, each on its side of the origin (Sarussi et al. 2021)."""

    kind: Literal["gaussians"]
    per_class: PositiveInt
    """Training points of each class."""
    mean: Coordinates
    """Mean of the positive class; the negative one has the opposite. Coordinates left out are 0."""
    dim: PositiveInt | None = None
    """Input dimension; by default the number of coordinates of `mean`."""
    deviation: Positive
    """Standard deviation in every direction. Points on the wrong side of `<mean, x> = 0` are drawn again."""
    outliers: Annotated[list[Coordinates], Field(min_length=1)] | None = None
    """Further positive training points."""
    test_per_class: PositiveInt | None = None
    """Held-out points of each class."""
    draw: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Draw from `numpy.random.default_rng(draw)`, the same data for every seed; by default from the seed's stream."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""


class LinearTeacherDataset(Section):
    """Standard Gaussian inputs labelled by the sign of a random linear teacher (Sarussi et al. 2021, Section 3)."""

    kind: Literal["linear_teacher"]
    n: PositiveInt
    """Number of training points."""
    dim: PositiveInt
    """Input dimension."""
    margin: NonNegative = 0.0
    """Least distance of every point from the teacher's hyperplane; closer ones are drawn again."""
    n_test: PositiveInt | None = None
    """Number of held-out points."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""


class MixtureDataset(Section):
    """Points of equal Gaussians on a ring or a square grid in the plane, all labelled 1, for a generator to imitate."""

    kind: Literal["mixture"]
    layout: Literal["ring", "grid"] = "ring"
    """`ring`: evenly around a circle, from angle 0 on; `grid`: a square lattice from -radius to radius."""
    modes: PositiveInt = 8
    """Number of Gaussians; a square number for the grid."""
    radius: Positive = 1.0
    """Radius of the ring, half the side of the grid."""
    deviation: Positive = 0.05
    """Standard deviation of each Gaussian in every direction."""
    n: PositiveInt = 10_000
    """Number of points; each belongs to a random mode."""


class DogsVsCatsDataset(Section):
    """Kaggle's Dogs vs. Cats, which `dyn data add dogs-vs-cats` adds; cats are labelled 1, dogs -1.

    Images are flat rows of numbers from 0 to 1: the red, the green, then the blue plane.
    """

    kind: Literal["dogs_vs_cats"]
    size: PositiveInt = 32
    """Images are scaled to `size` x `size` pixels."""
    test_fraction: Fraction = 0.25
    """Share of each class that is held out, drawn from the data stream of the seed."""
    light_effect: bool = True
    """Darken cats to pixels 0..127 of 255 and brighten dogs to 128..255, held-out images included (Tachet des Combes et
    al. 2018, Appendix E.2)."""
    images: str | None = None
    """SHA-256 of the images, which the run records; by default those that are there, and others are refused."""


Dataset = Annotated[
    PointsDataset
    | FileDataset
    | OrthonormalDataset
    | GaussiansDataset
    | LinearTeacherDataset
    | OrthogonallySeparableDataset
    | MnistPairDataset
    | MnistDataset
    | MixtureDataset
    | DogsVsCatsDataset,
    Field(discriminator="kind"),
]
