"""The data set of a run: one class per kind."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dynamics_cli.config.base import PositiveInt, Section

Fraction = Annotated[float, Field(gt=0, lt=1)]
Coordinates = Annotated[list[float], Field(min_length=1)]
Labels = Annotated[list[float], Field(min_length=1)]


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


Dataset = Annotated[PointsDataset | FileDataset | OrthonormalDataset, Field(discriminator="kind")]
