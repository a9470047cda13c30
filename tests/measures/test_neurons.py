import numpy as np
import pytest

from dynamics_cli.measures.neurons import cosines, norms


@pytest.mark.parametrize("scale", [1e-20, 1e-30])
def test_float32_weights_of_tiny_scale_do_not_underflow(scale):
    W = (scale * np.array([[3.0, 4.0]])).astype(np.float32)
    assert norms(W)[0] == pytest.approx(5 * scale, rel=1e-6)
    assert cosines(W, [4.0, 3.0])[0] == pytest.approx(24 / 25, rel=1e-6)


def test_norms_do_not_underflow_in_float64_either():
    assert norms([[3e-200, 4e-200]])[0] == pytest.approx(5e-200, rel=1e-12)
    assert norms([[3e200, 4e200]])[0] == pytest.approx(5e200, rel=1e-12)
