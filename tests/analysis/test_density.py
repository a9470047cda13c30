"""Spectral densities, against numbers computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dynamics_cli.analysis.registry import draw_panel
from dynamics_cli.runs import Run

from .conftest import ORTHOGONAL

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
