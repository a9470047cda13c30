import numpy as np
import pytest

from dynamics_cli.plotting.panels import neurons
from dynamics_cli.plotting.style import PALETTE


def test_shared_pieces():
    assert [
        neurons.round_up(v) for v in (0.0, np.nan, 1.0, 1.01, 0.13, 9.0, 3e-20)
    ] == pytest.approx([1, 1, 1, 1.5, 0.15, 10, 3e-20])
    assert neurons.sign_handle(1).get_color() == PALETTE.positive
    assert neurons.sign_handle(-1, marker="*").get_marker() == "*"
