"""The minimal model against sums written out, and its first growth against all sequences."""

import itertools

import numpy as np
import pytest
import torch
from dynamics_cli._bundled.experiments.edelman2024.architectures.minimal_induction import (
    MinimalInduction,
)
from dynamics_cli._bundled.experiments.edelman2024.theory.population import (
    batch_error,
    entropy_of_rows,
    growth,
    two_symbols,
)
from numpy.testing import assert_allclose

from dynamics_cli.datasets.sequences import MarkovChains, stationary
from dynamics_cli.kinds import Streams


@pytest.mark.parametrize("mask", [True, False])
def test_outputs_are_the_sums_of_the_formula(mask):
    T = 5
    k = 3
    rng = np.random.default_rng(0)
    weights = {"weight_lag": rng.standard_normal(T), "weight_match": rng.standard_normal((k, k))}
    x = MarkovChains(n=4, length=T, symbols=k).samples(Streams(1)).x
    h = MinimalInduction(tokens=T, outputs=k, mask=mask).evaluation(weights, T * k)(x)
    v = weights["weight_lag"]
    for tokens, outputs in zip(x.reshape(-1, T, k), h, strict=True):
        expected = np.zeros((T, k))
        for t in range(T):
            for s in range(t + 1):
                seen = range(s + 1 if mask else T)
                a = np.exp([v[max(s - j, 0)] for j in seen])
                average = a @ tokens[list(seen)] / a.sum()
                expected[t] += tokens[t] @ weights["weight_match"] @ average * tokens[s]
        assert_allclose(outputs, expected, rtol=1e-12)


def of_all_sequences(P, weights, T):
    """Return minus the gradients of the loss at 0 by W, and by v for W the identity, by torch."""
    k = P.shape[-1]
    s = np.array(list(itertools.product(range(k), repeat=T + 1)))  # (k^(T+1), T + 1)
    chances = np.prod(P[:, s[:, :-1], s[:, 1:]], -1) / k
    model = MinimalInduction(tokens=T, outputs=k).build(T * k).double()
    x = torch.eye(k, dtype=torch.float64)[s[:, :-1]].flatten(1)
    y = torch.tensor(s[:, 1:])
    size = torch.zeros((), dtype=torch.float64, requires_grad=True)
    v = torch.zeros(T, dtype=torch.float64, requires_grad=True)
    W = torch.zeros(k, k, dtype=torch.float64, requires_grad=True)
    values = {"weight_lag": v, "weight_match": W + size * torch.eye(k, dtype=torch.float64)}
    h = torch.func.functional_call(model, values, x)
    losses = torch.nn.functional.cross_entropy(h.mT, y, reduction="none").mean(1)
    loss = (losses * torch.tensor(weights @ chances)).sum()
    by_size, by_W = torch.autograd.grad(loss, (size, W), create_graph=True)
    (by_v,) = torch.autograd.grad(by_size, v)
    return -by_W.detach().numpy(), -by_v.numpy()


def test_growth_is_the_gradient_on_all_sequences():
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.1, 0.3]])
    order = [list(permutation) for permutation in itertools.permutations(range(3))]
    renamed = np.array([rows[np.ix_(names, names)] for names in order])
    three = (renamed, np.full(6, 1 / 6))
    for (P, weights), T in ((two_symbols(5), 5), (three, 3)):
        found = growth(P, weights, T)
        by_W, by_v = of_all_sequences(P, weights, T)
        k = P.shape[-1]
        expected = np.full((k, k), found.off_diagonal)
        np.fill_diagonal(expected, found.diagonal)
        assert_allclose(by_W, expected, rtol=1e-10)
        assert_allclose(by_v, found.D, rtol=1e-10, atol=1e-15)


def test_entropies_are_those_of_many_chains():
    P = MarkovChains(n=20000, length=1).transitions(Streams(2))
    entropies = -(P * np.log(P)).sum(-1)
    law = stationary(P)
    rates = (law * entropies).sum(1)
    assert rates.mean() == pytest.approx(entropy_of_rows(), abs=0.005)  # four standard errors
    assert rates.std() / np.sqrt(128) == pytest.approx(batch_error(128), rel=0.03)
