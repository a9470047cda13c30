"""Linear attention against attention on all tokens, its forms of samples, and the sequences that
it learns from.
"""

import numpy as np
import pytest
import torch
from dynamics_cli._bundled.experiments.zhang2025.architectures.linear_attention import (
    LinearAttention,
)
from numpy.testing import assert_allclose, assert_array_equal

from dynamics_cli.datasets.in_context import InContextRegression
from dynamics_cli.kinds import FreshStreams, Streams

D = 3
N = 6
H = 2
STREAMS = Streams(4)


def sequences(features="tokens", **keys):
    return InContextRegression(
        n=40, context=N, eigenvalues=[0.5, 0.3, 0.2], features=features, n_test=30, **keys
    )


def full(X, weights):
    """Return `sum_i (X KQ_i X^T) X V_i^T` for all tokens, its last number for the last token."""
    total = torch.zeros(len(X), dtype=X.dtype)
    for i in range(H):
        KQ = torch.zeros(D + 1, D + 1, dtype=X.dtype)
        V = torch.zeros(D + 1, D + 1, dtype=X.dtype)
        if "weight_key" in weights:
            K = torch.cat([weights["weight_key"][i], weights["weight_key_label"][i][:, None]], 1)
            KQ[:, :D] = K.T @ weights["weight_query"][i]
        else:
            KQ[:D, :D], KQ[D, :D] = (
                weights["weight_key_query"][i],
                weights["weight_key_query_label"][i],
            )
        V[D] = torch.cat([weights["weight_value_input"][i], weights["weight_value"][i]])
        scores = X @ KQ.T @ X.mT  # (n, queries, keys)
        total = total + (scores @ X @ V.T)[:, -1, -1]
    return total


@pytest.mark.parametrize(
    "keys", [{}, {"key_query": "separate"}, {"key_query": "separate", "rank": 1}]
)
def test_outputs_and_gradients_are_those_of_attention_on_all_tokens(
    keys,
):
    x, short = (torch.tensor(sequences(form).samples(STREAMS).x) for form in ("tokens", "moments"))
    model = LinearAttention(heads=H, **keys).build(short.shape[1]).double()
    torch.manual_seed(0)
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    expected = full(x.reshape(len(x), N + 1, D + 1), dict(model.named_parameters()))
    gradients = torch.autograd.grad(expected.square().sum(), list(model.parameters()))
    h = model(short)
    torch.testing.assert_close(h, expected, rtol=1e-12, atol=1e-12)
    found = torch.autograd.grad(h.square().sum(), list(model.parameters()))
    torch.testing.assert_close(found, gradients, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("key_query", ["merged", "separate"])
def test_with_blocks_at_0_it_is_a_regression_on_cubic_features(key_query):
    net = LinearAttention(heads=H, key_query=key_query)
    moments, cubic = (sequences(form).samples(STREAMS) for form in ("moments", "cubic"))
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal(shape) * (not name.endswith(("_label", "_input")))
        for name, shape in net.shapes(moments.d).items()
    }
    assert_allclose(
        net.evaluation(weights, moments.d)(moments.x), cubic.x @ net.regression(weights).ravel()
    )
    assert_array_equal(moments.y, cubic.y)


def test_sequences_are_a_regression_in_context():
    data = sequences(exact_moments=True)
    samples = data.samples(STREAMS)
    for x, y in ((samples.x, samples.y), (samples.x_test, samples.y_test)):
        X = x.reshape(len(x), N + 1, D + 1)
        assert (X[:, -1, -1] == 0).all()
        assert_allclose(X[:, :, :D].mean(0), 0, atol=1e-12)
        w = np.stack([np.linalg.lstsq(one[:-1, :D], one[:-1, D], rcond=None)[0] for one in X])
        assert_allclose(np.einsum("nd,nd->n", w, X[:, -1, :D]), y, atol=1e-9)
        assert_allclose(np.cov(w.T), np.eye(D), atol=1e-9)
    assert_allclose(np.linalg.eigvalsh(data.covariance(STREAMS)), [0.2, 0.3, 0.5])
    many = (
        InContextRegression(n=20000, context=1, eigenvalues=[0.5, 0.3, 0.2])
        .samples(STREAMS)
        .x.reshape(-1, 4)[:, :D]
    )
    assert_allclose(np.cov(many.T), data.covariance(STREAMS), atol=0.01)
    fresh = sequences("moments").fresh(FreshStreams(STREAMS.seed, 3), 7)
    assert fresh.x.shape == (7, (D + 1) ** 2 + D)
