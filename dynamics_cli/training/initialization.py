"""Initial weights, drawn in float64 from the initialisation stream of the seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config.initialization import (
    DefaultScaledInitialization,
    FileInitialization,
    IndependentModesInitialization,
    ScaledInitialization,
    ValuesInitialization,
)
from dynamics_cli.config.run import RunConfig
from dynamics_cli.datasets import Dataset
from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.datasets.streams import stream
from dynamics_cli.errors import DataMissingError, InputError
from dynamics_cli.training.independent_modes import independent_modes

Floats = NDArray[np.float64]
Shapes = Mapping[str, tuple[int, ...]]


def initial_parameters(
    config: RunConfig, shapes: Shapes, input_dim: int, seed: int | None = None, dataset: Dataset | None = None
) -> dict[str, Floats]:
    """Return the initial value of every parameter, float64.

    Args:
        config: the run.
        shapes: name -> shape of the network's parameters.
        input_dim: input dimension without the bias column, the `d` of `divide_by`.
        seed: drawn from instead of the config's.
        dataset: the data, which independent modes are made for.

    Raises:
        InputError: a file does not hold weights of these shapes, or the data have no independent modes.

    """
    section = config.initialization
    rng = stream(config.seed if seed is None else seed, "initialization")
    if isinstance(section, FileInitialization):
        return _from_file(section, shapes)
    if isinstance(section, ValuesInitialization):
        return _from_values(section, shapes)
    if isinstance(section, IndependentModesInitialization):
        if dataset is None:
            raise TypeError("independent modes need the data set")
        return independent_modes(section, shapes, dataset, config.loss.kind)
    if isinstance(section, DefaultScaledInitialization):
        return _default(section, shapes, rng)
    if config.architecture.kind == "two_layer":
        return _two_layer(section, shapes["hidden_weight"], input_dim, rng)
    return {
        name: _scale(section, width=shape[0], dim=math.prod(shape[1:]) or 1) * rng.standard_normal(shape)
        for name, shape in shapes.items()
    }


def _scale(section: ScaledInitialization, *, width: int, dim: int) -> float:
    divisor = {"none": 1, "sqrt_width": width, "sqrt_dim": dim, "sqrt_width_times_dim": width * dim}
    return section.scale / math.sqrt(divisor[section.divide_by])


def _two_layer(
    section: ScaledInitialization, hidden: tuple[int, ...], input_dim: int, rng: np.random.Generator
) -> dict[str, Floats]:
    m, columns = hidden
    s = _scale(section, width=m, dim=input_dim)
    kind: str = section.kind  # type: ignore[attr-defined]
    shape = (m, columns)
    W = rng.uniform(-s, s, shape) if kind == "dominated" else s * rng.standard_normal(shape)  # (m, d)
    if section.output_value is not None:
        magnitudes = np.full(m, section.output_value)
    elif kind == "unbalanced":
        return {"hidden_weight": W, "output_weight": s * rng.standard_normal(m)}
    elif kind == "dominated":
        magnitudes = np.full(m, s * math.sqrt(columns))
    else:
        largest = np.abs(W).max()  # scales below 1e-154 would underflow in the squares
        magnitudes = largest * np.linalg.norm(W / largest, axis=1)
    if section.output_signs == "halves":
        signs = np.where(np.arange(m) < (m + 1) // 2, 1.0, -1.0)
    else:
        signs = rng.choice([-1.0, 1.0], m)
    return {"hidden_weight": W, "output_weight": signs * magnitudes}


def _default(section: DefaultScaledInitialization, shapes: Shapes, rng: np.random.Generator) -> dict[str, Floats]:
    """Uniform in ± 1/sqrt(fan in) for weights and biases alike, as `torch.nn.Linear` and `Conv2d` draw them."""
    for name in section.only or ():
        if name not in shapes:
            raise InputError(f"initialization.only: no parameter {name!r}; this network has {', '.join(shapes)}")
    parameters = {}
    fan_in = 1
    for name, shape in shapes.items():
        if len(shape) > 1:  # biases follow their weight and share its fan-in
            fan_in = math.prod(shape[1:])
        elif name == "output_weight":
            fan_in = shape[0]
        bound = 1 / math.sqrt(fan_in)
        factor = section.factor if section.only is None or name in section.only else 1.0
        parameters[name] = factor * rng.uniform(-bound, bound, shape)
    return parameters


def _from_values(section: ValuesInitialization, shapes: Shapes) -> dict[str, Floats]:
    d = shapes["hidden_weight"][1]
    for j, row in enumerate(section.hidden_weight):
        if len(row) != d:
            raise InputError(f"initialization.hidden_weight[{j}] has {len(row)} entries, the inputs have {d} columns")
    return {"hidden_weight": np.array(section.hidden_weight), "output_weight": np.array(section.output_weight)}


def _from_file(section: FileInitialization, shapes: Shapes) -> dict[str, Floats]:
    path = Path(section.path)
    if not path.is_file():
        raise DataMissingError(
            f"{path}: no such file of initial weights; name an existing .npz under initialization.path"
        )
    suffix = section.suffix
    bias = "hidden_bias" + suffix
    arrays = read_npz(path, required=tuple(name + suffix for name in shapes), optional=(bias,))
    parameters = {name: np.asarray(arrays[name + suffix], dtype=np.float64) for name in shapes}
    if "hidden_weight" in shapes and bias in arrays:
        W, b = parameters["hidden_weight"], np.asarray(arrays[bias], dtype=np.float64)
        if W.ndim != 2 or b.shape != W.shape[:1]:
            raise InputError(f"{path}: {bias} has shape {b.shape}, {W.shape[:1]} is needed beside hidden_weight")
        parameters["hidden_weight"] = np.concatenate([W, b[:, None]], axis=1)
    for name, shape in shapes.items():
        if parameters[name].shape != shape:
            raise InputError(f"{path}: {name + suffix} gives shape {parameters[name].shape}, the network needs {shape}")
        if not np.isfinite(parameters[name]).all():
            raise InputError(f"{path}: {name + suffix} holds values that are not finite")
    return parameters
