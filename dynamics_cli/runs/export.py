"""Runs as objects of xarray and pandas."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dynamics_cli.config.dump import flat, to_plain
from dynamics_cli.errors import UsageError, needing
from dynamics_cli.runs.columns import column_names

if TYPE_CHECKING:
    import xarray
    from pandas import DataFrame


class Exported:
    """The base of a run: its arrays in the forms of other tools."""

    def to_xarray(self: Any) -> xarray.Dataset:
        """Return losses, parameters and measures with named axes, and the settings of the config as attributes.

        Axes are `iteration` of recorded states, `loss_iteration`, `replica`; `input`, `neuron` (of deep networks
        `layer_1`, `layer_2`, ...) and `output` of weights; `<measure>_column` of a measure of several numbers. Weights
        of other networks and larger measures have axes `<name>_0`, `<name>_1`, ....

        Raises UsageError: xarray is not installed.
        """
        with needing("Run.to_xarray", "xarray"):
            import xarray
        replica = ["replica"] * ("replicas" in self.info)
        coordinates: dict[str, Any] = {"iteration": self.snapshot_iterations, "loss_iteration": self.loss_iterations}
        if self.times is not None:
            coordinates["time"] = ("loss_iteration", self.times)
        variables: dict[str, Any] = {"loss": (["loss_iteration", *replica], self.losses)}
        for name, values in self.parameters.items():
            axes = _axes(getattr(self.config.architecture, "matrices", ()), name, values.ndim - 1 - len(replica))
            variables[name] = (["iteration", *replica, *axes], values)
        for name, values in self.measures.items():
            count = values.ndim - 1 - len(replica)
            axes = [f"{name}_column"] if count == 1 else [f"{name}_{k}" for k in range(count)]
            if count == 1:
                coordinates[axes[0]] = column_names(self.config, name, values.shape[-1])
            variables[name] = (["iteration", *replica, *axes], values)
        plain = to_plain(self.config)
        settings = {key: value for key, value in flat(plain).items() if isinstance(value, str | int | float)}
        about = {"hash": self.hash or "", "status": self.status, "config": json.dumps(plain)}
        return xarray.Dataset(variables, coordinates, {**settings, **about})

    def to_pandas(self: Any) -> DataFrame:
        """Return a row for every iteration at which a loss or measures were recorded, NaN where another was not.

        Columns are `iteration`, `loss`, and the measures by `name`, or `name.column` for those of several numbers.

        Raises UsageError: pandas is not installed, or the run is one of replicas.
        """
        with needing("Run.to_pandas", "pandas"):
            import pandas
        if "replicas" in self.info:
            raise UsageError(f"{self.path} holds replicas: take one of them, {self.path.name}:0")
        series = {"loss": pandas.Series(self.losses, self.loss_iterations)}
        for name, values in self.measures.items():
            rows = values.reshape(len(values), -1)
            several = [f"{name}.{column}" for column in column_names(self.config, name, rows.shape[1])]
            for k, column in enumerate([name] if values.ndim == 1 else several):
                series[column] = pandas.Series(rows[:, k], self.snapshot_iterations)
        return pandas.DataFrame(series).rename_axis("iteration").reset_index()


def _axes(matrices: Sequence[str], name: str, count: int) -> list[str]:
    """Return the names of the `count` axes of a weight of a network of these matrices."""
    weight = name.replace("bias", "weight")
    if weight not in matrices:
        return [f"{name}_{k}" for k in range(count)]
    hidden = ["neuron"] if len(matrices) == 2 else [f"layer_{k}" for k in range(1, len(matrices))]
    columns, rows = ["input", *hidden, "output"][matrices.index(weight) :][:2]
    return [rows, columns] if count == 2 else [rows if "bias" in name else columns]  # of one output no row is kept
