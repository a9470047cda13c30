"""Given weights: written in the config, or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from dynamics_cli.datasets.files.tables import read_npz
from dynamics_cli.errors import InputError
from dynamics_cli.initializations.scaled import needs_two_layers
from dynamics_cli.kinds import Finding, Floats, Initialization, Positive, Problem, Sections, Streams


class Values(Initialization, kind="values"):
    """Weights of a two-layer network written in the config itself, such as one swept neuron."""

    example = """\
architecture: {kind: two_layer, width: 1}
initialization: {kind: values, hidden_weight: [[1.0, 0.0]], output_weight: [1.0]}
"""
    hidden_weight: list[Annotated[list[float], Field(min_length=1)]] = Field(min_length=1)
    """Hidden weights, one list per neuron (m, d), the weight of an appended bias last."""
    output_weight: list[float] = Field(min_length=1)
    """Output weights (m,)."""

    def check(self, sections: Sections) -> Iterator[Finding]:
        """Yield another number of neurons than the network has."""
        yield from needs_two_layers(sections, "kind", self.kind)
        width = getattr(sections.get("architecture"), "width", None)
        for key in ("hidden_weight", "output_weight"):
            rows = len(getattr(self, key))
            if width is not None and rows != width and sections["architecture"].two_layers:
                yield ("initialization", key), f"has {rows} entries, architecture.width is {width}"

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights.

        Raises:
            InputError: a neuron has another number of weights than the inputs have columns.
        """
        d = problem.shapes["hidden_weight"][1]
        for j, row in enumerate(self.hidden_weight):
            if len(row) != d:
                entries = f"initialization.hidden_weight[{j}] has {len(row)} entries"
                raise InputError(f"{entries}, the inputs have {d} columns")
        return {
            "hidden_weight": np.array(self.hidden_weight),
            "output_weight": np.array(self.output_weight),
        }


class Constant(Initialization, kind="constant"):
    """All weights equal to the scale, as `u = v = alpha 1` (Woodworth et al. 2020)."""

    example = "{kind: constant, scale: 0.1}"
    titles: ClassVar[Mapping[str, str]] = {"scale": "scale α"}
    scale: Positive
    """The value of every weight."""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights."""
        return {name: np.full(shape, self.scale) for name, shape in problem.shapes.items()}


class AsBuilt(Initialization, kind="as_built"):
    """The weights that the network's module draws after `torch.manual_seed(seed)`, as in a script.

    Modules of torch draw each layer by its own rule: gains of normalisations are 1, for example.
    """

    example = """\
architecture: {kind: recurrent, tokens: 2, width: 4}
dataset: {kind: sparse_parity, n: 20, dim: 4, k: 2}
initialization: {kind: as_built}
"""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Return the weights.

        Raises:
            InputError: the module has none of its own: all are 0.
        """
        architecture = problem.config.architecture
        module = architecture.built(problem.dataset.d, streams.seed)
        weights = {name: w.detach().double().numpy() for name, w in module.named_parameters()}
        if not any(w.any() for w in weights.values()):
            raise InputError(
                f"initialization.kind as_built: architecture.kind {architecture.kind} draws no"
                " weights itself; take default_scaled"
            )
        return weights


class FromFile(Initialization, kind="file"):
    """Weights from a `.npz` file: `hidden_weight` (m, d), `output_weight` (m,), `hidden_bias` (m,).

    The bias is optional. Other networks have arrays named as their parameters.
    """

    example = """\
# python -c "from numpy import *; savez('weights', hidden_weight=eye(60,2), output_weight=ones(60))"
initialization: {kind: file, path: weights.npz}
"""
    file_keys: ClassVar = ("path",)
    path: str
    """The file, relative to the config that names it."""
    suffix: str = ""
    """Appended to the names of the arrays, e.g. `_0`."""

    def draw(self, problem: Problem, streams: Streams) -> Mapping[str, Floats]:
        """Read the weights.

        Raises:
            DataMissingError: the file is not there.
            InputError: it does not hold finite weights of the shapes of the network.
        """
        shapes = problem.shapes
        path = Path(self.path)
        suffix = self.suffix
        bias = "hidden_bias" + suffix
        arrays = read_npz(path, required=tuple(name + suffix for name in shapes), optional=(bias,))
        parameters = {name: np.asarray(arrays[name + suffix], dtype=np.float64) for name in shapes}
        if "hidden_weight" in shapes and bias in arrays:
            W = parameters["hidden_weight"]
            b = np.asarray(arrays[bias], dtype=np.float64)
            if W.ndim != 2 or b.shape != W.shape[:1]:
                raise InputError(
                    f"{path}: {bias} has shape {b.shape}, {W.shape[:1]} is needed beside"
                    " hidden_weight"
                )
            parameters["hidden_weight"] = np.concatenate([W, b[:, None]], axis=1)
        for name, shape in shapes.items():
            if parameters[name].shape != shape:
                raise InputError(
                    f"{path}: {name + suffix} gives shape {parameters[name].shape}, the network"
                    f" needs {shape}"
                )
            if not np.isfinite(parameters[name]).all():
                raise InputError(f"{path}: {name + suffix} holds values that are not finite")
        return parameters
