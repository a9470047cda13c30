"""A user's own data: `.npz` or `.csv` files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np

from dynamics_cli.config.base import Finding, Fraction, PositiveInt, Sections
from dynamics_cli.config.bases import Dataset
from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.files.tables import read_samples
from dynamics_cli.datasets.samples import Samples, make_samples
from dynamics_cli.errors import InputError


class File(Dataset, kind="file"):
    """Points read from a `.npz` file (arrays `x`, `y`, optionally `x_test`, `y_test`) or a `.csv` file."""

    example = "{kind: file, path: data.csv, test_fraction: 0.2}"
    file_keys: ClassVar = ("path", "test_path")
    path: str
    """The file, relative to the config that names it. A CSV has a header or none; its last columns are `y`."""
    test_path: str | None = None
    """A second file of the same form whose `x` and `y` are held out."""
    test_fraction: Fraction | None = None
    """Hold out this share of the samples, drawn from the data stream of the seed."""
    outputs: PositiveInt | None = None
    """Last columns of a CSV that are the label, a vector when there are several; by default one."""
    append_bias: bool = False
    """Append a constant 1 to every input, so that the last hidden weight is a bias."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield files of another kind, and two ways of holding samples out."""
        for key, file in self.files():
            if os.path.splitext(file)[1].lower() not in (".npz", ".csv"):  # noqa: PTH122
                yield ("dataset", key), f"must name a .npz or a .csv file, not {file!r}"
        if self.test_path is not None and self.test_fraction is not None:
            yield ("dataset", "test_fraction"), "cannot be given together with test_path"

    def load(self, streams: Streams) -> Samples:
        """Read the file and, where asked for, hold samples out.

        Raises:
            DataMissingError: the file is not there.
            InputError: it is not a data set; the message says where.
        """
        arrays = read_samples(Path(self.path), self.outputs or 1)
        x, y = arrays["x"], arrays["y"]
        x_test, y_test = arrays.get("x_test"), arrays.get("y_test")
        if self.test_path is not None:
            held_out = read_samples(Path(self.test_path), self.outputs or 1)
            x_test, y_test = held_out["x"], held_out["y"]
        elif self.test_fraction is not None:
            if x_test is not None:
                raise InputError(
                    f"{self.path} holds x_test and y_test: leave dataset.test_fraction out, or them out of the file"
                )
            # checked before the split, so that messages speak of the file and not of a part of it
            make_samples(x, y, origin=self.path)
            count = round(self.test_fraction * len(x))
            if not 0 < count < len(x):
                raise InputError(
                    f"{self.path}: test_fraction {self.test_fraction} of {len(x)} samples leaves a part empty"
                )
            order = streams.rng("data").permutation(len(x))
            test, train = np.sort(order[:count]), np.sort(order[count:])
            x, y, x_test, y_test = x[train], y[train], x[test], y[test]
        return make_samples(x, y, x_test=x_test, y_test=y_test, append_bias=self.append_bias, origin=self.path)
