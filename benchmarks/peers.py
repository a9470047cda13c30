"""What users run today: the notebook's PyTorch loop, and JAX in `lax.scan`.

Each way returns a function of a number of iterations that trains from the initial weights and
returns the seconds it took. JAX is written as its users do, `jax.value_and_grad` inside a compiled
loop, for the bundled kinds that it can express (no convolutions, GANs, gradient flow or samples
that are drawn anew).
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

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


def jax_scan(problem: Problem) -> Timed | None:
    if not HAS_JAX or not expressible(problem):
        return None
    return sharpness_run(problem) if problem.config.record.measures else JaxRun(problem).scanned()


# --- JAX

HAS_JAX = importlib.util.find_spec("jax") is not None
jax: Any = importlib.import_module("jax") if HAS_JAX else None
jnp: Any = importlib.import_module("jax.numpy") if HAS_JAX else None
LANCZOS = 4
"""Hessian-vector products of JAX for each sharpness; ours and the plain loop's stop at a
residual, after as many.
"""
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


def activation_of(problem: Problem) -> Callable[[Any], Any]:
    """Return JAX's own form of the activation."""
    sigma = getattr(problem.config.architecture, "sigma", None)
    kind = sigma.kind if sigma is not None else "relu"
    return {
        "relu": jax.nn.relu,
        "leaky_relu": lambda z: jax.nn.leaky_relu(z, sigma.slope),
        "tanh": jnp.tanh,
        "linear": lambda z: z,
        "gelu": lambda z: jax.nn.gelu(z, approximate=False),
        "erf": lambda z: jax.lax.erf(sigma.beta * z),
        "sigmoid": jax.nn.sigmoid,
        "softplus": jax.nn.softplus,
        "silu": jax.nn.silu,
        "quadratic": lambda z: z * z,
        "cubic": lambda z: z * z * z,
    }[kind]


def outputs_of(problem: Problem) -> Callable[[Any, Any], Any]:
    """Return `(weights, x) -> h`, (n, C), or (n,) of one output, before scale and centring."""
    architecture = problem.config.architecture
    sigma = activation_of(problem)
    names = [name for name in problem.shapes if "weight" in name]
    if architecture.kind == "diagonal_linear":
        D = architecture.depth
        return lambda w, x: x @ (w["u"] ** D - w["v"] ** D)
    if architecture.kind == "matrix_product":

        def entries(w: Any, x: Any) -> Any:
            W = w[names[0]]
            for name in names[1:]:
                W = w[name] @ W
            if architecture.samples == "measurements":
                return x @ W.ravel()
            return W[x[:, 0].astype(int), x[:, 1].astype(int)]

        return entries
    if architecture.kind == "residual":

        def residual(w: Any, x: Any) -> Any:
            f = x @ w[names[0]].T
            for name in names[1:-1]:
                f = f + jax.nn.relu(f) @ w[name].T
            return (jax.nn.relu(f) @ w[names[-1]].T)[:, 0]

        return residual

    def forward(w: Any, x: Any) -> Any:
        h = x
        for name in names:
            z = h @ jnp.atleast_2d(w[name]).T
            bias = w.get(name.replace("weight", "bias")) if "bias" not in name else None
            z = z if bias is None else z + bias
            h = z if name == names[-1] else sigma(z)
        return h[:, 0] if h.shape[1] == 1 else h

    return forward


def network_of(problem: Problem) -> Callable[[Any, Any, Any, Any], Any]:
    """Return the loss, `(weights, x, y, outputs to subtract) -> number`, reduced as the config
    says.
    """
    loss = problem.config.loss
    forward = outputs_of(problem)
    scale = problem.config.architecture.output_scale or 1.0

    def values(h: Any, y: Any) -> Any:
        if loss.kind == "cross_entropy":
            return (
                jax.nn.logsumexp(h, axis=-1)
                - jnp.take_along_axis(h, y[:, None].astype(int), 1)[:, 0]
            )
        if loss.kind in ("mse", "half_mse"):
            squares = (h - y) ** 2 * (0.5 if loss.kind == "half_mse" else 1.0)
            return squares.sum(-1) if y.ndim == 2 else squares
        margin = y * h
        return {
            "logistic": lambda: jax.nn.softplus(-margin),
            "exponential": lambda: jnp.exp(-margin),
            "hinge": lambda: jax.nn.relu(1 - margin),
        }[loss.kind]()

    def reduced(w: Any, x: Any, y: Any, base: Any) -> Any:
        h = forward(w, x)
        h = h if base is None else h - base
        each = values(h if scale == 1 else scale * h, y)
        return each.mean() if loss.reduction == "mean" else each.sum()

    return reduced


def step_of(problem: Problem) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Return `(weights, gradient, memory, t, loss) -> (weights, memory)` and what makes the
    first memory.
    """
    optimizer: Any = problem.config.optimizer
    factors = problem.step_factors()
    fixed = set(problem.shapes) - set(trained_names(problem))
    rates = {
        name: 0.0 if name in fixed else optimizer.lr * factors.get(name, 1.0)
        for name in problem.shapes
    }
    zeros = lambda w: jax.tree.map(jnp.zeros_like, w)  # noqa: E731
    each = jax.tree.map

    def plain(w: Any, g: Any, b: Any, t: Any, loss: Any) -> Any:
        if optimizer.weight_decay is not None:
            g = each(lambda g, w: g + optimizer.weight_decay * w, g, w)
        if getattr(optimizer, "loss_scaled", False):
            g = each(lambda g: g / loss, g)
        if optimizer.momentum is not None:
            b = each(lambda b, g: optimizer.momentum * b + g, b, g)
            g = each(lambda g, b: g + optimizer.momentum * b, g, b) if optimizer.nesterov else b
        return each(lambda w, g, lr: w - lr * g, w, g, rates), b

    def adam(w: Any, g: Any, memory: Any, t: Any, loss: Any) -> Any:
        b1 = optimizer.beta1
        b2 = optimizer.beta2
        if optimizer.kind == "adamw":
            w = each(lambda w, lr: (1 - lr * optimizer.weight_decay) * w, w, rates)
        m = each(lambda m, g: b1 * m + (1 - b1) * g, memory[0], g)
        v = each(lambda v, g: b2 * v + (1 - b2) * g * g, memory[1], g)
        first = 1 - b1 ** (t + 1)
        second = 1 - b2 ** (t + 1)

        def move(w: Any, m: Any, v: Any, lr: Any) -> Any:
            return w - lr * (m / first) / (jnp.sqrt(v / second) + optimizer.eps)

        return each(move, w, m, v, rates), (m, v)

    def group(w: Any, g: Any, v: Any, t: Any, loss: Any) -> Any:
        v = optimizer.decay * v + (1 - optimizer.decay) * sum(
            jnp.sum(part * part) for part in g.values()
        )
        size = jnp.sqrt(v / (1 - optimizer.decay ** (t + 1))) + optimizer.eps
        return each(lambda w, g, lr: w - lr * g / size, w, g, rates), v

    if optimizer.kind in ("adam", "adamw"):
        return adam, lambda w: (zeros(w), zeros(w))
    if optimizer.kind == "group_rmsprop":
        return group, lambda w: jnp.zeros((), next(iter(w.values())).dtype)
    return plain, lambda w: zeros(w) if optimizer.momentum is not None else None


class JaxRun:
    """A problem in JAX: `advance` does any number of updates in one compiled call."""

    def __init__(self, problem: Problem) -> None:
        jax.config.update("jax_enable_x64", problem.config.dtype == "float64")
        dtype = getattr(jnp, problem.config.dtype)
        self.x, self.y = (
            jnp.array(array, dtype) for array in (problem.dataset.x, problem.dataset.y)
        )
        self.weights = {
            name: jnp.array(value, dtype) for name, value in problem.initial_parameters().items()
        }
        centered = problem.config.architecture.centered
        base = outputs_of(problem)(self.weights, self.x) if centered else None
        value = network_of(problem)
        update, memory = step_of(problem)
        self.full_batch, size = problem.batch_size is None, problem.batch_size or 0
        order = jnp.array(np.random.default_rng(0).permutation(len(self.x)))
        self.memory = memory(self.weights)

        def gradient(w: Any, t: Any) -> Any:
            if self.full_batch:
                return jax.value_and_grad(value)(w, self.x, self.y, base)
            k = jax.lax.dynamic_slice(order, (t * size % (len(order) - size + 1),), (size,))
            return jax.value_and_grad(value)(
                w, self.x[k], self.y[k], None if base is None else base[k]
            )

        def record(t: Any, carry: Any) -> Any:
            w, memory, losses, first = carry
            loss, g = gradient(w, t)
            w, memory = update(w, g, memory, t, loss)
            return w, memory, losses.at[t - first].set(loss), first

        def advance(w: Any, memory: Any, losses: Any, first: Any, count: Any) -> Any:
            w, memory, losses, _ = jax.lax.fori_loop(
                first, first + count, record, (w, memory, losses, first)
            )
            return w, memory, losses

        self._advance = jax.jit(advance)
        self.value = jax.jit(lambda w: value(w, self.x, self.y, base))
        self._gradient = gradient
        self._update = update

    def scanned(self) -> Timed:
        """Return the timing of updates by `jax.lax.scan`, the loss of each recorded."""

        def step(carry: Any, t: Any) -> Any:
            loss, g = self._gradient(carry[0], t)
            return self._update(carry[0], g, carry[1], t, loss), loss

        return timed_scan(step, (self.weights, self.memory))

    def whole(self, states: Sequence[int], losses_every: int, file: Path) -> float:
        """Return the seconds of a run that writes the weights at `states`, ascending from 0, and
        all losses at its end.

        Losses of full batches are those of every iteration; of batches, that of all samples at
        every `losses_every` iterations, as the runs of `dyn` record it.
        """
        stops = set(states[1:])
        if not self.full_batch:
            stops |= set(range(losses_every, states[-1] + 1, losses_every))
        room = jnp.zeros(
            max(b - a for a, b in zip([0, *sorted(stops)], sorted(stops), strict=False))
        )
        w = self.weights
        memory = self.memory
        at = 0
        wanted = set(states)
        kept = []
        losses = []
        jax.block_until_ready(self._advance(w, memory, room, 0, 1))
        self.value(w).block_until_ready()
        began = time.perf_counter()
        kept.append({name: np.asarray(value) for name, value in w.items()})
        for stop in sorted(stops):
            w, memory, recorded = self._advance(w, memory, room, at, stop - at)
            losses.append(
                np.asarray(recorded)[: stop - at] if self.full_batch else np.asarray(self.value(w))
            )
            if stop in wanted:
                kept.append({name: np.asarray(value) for name, value in w.items()})
            at = stop
        np.savez(
            file, *losses, **{name: np.stack([state[name] for state in kept]) for name in kept[0]}
        )
        return time.perf_counter() - began


def sharpness_run(problem: Problem) -> Callable[[int], float]:
    """Return the timing of a scan that finds the sharpness at every state, from the last
    eigenvector on.
    """
    run = JaxRun(problem)
    value = network_of(problem)
    start, unravel = importlib.import_module("jax.flatten_util").ravel_pytree(run.weights)
    lr = problem.config.optimizer.lr

    def loss_at(flat: Any) -> Any:
        return value(unravel(flat), run.x, run.y, None)

    gradient = jax.grad(loss_at)

    def iterate(j: Any, carry: Any) -> Any:
        Q, alpha, beta, at = carry
        v = jax.jvp(gradient, (at,), (Q[j],))[1]
        alpha = alpha.at[j].set(v @ Q[j])
        for _ in range(2):
            v = v - (Q @ v) @ Q
        size = jnp.linalg.norm(v)
        return Q.at[j + 1].set(v / size), alpha, beta.at[j].set(size), at

    def step(carry: Any, t: Any) -> Any:
        at, vector = carry
        Q = jnp.zeros((LANCZOS + 1, len(at))).at[0].set(vector / jnp.linalg.norm(vector))
        Q, alpha, beta, _ = jax.lax.fori_loop(
            0, LANCZOS, iterate, (Q, jnp.zeros(LANCZOS), jnp.zeros(LANCZOS), at)
        )
        values, vectors = jnp.linalg.eigh(
            jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1)
        )
        loss, g = jax.value_and_grad(loss_at)(at)
        return (at - lr * g, vectors[:, -1] @ Q[:-1]), (loss, values[-1])

    vector = jnp.array(np.random.default_rng(0).standard_normal(len(start)), start.dtype)
    return timed_scan(step, (start, vector))


def timed_scan(step: Callable[[Any, Any], Any], start: Any) -> Timed:
    """Return the timing of `jax.lax.scan` over a number of steps, compiled for each number."""
    compiled: dict[int, Any] = {}

    def timed(count: int) -> float:
        if count not in compiled:
            compiled[count] = jax.jit(lambda carry: jax.lax.scan(step, carry, jnp.arange(count)))
            jax.block_until_ready(compiled[count](start))
        began = time.perf_counter()
        jax.block_until_ready(compiled[count](start))
        return time.perf_counter() - began

    return timed
