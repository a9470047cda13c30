"""JAX's rows of the benchmarks, which need nothing but JAX and NumPy: `peers.py` calls them in its
own process, or in an interpreter with another JAX (`compare.py --jax-python PYTHON`).

As a program, `python jax_peer.py FILE` reads a problem that `describe` wrote, and answers each
number of iterations on its input with the seconds that they take.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Timed = Callable[[int], float]
LANCZOS = 4
"""Hessian-vector products of JAX for each sharpness; ours and the plain loop's stop at a
residual, after as many.
"""


class Described:
    """A problem as JAX needs it."""

    def __init__(self, about: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Take what `peers.describe` returns."""
        self.dtype: str = about["dtype"]
        self.batch_size: int | None = about["batch_size"]
        self.trained: list[str] = about["trained"]
        self.factors: dict[str, float] = about["factors"]
        self.measures: bool = about["measures"]
        self.exact: bool = about["exact"]
        """Whether tanh and curvature are to be as exact as those of `dyn`."""
        self.architecture, self.sigma, self.loss, self.optimizer = (
            SimpleNamespace(**about[section])
            for section in ("architecture", "sigma", "loss", "optimizer")
        )
        self.x = arrays["x"]
        self.y = arrays["y"]
        self.weights = {name: arrays[f"weight/{name}"] for name in about["names"]}


def scanned(problem: Described) -> Timed:
    """Return the timing of a scan that records the loss, or the sharpness, of every state."""
    return sharpness_run(problem) if problem.measures else JaxRun(problem).scanned()


def activation_of(problem: Described) -> Callable[[Any], Any]:
    """Return JAX's own form of the activation."""
    sigma = problem.sigma
    kind = sigma.kind or "relu"
    return {
        "relu": jax.nn.relu,
        "leaky_relu": lambda z: jax.nn.leaky_relu(z, sigma.slope),
        "tanh": exact_tanh if problem.exact else jnp.tanh,
        "linear": lambda z: z,
        "gelu": lambda z: jax.nn.gelu(z, approximate=False),
        "erf": lambda z: jax.lax.erf(sigma.beta * z),
        "sigmoid": jax.nn.sigmoid,
        "softplus": jax.nn.softplus,
        "silu": jax.nn.silu,
        "quadratic": lambda z: z * z,
        "cubic": lambda z: z * z * z,
    }[kind]


def exact_tanh(z: Any) -> Any:
    """Return tanh to 2.5 units in the last place (JAX 0.12.0.1), where XLA's own loses up to 7."""
    m = jnp.expm1(-2 * jnp.abs(z))
    return jnp.copysign(m / (-2 - m), z)


def outputs_of(problem: Described) -> Callable[[Any, Any], Any]:
    """Return `(weights, x) -> h`, (n, C), or (n,) of one output, before scale and centring."""
    architecture = problem.architecture
    sigma = activation_of(problem)
    names = [name for name in problem.weights if "weight" in name]
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


def network_of(problem: Described) -> Callable[[Any, Any, Any, Any], Any]:
    """Return the loss, `(weights, x, y, outputs to subtract) -> number`, reduced as the config
    says.
    """
    loss = problem.loss
    forward = outputs_of(problem)
    scale = problem.architecture.output_scale or 1.0

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


def step_of(problem: Described) -> tuple[Callable[..., Any], Callable[[Any], Any]]:
    """Return `(weights, gradient, memory, t, loss) -> (weights, memory)` and what makes the
    first memory.
    """
    optimizer: Any = problem.optimizer
    factors = problem.factors
    fixed = set(problem.weights) - set(problem.trained)
    rates = {
        name: 0.0 if name in fixed else optimizer.lr * factors.get(name, 1.0)
        for name in problem.weights
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

    def __init__(self, problem: Described) -> None:
        jax.config.update("jax_enable_x64", problem.dtype == "float64")
        dtype = getattr(jnp, problem.dtype)
        self.x, self.y = (jnp.array(array, dtype) for array in (problem.x, problem.y))
        self.weights = {name: jnp.array(value, dtype) for name, value in problem.weights.items()}
        centered = problem.architecture.centered
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


def sharpness_run(problem: Described) -> Callable[[int], float]:
    """Return the timing of a scan that finds the sharpness at every state, from the last
    eigenvector on; in float64 where it is to be as exact as that of `dyn`.
    """
    run = JaxRun(problem)
    value = network_of(problem)
    if problem.exact:
        jax.config.update("jax_enable_x64", True)
    ravel = importlib.import_module("jax.flatten_util").ravel_pytree
    start, unravel = ravel(run.weights)
    measured = jnp.float64 if problem.exact else start.dtype
    x, y = (array.astype(measured) for array in (run.x, run.y))
    _, unravel_measured = ravel(jax.tree.map(lambda w: w.astype(measured), run.weights))
    lr = problem.optimizer.lr

    def loss_at(flat: Any) -> Any:
        return value(unravel(flat), run.x, run.y, None)

    gradient = jax.grad(lambda flat: value(unravel_measured(flat), x, y, None))

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
        Q = jnp.zeros((LANCZOS + 1, len(at)), measured)
        Q = Q.at[0].set(vector / jnp.linalg.norm(vector))
        sizes = jnp.zeros(LANCZOS, measured)
        Q, alpha, beta, _ = jax.lax.fori_loop(
            0, LANCZOS, iterate, (Q, sizes, sizes, at.astype(measured))
        )
        values, vectors = jnp.linalg.eigh(
            jnp.diag(alpha) + jnp.diag(beta[:-1], 1) + jnp.diag(beta[:-1], -1)
        )
        loss, g = jax.value_and_grad(loss_at)(at)
        return (at - lr * g, vectors[:, -1] @ Q[:-1]), (loss, values[-1])

    vector = jnp.array(np.random.default_rng(0).standard_normal(len(start)), measured)
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


def main() -> None:
    with np.load(Path(sys.argv[1])) as file:
        arrays = dict(file)
    run = scanned(Described(json.loads(str(arrays.pop("about"))), arrays))
    for line in sys.stdin:
        print(run(int(line)), flush=True)


if __name__ == "__main__":
    main()
