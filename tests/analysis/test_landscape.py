"""The loss along lines and in planes, spectral densities, and layers between times, against numbers computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynamics_cli.analysis.registry import draw_panel
from dynamics_cli.runs import Run

from .conftest import DEEP, ORTHOGONAL

SPECTRA: dict[str, Any] = {
    **ORTHOGONAL,
    "name": "spectra",
    "dtype": "float64",
    "dataset": {**ORTHOGONAL["dataset"], "x_test": [[1.0]], "y_test": [0.5]},
    "initialization": {"kind": "balanced", "scale": 0.5},
    "optimizer": {"kind": "gd", "lr": 0.001, "iterations": 1500},
    "record": {
        "snapshots": {"kind": "every", "interval": 100},
        "measures": [{"kind": "spectral_density", "probes": 3, "steps": 36}, "hessian_spectrum"],
    },
}


@pytest.fixture(scope="module")
def spectra(trained: Callable[[dict[str, Any]], Run]) -> Run:
    return trained(SPECTRA)


def loss_at(run: Run, weights: dict[str, np.ndarray], *, held_out: bool = False) -> float:
    data = run.dataset()
    x, y = (data.x_test, data.y_test) if held_out else (data.x, data.y)
    h = np.maximum(x @ weights["hidden_weight"].T, 0) @ weights["output_weight"]
    return float(np.mean((h - y) ** 2))


@pytest.mark.parametrize("at", [None, 500])
def test_the_loss_between_two_states(spectra: Run, at: int | None) -> None:
    (axes,) = draw_panel(spectra, "interpolation", at).axes
    a, b = spectra.state(spectra.index_of(at or 0)), spectra.state(-1)
    for line, held_out in zip(axes.lines[:2], (False, True), strict=True):
        for share, value in list(zip(*line.get_data(), strict=True))[::15]:
            mixed = {name: (1 - share) * a[name] + share * b[name] for name in a}
            assert value == pytest.approx(loss_at(spectra, mixed, held_out=held_out), rel=1e-10)
    assert [text.get_text() for text in axes.texts] == [f"iteration {at or 0}", "iteration 1\N{THIN SPACE}500"]


def test_the_plane_of_the_trajectory_shows_its_losses(spectra: Run) -> None:
    figure = draw_panel(spectra, "loss_slice")
    first, second, *_ = figure.axes
    path = np.asarray(first.lines[0].get_xydata())
    flat = np.stack([np.concatenate([w.ravel() for w in spectra.state(i).values()]) for i in range(16)])
    moves = flat - flat[-1]
    s = np.linalg.svd(moves, compute_uv=False)
    assert np.sum(path**2, axis=0) == pytest.approx(s[:2] ** 2)
    assert f"{100 * s[0] ** 2 / np.sum(s**2):.3g} %" in first.get_xlabel()
    mesh = first.collections[0]
    u, v = (np.unique(edges) for edges in np.moveaxis(mesh.get_coordinates(), -1, 0))
    values = np.asarray(mesh.get_array()).reshape(21, 21)
    a, b = ((edges[1:] + edges[:-1]) / 2 for edges in (u, v))  # the points at which the loss was taken
    U, directions = np.linalg.svd(moves)[0], np.linalg.svd(moves)[2][:2]
    signs = np.sign(path[0] * (U[0, :2] * s[:2]))
    corner = (flat[-1] + a[0] * signs[0] * directions[0] + b[-1] * signs[1] * directions[1]).astype(float)
    shapes = {name: w.shape for name, w in spectra.state(0).items()}
    parts = np.split(corner, np.cumsum([np.prod(shape) for shape in shapes.values()])[:-1])
    weights = {name: part.reshape(shapes[name]) for name, part in zip(shapes, parts, strict=True)}
    assert values[-1, 0] == pytest.approx(loss_at(spectra, weights), rel=1e-8)
    middle = np.asarray(second.collections[0].get_array()).reshape(21, 21)
    assert middle[10, 10] == pytest.approx(loss_at(spectra, spectra.state(-1)), rel=1e-9)
    again = draw_panel(spectra, "loss_slice").axes[1].collections[0]
    assert np.array_equal(middle, np.asarray(again.get_array()).reshape(21, 21))  # the same directions


def test_densities_of_all_eigenvalues_and_of_some_vectors_have_the_same_support(spectra: Run) -> None:
    left, right = draw_panel(spectra, "spectral_density", 1500).axes
    (exact, drawn) = (next(one for one in axes.lines if len(one.get_xdata()) > 100) for axes in (left, right))
    values = spectra.measures["hessian_spectrum"][-1]
    x, y = exact.get_data()
    assert x[0] < values.min() < values.max() < x[-1]
    assert np.nansum(y) * (x[1] - x[0]) == pytest.approx(1.0, abs=0.01)
    top = x[np.flatnonzero(np.nan_to_num(y))[-1]]
    also = drawn.get_xdata()[np.flatnonzero(np.nan_to_num(drawn.get_ydata()))[-1]]
    assert also == pytest.approx(top, rel=0.02)  # of few vectors the weights are rough, the ends are not
    assert {axes.get_ylabel() for axes in draw_panel(spectra, "measures").axes} == {"hessian spectrum"}


def test_layers_between_times_and_each_other(trained: Callable[[dict[str, Any]], Run]) -> None:
    figure = draw_panel(trained(DEEP), "similarity")
    maps = [axes for axes in figure.axes if axes.get_title(loc="left")]
    assert [axes.get_title(loc="left") for axes in maps] == ["(a) layer 1", "(b) layer 2", "(c) iteration 12"]
    for axes in maps:
        values = np.asarray(axes.collections[0].get_array())
        assert np.diag(values) == pytest.approx(1.0)
        assert values == pytest.approx(values.T)
    run = trained(DEEP)
    W, b = (np.asarray(run.parameters[name], float) for name in ("weight_1", "bias_1"))
    h = [np.maximum(run.dataset().x @ W[i].T + b[i], 0) for i in (0, -1)]
    A, B = (one - one.mean(0) for one in h)
    cka = np.sum((B.T @ A) ** 2) / np.linalg.norm(A.T @ A) / np.linalg.norm(B.T @ B)
    assert np.asarray(maps[0].collections[0].get_array())[0, -1] == pytest.approx(cka)
