"""Microseconds for 16 000 numbers: `python benchmarks/elementary.py`.

The functions of `dynamics_cli.engine.elementary` beside NumPy's and `math`'s in a loop that numba compiles.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from dynamics_cli.engine import elementary

COUNT, REPEATS, CALLS = 16_000, 20, 20
NAMES = ("exp", "expm1", "log", "log1p", "tanh", "erf", "erfc", "sigmoid", "softplus", "ndtr")


def loop(function: Callable[[float], float]) -> Callable[..., None]:
    @numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})
    def fill(x: np.ndarray, values: np.ndarray) -> None:
        for i in range(x.shape[0]):
            values[i] = function(x[i])

    return fill


@numba.njit(nogil=True, error_model="numpy", fastmath={"contract"})
def tanh_and_slope(x: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> None:
    for i in range(x.shape[0]):
        t = elementary.tanh(x[i])
        values[i] = t
        slopes[i] = 1 - t * t


def microseconds(function: Callable[..., Any] | None, *arrays: np.ndarray) -> float:
    if function is None:
        return math.nan
    function(*arrays)
    best = math.inf
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(CALLS):
            function(*arrays)
        best = min(best, time.perf_counter() - began)
    return best / CALLS * 1e6


if __name__ == "__main__":
    print("| | type | ours | NumPy | math in numba |\n| --- | --- | --- | --- | --- |")
    for real in (np.float32, np.float64):
        x = np.abs(np.random.default_rng(0).standard_normal(COUNT)).astype(real)
        for name in NAMES:
            library = getattr(math, name, None)
            timed = loop(getattr(elementary, name)), getattr(np, name, None), library and loop(library)
            row = [f"{microseconds(function, x, np.empty_like(x)):.1f}" for function in timed]
            print(f"| `{name}` | {real.__name__} | {' | '.join(row)} |".replace("nan", ""))
    x = np.random.default_rng(0).standard_normal(2000)
    print(f"tanh and 1 - tanh^2 of 2 000 float64: {microseconds(tanh_and_slope, x, x.copy(), x.copy()):.2f}")
