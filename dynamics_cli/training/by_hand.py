"""Derivatives that kinds from outside write by hand, compared with automatic differentiation when a kind is first used.

Training by autograd asks for the values alone: a wrong derivative would show in measures of curvature, not in the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import Activation, Array, Floats, Kind, Loss, RunConfig
from dynamics_cli.kinds.base import kinds_in
from dynamics_cli.kinds.registry import is_foreign

POINTS = np.append(np.linspace(-5.93, 6.11, 24), [-1e-3, 1e-3])
"""Arguments (n,) on both sides of 0, none of them where formulas usually have kinks."""
_compared: set[tuple[type, str, int]] = set()


def check_derivatives(config: RunConfig) -> None:
    """Compare the derivatives of every activation and loss of a config that is not bundled, once a process.

    Raises:
        InputError: one differs, or its values have another shape than samples; the message names the argument.
    """
    outputs = getattr(config.architecture, "outputs", None) or 1
    for _, kind in kinds_in(config):
        if is_foreign(type(kind)) and isinstance(kind, Activation | Loss):
            key = type(kind), kind.model_dump_json(), outputs
            if key not in _compared:
                with np.errstate(all="ignore"):
                    _check_activation(kind) if isinstance(kind, Activation) else _check_loss(kind, outputs)
                _compared.add(key)


def _check_activation(sigma: Activation) -> None:
    def place(k: int) -> str:
        return f"z = {POINTS[k]:.6g}"

    _compare(sigma, sigma.value, sigma.derivative, POINTS, place)
    if type(sigma).second_derivative is not Activation.second_derivative:
        _compare(sigma, sigma.derivative, sigma.second_derivative, POINTS, place)


def _check_loss(loss: Loss, outputs: int) -> None:
    import torch

    rng, n = np.random.default_rng(0), len(POINTS)
    h = POINTS if outputs == 1 else rng.normal(0.0, 2.0, (n, outputs))
    signs, classes = np.resize([1.0, 1.0, -1.0], n), np.arange(n) % outputs
    y = {"real": rng.normal(0.0, 2.0, h.shape), "signs": signs, "classes": classes}[loss.labels]

    def with_labels(f: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
        return wraps(f)(lambda h: f(h, torch.from_numpy(y) if isinstance(h, torch.Tensor) else y))

    def place(k: int) -> str:
        return f"h = {np.round(h[k], 6)}, y = {np.round(y[k], 6)}"

    _compare(loss, with_labels(loss.values), with_labels(loss.derivatives), h, place)


def _compare(
    kind: Kind, of: Callable[[Any], Any], own: Callable[[Any], Any], at: Floats, place: Callable[[int], str]
) -> None:
    """Refuse a kind whose `own` derivative by `at` (n,) or (n, C) is not that of its values `of` (n,)."""
    import torch

    name, z = f"{kind.section}.kind {kind.kind!r}", torch.tensor(at, requires_grad=True)
    values = of(z)
    if (shape := tuple(getattr(values, "shape", ()))) != at.shape[:1]:
        raise InputError(
            f"{name}: {of.__name__} gives shape {shape} for {len(at)} arguments, one number for each is needed"
        )
    exact = torch.autograd.grad(values.sum(), z)[0].numpy() if values.requires_grad else np.zeros(at.shape)
    given = np.asarray(own(at), np.float64)
    if given.shape not in ((), at.shape):
        raise InputError(f"{name}: {own.__name__} gives shape {given.shape} for arguments of shape {at.shape}")
    given = np.broadcast_to(given, at.shape)
    wrong = np.isfinite(exact) & ~np.isclose(given, exact, rtol=1e-6, atol=1e-9)
    if wrong.any():
        k = tuple(np.argwhere(wrong)[0])
        differ = f"{own.__name__} gives {given[k]:.6g}, automatic differentiation of {of.__name__} {exact[k]:.6g}"
        raise InputError(f"{name}: at {place(k[0])} {differ}")
