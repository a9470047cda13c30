"""What users run today: the notebook's PyTorch loop, JAX in `lax.scan`, and the limit, a C loop on one thread.

Each returns a function of a number of iterations that trains from the initial weights and returns the seconds it took.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jax_peer import HAS_JAX, JaxRun, expressible, sharpness_run

from dynamics_cli.kinds import Problem, State
from dynamics_cli.measures.lanczos import largest_eigenvalues
from dynamics_cli.training.backends import Choice, build_stepper

Timed = Callable[[int], float]


def ours(problem: Problem, way: str) -> Timed:
    """Train by `torch` or a variant of the compiled backend."""
    stepper = build_stepper([problem], Choice("cpu", way if way == "torch" else "compiled", 0.0, way))
    start = stepper.state_dict()

    def run(count: int) -> float:
        stepper.load_state_dict(start)
        memory: dict[str, np.ndarray] = {}
        began = time.perf_counter()
        if not problem.config.record.measures:
            stepper.advance(count)
        for t in range(count if problem.config.record.measures else 0):
            for measure in problem.config.record.measures or ():
                measure.measure(State(problem, stepper.parameters(), problem.initial_parameters, t, memory))
            stepper.advance(1)
        return time.perf_counter() - began

    return run


ACTIVATIONS = {
    "relu": torch.relu, "tanh": torch.tanh, "linear": lambda z: z, "gelu": torch.nn.functional.gelu,
}  # fmt: skip


def loss_of(problem: Problem, h: Any, y: Any, softplus: Callable[[Any], Any]) -> Any:
    """Return the reduced loss of outputs (n,)."""
    loss = problem.config.loss
    values = {
        "mse": lambda: (h - y) ** 2, "half_mse": lambda: (h - y) ** 2 / 2, "logistic": lambda: softplus(-y * h),
    }[loss.kind]()  # fmt: skip
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
            self.u, self.v = (torch.nn.Parameter(torch.from_numpy(weights[name])) for name in ("u", "v"))
        for name in [name for name in weights if "weight" in name]:
            weight, bias = np.atleast_2d(weights[name]), weights.get(name.replace("weight", "bias"))
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
    x, y = (torch.tensor(one, dtype=dtype) for one in (problem.dataset.x, problem.dataset.y))
    size, order = problem.batch_size or 0, torch.from_numpy(np.random.default_rng(0).permutation(len(x)))
    chosen = problem.config.optimizer
    make = torch.optim.Adam if chosen.kind == "adam" else torch.optim.SGD

    def run(count: int) -> float:
        net, losses = Network(problem).to(dtype), []
        vector, weights = np.random.default_rng(0).standard_normal(sum(p.numel() for p in net.parameters())), []
        if problem.config.record.measures:
            weights = list(net.parameters())
        optimizer = make(net.parameters(), lr=chosen.lr)  # type: ignore[union-attr]
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        began = time.perf_counter()
        for t in range(count):
            k = order[t * size % (len(order) - size + 1) :][:size]
            xb, yb = (x, y) if size == 0 else (x[k], y[k])
            optimizer.zero_grad()
            loss = loss_of(problem, net(xb)[:, 0], yb, torch.nn.functional.softplus)
            if weights:  # sharpness
                slopes = torch.autograd.grad(loss, weights, create_graph=True)
                vector = largest_eigenvalues(partial(hessian_product, slopes, weights), vector)[1][:, 0]
                loss = loss_of(problem, net(xb)[:, 0], yb, torch.nn.functional.softplus)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        seconds = time.perf_counter() - began
        torch.set_num_threads(before)
        return seconds

    return run


def hessian_product(slopes: tuple[torch.Tensor, ...], weights: list[torch.Tensor], v: np.ndarray) -> np.ndarray:
    parts = torch.from_numpy(v.astype(np.float32)).split([w.numel() for w in weights])
    inner = sum((g.flatten() @ part for g, part in zip(slopes, parts, strict=True)), torch.zeros(()))
    return torch.cat([p.flatten() for p in torch.autograd.grad(inner, weights, retain_graph=True)]).double().numpy()


def jax_scan(problem: Problem) -> Timed | None:
    if not HAS_JAX or not expressible(problem):
        return None
    return sharpness_run(problem) if problem.config.record.measures else JaxRun(problem).scanned


C_SOURCE = """
#include <string.h>
void run(float *restrict W, float *restrict a, const float *restrict x, const float *restrict y,
         float *restrict z, float *restrict gW, float *restrict ga, float *restrict losses, long count, float lr) {
  for (long t = 0; t < count; t++) {
    float loss = 0, r[N];
    for (int k = 0; k < N; k++) {
      float h = 0;
      for (int j = 0; j < M; j++) {
        float s = 0;
        #pragma GCC unroll 4
        for (int i = 0; i < D; i++) s += x[k * D + i] * W[i * (long)M + j];
        s = s > 0 ? s : 0;
        z[k * (long)M + j] = s;
        h += a[j] * s;
      }
      loss += (h - y[k]) * (h - y[k]);
      r[k] = 2 * (h - y[k]) / N;
    }
    losses[t] = loss / N;
    memset(gW, 0, sizeof(float) * D * (long)M);
    memset(ga, 0, sizeof(float) * (long)M);
    for (int k = 0; k < N; k++) {
      float *restrict zk = z + k * (long)M;
      for (int j = 0; j < M; j++) {
        float s = zk[j], b = r[k] * a[j];
        ga[j] += r[k] * s;
        zk[j] = s > 0 ? b : 0;
      }
      for (int i = 0; i < D; i++)
        for (int j = 0; j < M; j++) gW[i * (long)M + j] += zk[j] * x[k * D + i];
    }
    for (long j = 0; j < D * (long)M; j++) W[j] -= lr * gW[j];
    for (int j = 0; j < M; j++) a[j] -= lr * ga[j];
  }
}
"""


def c_loop(problem: Problem, directory: Path) -> Timed | None:
    """Return the loop in C, its sizes known to the compiler; None without a compiler, with batches or many columns."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    two_layers = problem.config.architecture.kind == "two_layer"
    if compiler is None or problem.batch_size is not None or problem.dataset.d > 4 or not two_layers:
        return None
    m, d = problem.shapes["hidden_weight"]
    n = problem.dataset.n
    source, library = directory / "loop.c", directory / f"loop_{n}_{d}_{m}.so"
    source.write_text(C_SOURCE)
    flags = ["-O3", "-march=native", "-ffast-math", "-fPIC", f"-DN={n}", f"-DD={d}", f"-DM={m}"]
    compiled = library.with_suffix(".o")
    subprocess.run([compiler, *flags, "-c", str(source), "-o", str(compiled)], check=True)
    # linked without -ffast-math, which would switch off denormal numbers for the whole process
    subprocess.run([compiler, "-shared", str(compiled), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).run
    x, y = problem.dataset.x.astype(np.float32), problem.dataset.y.astype(np.float32)
    z, gW, ga = (np.empty(size, np.float32) for size in (n * m, d * m, m))

    def run(count: int) -> float:
        weights = problem.initial_parameters()
        W = np.array(weights["hidden_weight"].T, order="C", dtype=np.float32)
        a, losses = np.array(weights["output_weight"], np.float32), np.empty(count, np.float32)
        pointers = [v.ctypes.data_as(ctypes.c_void_p) for v in (W, a, x, y, z, gW, ga, losses)]
        lr = ctypes.c_float(problem.config.optimizer.lr)  # type: ignore[union-attr]
        began = time.perf_counter()
        function(*pointers, ctypes.c_long(count), lr)
        return time.perf_counter() - began

    return run
