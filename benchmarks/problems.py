"""The problems of the table: two-layer networks (of which two on MNIST), deep ones, and a
diagonal one.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import load_config
from dynamics_cli.kinds import Problem, Samples
from dynamics_cli.training.problem import build_problem

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
DEFAULT_MNIST = Path(__file__).resolve().parents[2] / "shared" / "data" / "mnist"


def from_config(name: str) -> Callable[[Path], Problem]:
    """Return what makes the problem of a bundled config, without its measures."""
    return lambda mnist: build_problem(
        load_config(CONFIGS / f"{name}.yaml", ["record.measures=[]"])
    )


def problem_of(dataset: Samples, width: int, **optimizer: float) -> Problem:
    """Return a problem on data at hand; the config's own data set is only a place holder."""
    config = load_config(
        {
            "name": "benchmark",
            "dataset": {"kind": "points", "x": [[0.0]], "y": [1.0]},
            "architecture": {"kind": "two_layer", "width": width},
            "initialization": {"kind": "balanced", "scale": 1e-2, "divide_by": "sqrt_width"},
            "loss": {"kind": "mse"},
            "optimizer": {"kind": "gd", "lr": 1e-3, "iterations": 1_000_000, **optimizer},
        }
    )
    return build_problem(config, dataset=dataset)


def wide(mnist: Path) -> Problem:
    x = np.array([[-1.0, 1.0], [0.5, 1.0], [2.0, 1.0]])
    return problem_of(Samples(x, np.array([1.0, -1.0, 1.0]), bias=True), 200_000)


def mnist_zero_one(mnist: Path) -> Problem:
    x, digit = read_mnist(mnist)
    chosen = digit <= 1
    return problem_of(Samples(x[chosen], np.where(digit[chosen] == 1, 1.0, -1.0)), 50)


def mnist_sgd(mnist: Path) -> Problem:
    x, digit = read_mnist(mnist)
    data = Samples(x[:2000], np.where(digit[:2000] % 2 == 1, 1.0, -1.0))
    return problem_of(data, 100, kind="sgd", batch_size=1)  # type: ignore[arg-type]


def read_mnist(directory: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the training images (60 000, 784) in [0, 1] and their digits, from IDX files,
    gzipped or not.
    """
    images = _idx(directory, "train-images-idx3-ubyte", 16).reshape(-1, 784) / 255.0
    return images, _idx(directory, "train-labels-idx1-ubyte", 8)


def _idx(directory: Path, name: str, header: int) -> NDArray[np.uint8]:
    path = directory / name
    raw = (
        path.read_bytes()
        if path.exists()
        else gzip.decompress((directory / f"{name}.gz").read_bytes())
    )
    return np.frombuffer(raw, np.uint8, offset=header)


def deep(
    n: int,
    d: int,
    widths: list[int],
    activation: str = "relu",
    measures: tuple[str, ...] = (),
    loss: str = "mse",
    **optimizer: object,
) -> Callable[[Path], Problem]:
    """Return what makes a problem of a fully connected network; of a diagonal one without
    `widths`.
    """
    architecture = {"kind": "fully_connected", "widths": widths, "activation": activation}
    initialization: dict[str, object] = {"kind": "default_scaled"}
    if not widths:
        architecture = {"kind": "diagonal_linear"}
        initialization = {"kind": "constant", "scale": 0.1}
    rng = np.random.default_rng(0)
    config = {
        "name": "benchmark",
        "dataset": {"kind": "points", "x": [[0.0]], "y": [1.0]},  # a place holder
        "architecture": architecture,
        "initialization": initialization,
        "loss": {"kind": loss},
        "optimizer": {"kind": "gd", "lr": 1e-4, "iterations": 1_000_000, **optimizer},
        "record": {"measures": list(measures)},
    }
    x = rng.standard_normal((n, d))
    y = rng.standard_normal(n)
    return lambda mnist: build_problem(load_config(config), dataset=Samples(x, y))


PROBLEMS: dict[str, Callable[[Path], Problem]] = {
    "orthogonal": from_config("boursier2022/orthogonal"),
    "five_points": from_config("boursier2022/five_points"),
    "high_dim": from_config("boursier2022/high_dim"),
    "wide": wide,
    "mnist01": mnist_zero_one,
    "sgd": mnist_sgd,
    "deep_linear": deep(32, 16, [32, 32, 32], "linear"),
    "relu": deep(50, 10, [64, 64]),
    "relu_adam": deep(50, 10, [64, 64], kind="adam"),
    "relu_sgd": deep(2000, 100, [100, 100], kind="sgd", batch_size=32),
    "relu_large": deep(2000, 784, [200, 200]),
    "diagonal": deep(100, 1000, []),
    "tanh": deep(50, 10, [64, 64], "tanh"),
    "gelu": deep(50, 10, [64, 64], "gelu"),
    "cohen2021/classes": from_config("cohen2021/classes"),
    "cohen2021/chebyshev": from_config("cohen2021/chebyshev"),
    "examples/edge_of_stability": from_config("examples/edge_of_stability"),
    "min2024/mnist_01": from_config("min2024/mnist_01"),
    "gromov2023/adamw": from_config("gromov2023/adamw"),
    "tachet2018/deep": from_config("tachet2018/deep"),
    "tanh_sharpness": deep(20, 1, [100], "tanh", ("sharpness",), lr=0.01),
}
TARGETS = {
    "orthogonal": (300.0, 4.0),
    "five_points": (150.0, 4.0),
    "high_dim": (5.0, 1.5),
    "wide": (6.0, 1.5),
    "mnist01": (0.0, 1.0),
    "sgd": (25.0, 0.0),
    "deep_linear": (15.0, 1.2),
    "relu": (12.0, 1.2),
    "relu_adam": (20.0, 1.0),
    "relu_sgd": (4.0, 1.0),
    "relu_large": (1.0, 0.0),
    "diagonal": (8.0, 1.0),
    "tanh": (8.0, 1.2),
    "gelu": (8.0, 1.2),
    "cohen2021/classes": (0.0, 1.2),
    "cohen2021/chebyshev": (0.0, 1.2),
    "examples/edge_of_stability": (0.0, 1.2),
    "min2024/mnist_01": (1.0, 1.0),
    "gromov2023/adamw": (0.0, 1.2),
    "tachet2018/deep": (0.0, 1.2),
    "tanh_sharpness": (4.0, 1.0),
}
"""Least ratios to the plain loop and to JAX that must be seen."""
