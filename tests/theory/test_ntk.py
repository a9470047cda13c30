from functools import partial

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch.autograd.functional import jacobian

from dynamics_cli.measures.two_layer import activate, activation_derivative, outputs
from dynamics_cli.theory.ntk import ntk, ntk_interpolator
from tests.theory.descent import descend

seeds = st.integers(0, 2**32 - 1)


def network(seed, n=4, d=3, m=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=(m, d)), rng.normal(size=m)


def leaky(slope):
    return {
        "value": partial(activate, slope=slope),
        "derivative": partial(activation_derivative, slope=slope),
    }


def gradient_features(x, W, a, *, slope=0.0, train_output=True):
    """`grad_theta h(x_k)` by autograd: (n, m d + m), hidden weights row by row, then output
    weights if they are trained.
    """

    def h(*weights):
        z = torch.from_numpy(x) @ weights[0].T
        return torch.where(z > 0, z, slope * z) @ weights[1]

    J = jacobian(h, (torch.from_numpy(W), torch.from_numpy(a)))
    return torch.cat([part.flatten(1) for part in J[: 1 + train_output]], 1).numpy()


@settings(deadline=None, max_examples=30)
@given(seeds, st.sampled_from([0.0, 0.3, 1.0]), st.booleans())
def test_kernel_is_the_inner_product_of_features(seed, slope, train_output):
    x, _, W, a = network(seed)
    other = np.random.default_rng(seed).normal(size=(2, 3))
    features = gradient_features(x, W, a, slope=slope, train_output=train_output)
    other_features = gradient_features(other, W, a, slope=slope, train_output=train_output)
    kernel = partial(ntk, W=W, a=a, **leaky(slope), train_output=train_output)
    K = kernel(x, other)
    assert_allclose(K, features @ other_features.T, atol=1e-10)
    gram = kernel(x, x)
    assert_allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-10


def test_the_interpolator_fits_the_labels_and_is_kernel_regression():
    x, y, W, a = network(3, m=20)
    model = ntk_interpolator(x, y, W, a)
    new = np.random.default_rng(0).normal(size=(7, 3))
    assert_allclose(model(x), y, atol=1e-9)
    K = ntk(new, x, W, a)
    R = y - outputs(x, W, a)
    assert_allclose(
        model(new), outputs(new, W, a) + K @ np.linalg.pinv(ntk(x, x, W, a)) @ R, atol=1e-8
    )


def test_a_really_trained_network_approaches_it_in_the_lazy_regime():
    """Paired neurons make h_0 = 0; scaling weights up makes training lazier, at rate 1/scale^2
    in function space.
    """
    rng = np.random.default_rng(6)
    x = rng.normal(size=(4, 3))
    y = rng.normal(size=4)
    W = np.repeat(rng.normal(size=(50, 3)), 2, axis=0)
    a = np.repeat(rng.normal(size=50), 2) * np.tile([1, -1], 50)
    new = rng.normal(size=(20, 3))
    errors = []
    for scale in (1.0, 4.0):
        W_0 = scale * W
        a_0 = scale * a
        end = descend(x, y, W_0, a_0, lr=0.002 / scale**2, steps=6000)
        assert_allclose(outputs(x, *end), y, atol=1e-6)
        errors.append(np.abs(outputs(new, *end) - ntk_interpolator(x, y, W_0, a_0)(new)).max())
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 4


def test_singular_kernels_fit_in_the_least_squares_sense():
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    y = np.array([1.0, 3.0, 5.0])
    model = ntk_interpolator(x, y, np.eye(2), np.ones(2))
    assert_allclose(model(x), [2.0, 2.0, 5.0], atol=1e-9)
    dead = ntk_interpolator(x, y, -np.eye(2), np.ones(2))
    assert_allclose(dead(x), 0.0, atol=1e-15)
