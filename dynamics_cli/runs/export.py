"""Runs in the forms of other tools: xarray, pandas and parquet, TensorBoard, safetensors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.dump import flat, to_plain
from dynamics_cli.errors import DynError, UsageError, needing
from dynamics_cli.runs.columns import column_names
from dynamics_cli.runs.store import files

if TYPE_CHECKING:
    import xarray
    from pandas import DataFrame

FORMATS = ("parquet", "tensorboard", "safetensors")


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
            own = _axes(getattr(self.config.architecture, "matrices", ()), name, values.ndim - 1 - len(replica))
            variables[name] = (["iteration", *replica, *own], values)
        for name, values in self.measures.items():
            count = values.ndim - 1 - len(replica)
            own = [f"{name}_column"] if count == 1 else [f"{name}_{k}" for k in range(count)]
            if count == 1:
                coordinates[own[0]] = column_names(self.config, name, values.shape[-1])
            variables[name] = (["iteration", *replica, *own], values)
        plain = to_plain(self.config)
        settings = {key: value for key, value in flat(plain).items() if isinstance(value, str | int | float)}
        about = {"hash": self.hash or "", "status": self.status, "config": json.dumps(plain)}
        return xarray.Dataset(variables, coordinates, {**settings, **about})

    def to_pandas(self) -> DataFrame:
        """Return a row for every iteration at which a loss or measures were recorded, NaN where another was not.

        Raises UsageError: pandas is not installed, or the run is one of replicas.
        """
        with needing("Run.to_pandas", "pandas"):
            import pandas
        series = {name: pandas.Series(values, iterations) for name, (iterations, values) in curves(self).items()}
        return pandas.DataFrame(series).rename_axis("iteration").reset_index()


def _axes(matrices: Sequence[str], name: str, count: int) -> list[str]:
    """Return the names of the `count` axes of a weight of a network of these matrices."""
    weight = name.replace("bias", "weight")
    if weight not in matrices:
        return [f"{name}_{k}" for k in range(count)]
    hidden = ["neuron"] if len(matrices) == 2 else [f"layer_{k}" for k in range(1, len(matrices))]
    columns, rows = ["input", *hidden, "output"][matrices.index(weight) :][:2]
    return [rows, columns] if count == 2 else [rows if "bias" in name else columns]  # of one output no row is kept


def curves(run: Any) -> dict[str, tuple[NDArray[np.int64], NDArray[Any]]]:
    """Return (iterations, values) of `loss` and of every number of the measures, by `name` or `name.column`.

    Raises UsageError: the run is one of replicas.
    """
    if "replicas" in run.info:
        raise UsageError(f"{run.path} holds replicas: take one of them, {run.path.name}:0")
    found = {"loss": (run.loss_iterations, run.losses)}
    for name, values in run.measures.items():
        rows = values.reshape(len(values), -1)
        several = [f"{name}.{column}" for column in column_names(run.config, name, rows.shape[1])]
        names = [name] if values.ndim == 1 else several
        found |= {one: (run.measure_iterations, rows[:, k]) for k, one in enumerate(names)}
    return found


@contextmanager
def _written(path: Path) -> Iterator[Path]:
    """Yield a free name beside `path`; what has that name becomes `path` in one step, unless writing it fails.

    Raises:
        UsageError: something, such as a link, is there already.
        RunError: it cannot be written.
    """
    if files.exists(path):
        raise UsageError(f"{path} is there already")
    with files.os_errors_as_run_errors(path, advice=""):
        files.make_directory(path.parent)
        with files.replacing(path) as temporary:
            try:
                yield temporary
            except DynError:
                raise
            except Exception as error:  # safetensors and TensorBoard have errors of their own, for a full disk too
                raise OSError(getattr(error, "errno", None) or 0, str(error)) from error


def write_parquet(table: Callable[[], DataFrame], path: Path) -> None:
    """Write a table of pandas as parquet.

    Raises:
        UsageError: pandas or pyarrow is not installed, or something is at `path`.
        RunError: it cannot be written.
    """
    with needing("parquet", "pyarrow"):
        import pyarrow  # noqa: F401
    made = table()
    with _written(path) as temporary:
        made.to_parquet(temporary, engine="pyarrow")


def write_tensorboard(run: Any, path: Path) -> None:
    """Write losses and measures as scalars, and the config as text, into a directory of TensorBoard.

    Raises:
        UsageError: tensorboard is not installed, the run is one of replicas, or something is at `path`.
        RunError: it cannot be written.
    """
    with needing("tensorboard", "tensorboard"):
        from torch.utils.tensorboard import SummaryWriter
    found = curves(run)
    with _written(path) as temporary, SummaryWriter(str(temporary)) as writer:
        writer.add_text("config", f"```\n{json.dumps(to_plain(run.config), indent=2)}\n```")
        for name, (iterations, values) in found.items():
            for iteration, value in zip(iterations.tolist(), values.tolist(), strict=True):
                if math.isfinite(value):
                    writer.add_scalar(name, value, iteration)


def write_safetensors(run: Any, path: Path, at: int | None = None) -> None:
    """Write the weights of the snapshot nearest to an iteration, by default of the last, as a `state_dict`.

    Raises:
        UsageError: safetensors is not installed, or something is at `path`.
        RunError: the run recorded no parameters, or the file cannot be written.
    """
    with needing("safetensors", "safetensors"):
        from safetensors.numpy import save
    i = -1 if at is None else run.index_of(min(max(at, 0), 2**62))
    iteration = str(int(run.snapshot_iterations[i])) if len(run.snapshot_iterations) else ""
    data = save(run.state(i), {"format": "pt", "hash": run.hash or "", "iteration": iteration})
    with _written(path) as temporary:
        temporary.write_bytes(data)
