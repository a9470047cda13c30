from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.plotting.panels import neurons
from dynamics_cli.plotting.style import PALETTE

W = np.array([[0.3, 0.4], [-0.6, 0.0], [0.0, 0.0], [0.0, -1.0]])
SIGNS = np.array([1, -1, 1, -1])
TIMES = np.array([0, 10, 100])
ANGLES = {"kind": "angle", "ylabel": "degrees"}
NORMS = np.array([[1e-6, 2e-6, 0.0], [1e-3, 2e-6, 0.0], [1.0, 2e-6, 0.0]])


def test_shared_pieces():
    assert neurons.as_signs([2.5, -0.1, 0, np.nan], 4).tolist() == [1, -1, 0, 0]
    assert [neurons.round_up(v) for v in (0.0, np.nan, 1.0, 1.01, 0.13, 9.0, 3e-20)] == pytest.approx(
        [1, 1, 1, 1.5, 0.15, 10, 3e-20]
    )
    assert neurons.sign_handle(1).get_color() == PALETTE.positive
    assert neurons.sign_handle(-1, marker="*").get_marker() == "*"
