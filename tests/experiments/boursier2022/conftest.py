import os
from pathlib import Path

import numpy as np
import pytest


def _folders():
    root = Path(__file__).parents[3]
    named = os.environ.get("DYN_REFERENCE")
    return (
        [Path(named)]
        if named
        else [root / "tests" / "reference", root.parent / "shared" / "reference"]
    )


@pytest.fixture
def reference():
    """Return a function: name of a reference run -> its arrays, with the bias as last column of
    x and W.
    """

    def load(name):
        for folder in _folders():
            path = folder / f"boursier2022_{name}.npz"
            if path.is_file():
                return _read(path)
        pytest.skip(f"no reference run {name}")

    return load


def _read(path):
    with np.load(path) as archive:
        run = {key: archive[key].astype(np.float64) for key in archive.files}
    for at in ("0", "T"):
        if f"hidden_bias_{at}" in run:
            run[f"hidden_weight_{at}"] = np.column_stack(
                [run[f"hidden_weight_{at}"], run[f"hidden_bias_{at}"]]
            )
    if "hidden_bias_0" in run:
        run["x"] = np.column_stack([run["x"], np.ones(len(run["x"]))])
    return run


@pytest.fixture
def two_points():
    """Return the two orthogonal points of Figures 2 and 3, the bias as second column."""
    return np.array([[-0.5, 1.0], [2.0, 1.0]]), np.array([-1.0, 1.0])
