import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.datasets.files.mnist import load_mnist
from dynamics_cli.datasets.images import MnistPair, light_effect
from dynamics_cli.kinds import Streams


def pair(**settings):
    return MnistPair(**{"digits": [1, 0], "source": "subset", **settings})


def build(**settings):
    return pair(**settings).load(Streams(0))


def test_a_pair_is_ordered_by_class_and_labelled():
    data = build(digits=[1, 0])
    raw = load_mnist("subset", "train")
    raw_test = load_mnist("subset", "test")
    assert (data.x.shape, data.y.shape) == ((2000, 784), (2000,))
    assert (data.x_test.shape, data.y_test.shape) == ((400, 784), (400,))
    assert_array_equal(data.y, np.repeat([1.0, -1.0], 1000))
    assert_array_equal(data.y_test, np.repeat([1.0, -1.0], 200))
    assert_array_equal(data.x[:1000], raw[1].reshape(1000, 784) / 255)
    assert_array_equal(data.x[1000:], raw[0].reshape(1000, 784) / 255)
    assert_array_equal(data.x_test[200:], raw_test[0].reshape(200, 784) / 255)
    assert (data.x.min(), data.x.max()) == (0.0, 1.0)
    assert_array_equal(pair().load(Streams(7)).x, data.x)


def test_options():
    data = build(per_class=30, test_per_class=4, labels="classes", append_bias=True)
    full = build()
    assert data.x.shape == (60, 785)
    assert data.bias
    assert_array_equal(data.x[:, -1], 1.0)
    assert_allclose(data.x[:30, :-1], full.x[:30], rtol=1e-15)
    assert_allclose(data.x[30:, :-1], full.x[1000:1030], rtol=1e-15)
    assert_array_equal(data.y, np.repeat([0.0, 1.0], 30))
    assert data.x_test.shape == (8, 785)
    assert build(test=False).x_test is None


@pytest.mark.parametrize("shape", [(256,), (2, 4, 4, 8)])
def test_the_light_effect_scales_every_pixel_value(shape):
    """Tachet des Combes et al. 2018, Appendix E.2: 0 to 127 for the one class, 128 to 255 for
    the other.
    """
    values = np.arange(256, dtype=np.uint8).reshape(-1, *shape[1:])
    bright = np.arange(len(values)) % 2 == 1
    expected = (values // 2) + 128 * bright.reshape(-1, *[1] * (len(shape) - 1))
    found = light_effect(values, bright)
    assert found.dtype == np.uint8
    assert_array_equal(found, expected)
    data = build(light_effect=True)
    assert (data.x[:1000].max(), data.x[1000:].min()) == (127 / 255, 128 / 255)
    assert data.x_test[200:].min() == 128 / 255
