"""Points of the config, or read from `.npz` and `.csv` files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dynamics_cli.datasets.files.tables import read_samples
from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Dataset, Samples, Streams, make_samples
from dynamics_cli.kinds.base import Finding, Fraction, PositiveInt, Sections
from dynamics_cli.text import plural

Coordinates = Annotated[list[float], Field(min_length=1)]
Labels = Annotated[list[float], Field(min_length=1)]


class GivenPoints(Dataset, kind="points"):
    """Points written down in the config itself."""

    example = "{kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}"
    random = False

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

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield rows of unequal lengths, and inputs and labels that do not match."""
        yield from check_rows("x", self.x, len(self.x[0]), "the first")
        yield from _same_length("y", self.y, "x", self.x)
        if self.x_test is not None:
            yield from check_rows("x_test", self.x_test, len(self.x[0]), "those of x")
        if self.x_test is not None and self.y_test is not None:
            yield from _same_length("y_test", self.y_test, "x_test", self.x_test)
        elif self.x_test is not None:
            yield ("dataset", "y_test"), "is missing; x_test needs labels"
        elif self.y_test is not None:
            yield ("dataset", "x_test"), "is missing; y_test needs inputs"

    def load(self, streams: Streams) -> Samples:
        """Return the points of the config."""
        return make_samples(
            np.array([*self.x, *(self.x_test or ())], dtype=np.float64),
            np.array([*self.y, *(self.y_test or ())], dtype=np.float64),
            trained=len(self.x),
            append_bias=self.append_bias,
        )


def check_rows(
    key: str, rows: Sequence[Sequence[float]], columns: int, like: str
) -> Iterator[Finding]:
    """Yield the first row under `key` whose number of coordinates differs from `like`."""
    for place, row in enumerate(rows):
        if len(row) != columns:
            yield (
                ("dataset", key, place),
                f"has {plural(len(row), 'coordinate')}, {like} {columns}; all need the same",
            )
            return


def _same_length(
    key: str, labels: Sequence[float], inputs_key: str, inputs: Sequence[object]
) -> Iterator[Finding]:
    if len(labels) != len(inputs):
        samples = plural(len(inputs), "sample")
        values = plural(len(labels), "label")
        yield (
            ("dataset", key),
            f"has {values}, but {inputs_key} has {samples}; there must be one label per sample",
        )


class File(Dataset, kind="file"):
    """Points read from a `.npz` file (`x`, `y`, optionally `x_test`, `y_test`) or a `.csv` file."""

    example = """\
# python -c "import numpy; numpy.savetxt('data.csv', numpy.random.randn(20, 3), delimiter=',')"
dataset: {kind: file, path: data.csv, test_fraction: 0.2}
"""
    file_keys: ClassVar = ("path",)
    path: str
    """The file, relative to the config that names it. Of a CSV the last columns are `y`."""
    test_fraction: Fraction | None = None
    """Hold out this share of the samples, drawn from the data stream of the seed."""
    outputs: PositiveInt | None = None
    """Last columns of a CSV that are the label, a vector when there are several; by default one."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield a file of another kind."""
        if os.path.splitext(self.path)[1].lower() not in (".npz", ".csv"):  # noqa: PTH122
            yield ("dataset", "path"), f"must name a .npz or a .csv file, not {self.path!r}"

    def load(self, streams: Streams) -> Samples:
        """Read the file and, where asked for, hold samples out.

        Raises:
            DataMissingError: the file is not there.
            InputError: it is not a data set; the message says where.
        """
        arrays = read_samples(Path(self.path), self.outputs or 1)
        x = arrays["x"]
        y = arrays["y"]
        x_test = arrays.get("x_test")
        y_test = arrays.get("y_test")
        if self.test_fraction is not None:
            if x_test is not None:
                raise InputError(
                    f"{self.path} holds x_test and y_test: leave dataset.test_fraction out, or them"
                    " out of the file"
                )
            # checked before the split, so that messages speak of the file and not of a part of it
            make_samples(x, y, origin=self.path)
            count = round(self.test_fraction * len(x))
            if not 0 < count < len(x):
                raise InputError(
                    f"{self.path}: test_fraction {self.test_fraction} of {len(x)} samples leaves a"
                    " part empty"
                )
            order = streams.rng("data").permutation(len(x))
            test = np.sort(order[:count])
            train = np.sort(order[count:])
            x, y, x_test, y_test = x[train], y[train], x[test], y[test]
        return make_samples(
            x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias, origin=self.path
        )
