"""Curvature of a network of torch beside curvlinops and PyHessian, run by hand: `python
benchmarks/curvature.py`.

The same Hessian in float64, a convolutional network on random images; sharpness to a tolerance of
1e-6, the trace with 30 random vectors. Each way runs in a process of its own: the fastest of three
turns, and the growth of its memory.
"""

from __future__ import annotations

import resource
import time
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from compare import machine
from torch import nn

import dynamics_cli as dyn


def ours(model: nn.Module, x: Any, y: Any, *, trace: bool) -> float:
    measure = {"kind": "hessian_trace", "probes": 30} if trace else {"kind": "sharpness"}
    return dyn.measure(model, x, y, measures=[measure])[0][measure["kind"]]  # type: ignore[no-any-return]


def curvlinops(model: nn.Module, x: Any, y: Any, *, trace: bool) -> float:
    from curvlinops import HessianLinearOperator, hutchinson_trace
    from scipy.sparse.linalg import eigsh

    H = HessianLinearOperator(model, nn.CrossEntropyLoss(), list(model.parameters()), [(x, y)])
    if trace:
        return float(hutchinson_trace(H, num_matvecs=30))
    return float(eigsh(H.to_scipy(), k=1, which="LA", tol=1e-6, return_eigenvectors=False)[0])


def pyhessian(model: nn.Module, x: Any, y: Any, *, trace: bool) -> float:
    from pyhessian import hessian

    H = hessian(model, nn.CrossEntropyLoss(), data=(x, y), cuda=False)
    return float(
        np.mean(H.trace(30, -np.inf)) if trace else H.eigenvalues(maxIter=300, tol=1e-6)[0][0]
    )


def measured(way: Any, trace: bool) -> tuple[float, float, float]:
    """Return seconds, MiB and the value."""
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(1, 16, 5, 2),
        nn.BatchNorm2d(16),
        nn.GELU(),
        nn.Conv2d(16, 32, 5, 2),
        nn.GELU(),
        nn.Flatten(),
    ]
    model = nn.Sequential(*layers, nn.Linear(512, 64), nn.GELU(), nn.Linear(64, 10)).double().eval()
    data = (torch.randn(128, 1, 28, 28).double(), torch.arange(128) % 10)
    turns = []
    before = peak()
    for _ in range(3):
        began = time.perf_counter()
        value = way(model, *data, trace=trace)
        turns.append(time.perf_counter() - began)
    return min(turns), peak() - before, value


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    print(
        machine(),
        {name: version(name) for name in ("torch", "curvlinops-for-pytorch", "pyhessian")},
    )
    print("| measure | by | seconds | MiB | value |\n| --- | --- | --- | --- | --- |")
    for trace in (False, True):
        for way in (ours, curvlinops, pyhessian):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                seconds, mib, value = pool.submit(measured, way, trace).result()
            print(
                f"| {'trace' if trace else 'sharpness'} | {way.__name__} | {seconds:.2f} |"
                f" {mib:.0f} | {value:.5g} |"
            )
