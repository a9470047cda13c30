"""What users run today: the notebook's PyTorch loop, and JAX in `lax.scan`.

Each way returns a function of a number of iterations that trains from the initial weights and
returns the seconds it took. JAX (`jax_peer.py`) is written as its users do, `jax.value_and_grad`
inside a compiled loop, for the bundled kinds that it can express (no convolutions, GANs, gradient
flow or samples that are drawn anew).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from dynamics_cli.gradients.derivatives import trained_names
from dynamics_cli.gradients.lanczos import largest_eigenvalues
from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.loop import MOST_WATCHED
from dynamics_cli.training.measuring import Measuring
from dynamics_cli.training.steppers.layers import LayersStepper

Timed = Callable[[int], float]


def ours(problem: Problem, way: str) -> Timed:
    """Train by `torch`, by the `engine`, or by the `kernel` that `compiled` takes for this
    problem.
    """
    choice = Choice("cpu", "torch" if way == "torch" else "compiled")
    stepper = LayersStepper([problem]) if way == "engine" else build_stepper([problem], choice)
    start = stepper.state_dict()

    def run(count: int) -> float:
        stepper.load_state_dict(start)
        measuring = Measuring([problem])
        began = time.perf_counter()
        if not problem.config.record.measures:
            stepper.advance(count)
            return time.perf_counter() - began
        measuring.at(stepper.parameters(), 0)
        while (first := stepper.iteration) < count:
            due = np.arange(first + 1, count + 1)[:MOST_WATCHED]
            done = measuring.advance(stepper, len(due), due, ())
            if done is None:
                stepper.advance(1)
            if done is None or first + len(done[1]) < stepper.iteration:
                measuring.at(stepper.parameters(), stepper.iteration)
        return time.perf_counter() - began

    return run


ACTIVATIONS = {
    "relu": torch.relu,
    "tanh": torch.tanh,
    "linear": lambda z: z,
    "gelu": torch.nn.functional.gelu,
    "quadratic": torch.square,
}


def loss_of(problem: Problem, h: Any, y: Any, softplus: Callable[[Any], Any]) -> Any:
    """Return the reduced loss of outputs (n, C)."""
    loss = problem.config.loss
    y = y.reshape(h.shape)
    values = {
        "mse": lambda: ((h - y) ** 2).sum(1),
        "half_mse": lambda: ((h - y) ** 2).sum(1) / 2,
        "logistic": lambda: softplus(-y * h),
        "exponential": lambda: torch.exp(-y * h),
    }[loss.kind]()
    return values.mean() if loss.reduction == "mean" else values.sum()


class Network(torch.nn.Module):
    """The notebook's network: two layers or many, or a diagonal one."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        weights = problem.initial_parameters()
        self.sigma = ACTIVATIONS[problem.config.architecture.sigma.kind]  # type: ignore[attr-defined]
        self.depth: int | None = getattr(problem.config.architecture, "depth", None)
        self.layers = torch.nn.ModuleList()
        if self.depth is not None:
            self.u, self.v = (
                torch.nn.Parameter(torch.from_numpy(weights[name])) for name in ("u", "v")
            )
        for name in [name for name in weights if "weight" in name]:
            weight = np.atleast_2d(weights[name])
            bias = weights.get(name.replace("weight", "bias"))
            layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
            with torch.no_grad():
                layer.weight.copy_(torch.from_numpy(weight))
                if bias is not None:
                    layer.bias.copy_(torch.from_numpy(bias))
            self.layers.append(layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.depth is not None:
            return (x @ (self.u**self.depth - self.v**self.depth))[:, None]
        for layer in self.layers[:-1]:
            x = self.sigma(layer(x))
        return self.layers[-1](x)


def plain(problem: Problem, threads: int) -> Timed:
    dtype = getattr(torch, problem.config.dtype)
    x, y = (torch.tensor(array, dtype=dtype) for array in (problem.dataset.x, problem.dataset.y))
    size = problem.batch_size or 0
    order = torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    chosen = problem.config.optimizer
    make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}.get(chosen.kind, torch.optim.SGD)
    given: dict[str, Any] = {}
    if chosen.kind in ("adam", "adamw"):
        given = {"betas": (chosen.beta1, chosen.beta2), "eps": chosen.eps}
    if chosen.kind == "adamw":
        given["weight_decay"] = chosen.weight_decay

    def run(count: int) -> float:
        net = Network(problem).to(dtype)
        losses = []
        vector = np.random.default_rng(0).standard_normal(sum(p.numel() for p in net.parameters()))
        weights = []
        if problem.config.record.measures:
            weights = list(net.parameters())
        optimizer = make(net.parameters(), lr=chosen.lr, **given)  # type: ignore[union-attr]
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        began = time.perf_counter()
        for t in range(count):
            k = order[t * size % (len(order) - size + 1) :][:size]
            xb, yb = (x, y) if size == 0 else (x[k], y[k])
            optimizer.zero_grad()
            loss = loss_of(problem, net(xb), yb, torch.nn.functional.softplus)
            if weights:  # sharpness
                slopes = torch.autograd.grad(loss, weights, create_graph=True)
                vector = largest_eigenvalues(partial(hessian_product, slopes, weights), vector)[1][
                    :, 0
                ]
                loss = loss_of(problem, net(xb), yb, torch.nn.functional.softplus)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds = time.perf_counter() - began
        torch.set_num_threads(before)
        return seconds

    return run


def hessian_product(
    slopes: tuple[torch.Tensor, ...], weights: list[torch.Tensor], v: np.ndarray
) -> np.ndarray:
    parts = torch.from_numpy(v.astype(np.float32)).split([w.numel() for w in weights])
    inner = sum(
        (g.flatten() @ part for g, part in zip(slopes, parts, strict=True)), torch.zeros(())
    )
    return (
        torch.cat([p.flatten() for p in torch.autograd.grad(inner, weights, retain_graph=True)])
        .double()
        .numpy()
    )


# --- JAX

HAS_JAX = importlib.util.find_spec("jax") is not None
KEYS = {
    "gd": {"momentum", "nesterov", "weight_decay", "loss_scaled"},
    "sgd": {"momentum", "nesterov", "weight_decay"},
    "adam": {"beta1", "beta2", "eps"},
    "adamw": {"beta1", "beta2", "eps", "weight_decay"},
    "group_rmsprop": {"decay", "eps", "per"},
}
"""Optimizers that are written here, and their keys."""
COMMON = {
    "kind",
    "lr",
    "iterations",
    "epochs",
    "batch_size",
    "replacement",
    "stop_below",
    "layer_lr",
}


def expressible(problem: Problem) -> bool:
    """Return whether JAX can train a problem by the code of this module."""
    config = problem.config
    kinds = ("two_layer", "fully_connected", "diagonal_linear", "matrix_product", "residual")
    optimizer = config.optimizer
    if optimizer.kind not in KEYS or config.architecture.kind not in kinds or problem.fresh:
        return False
    if getattr(optimizer, "per", "network") != "network":
        return False
    known = COMMON | KEYS[optimizer.kind]
    given = {
        key
        for key in type(optimizer).model_fields
        if getattr(optimizer, key) not in (None, False, "epoch")
    }
    return given <= known and problem.config.optimizer.schedule is None


def describe(
    problem: Problem, *, exact: bool = False
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return plain data and arrays of a problem, for `jax_peer.Described`.

    `exact`: JAX is to compute tanh and curvature as exactly as `dyn` does.
    """
    config = problem.config
    architecture = config.architecture
    sigma = getattr(architecture, "sigma", None)
    optimizer = config.optimizer
    about = {
        "dtype": config.dtype,
        "batch_size": problem.batch_size,
        "names": list(problem.shapes),
        "trained": trained_names(problem),
        "factors": dict(problem.step_factors()),
        "measures": bool(config.record.measures),
        "exact": exact,
        "architecture": _plain(
            architecture, "kind", "depth", "samples", "centered", "output_scale"
        ),
        "sigma": _plain(sigma, "kind", "slope", "beta"),
        "loss": _plain(config.loss, "kind", "reduction"),
        "optimizer": _plain(optimizer, *COMMON, *set().union(*KEYS.values())),
    }
    arrays = {"x": np.asarray(problem.dataset.x), "y": np.asarray(problem.dataset.y)}
    weights = problem.initial_parameters()
    return about, arrays | {f"weight/{name}": weights[name] for name in weights}


def _plain(kind: Any, *keys: str) -> dict[str, Any]:
    return {key: getattr(kind, key, None) for key in keys}


def jax_scan(problem: Problem, python: str | None = None, *, exact: bool = False) -> Timed | None:
    """Return the timing of JAX in this process, or in another interpreter; None where it has no
    form of the problem.

    `exact`: of JAX as exact as `dyn`, in a process of its own, since all of a process has one
    precision; None where it is as exact by itself.
    """
    if not expressible(problem) or not (python or HAS_JAX):
        return None
    if exact:
        sigma = getattr(problem.config.architecture, "sigma", None)
        if getattr(sigma, "kind", None) != "tanh":
            return None
        python = python or sys.executable
    about, arrays = describe(problem, exact=exact)
    if python:
        return JaxChild(python, about, arrays)
    jax_peer = importlib.import_module("jax_peer")
    return jax_peer.scanned(jax_peer.Described(about, arrays))  # type: ignore[no-any-return]


class JaxChild:
    """The timing of JAX in a process of another interpreter, which waits between two turns."""

    def __init__(
        self, python: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "problem.npz"
        np.savez(file, about=np.array(json.dumps(about)), **arrays)
        script = Path(__file__).with_name("jax_peer.py")
        command = [python, "-I", str(script), str(file)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, count: int) -> float:
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{count}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def jax_version(python: str | None) -> str | None:
    """Return the version of JAX and of its Python, where there is one."""
    if not (python or HAS_JAX):
        return None
    asks = "import jax, sys; print(jax.__version__, 'on Python', sys.version.split()[0])"
    command = [python, "-I", "-c", asks] if python else [sys.executable, "-c", asks]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
