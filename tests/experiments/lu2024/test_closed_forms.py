"""Closed forms against printed numbers and each other, and the exact error against sequences."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.lu2024.errors import NOTEBOOK
from dynamics_cli._bundled.experiments.lu2024.theory.linear_attention import (
    bayes_gap,
    expected_error,
    new_task_error,
    resolvent,
    ridge_error,
    same_task_error,
)

from dynamics_cli.datasets.in_context import InContextRegression
from dynamics_cli.kinds import Streams


def test_closed_forms_are_the_printed_ones():
    assert new_task_error(0.5, 0.1, 0.5, 0.1) == pytest.approx(NOTEBOOK, abs=1e-14)
    for kappa, gap in ((0.2, 0.8253), (1.0, 0.1636), (4.0, 0.00923)):  # the paper's notes
        measured = new_task_error(10, kappa, 10, 0.01) - same_task_error(10, kappa, 10, 0.01)
        assert measured == pytest.approx(gap, rel=1e-3)


@pytest.mark.parametrize("kappa", [0.5, 1e9])
@pytest.mark.parametrize("tau", [0.4, 2.5])
def test_a_small_ridge_is_none(kappa, tau):
    assert ridge_error(3, kappa, tau, 0.1, 1e-11) == pytest.approx(
        new_task_error(3, kappa, tau, 0.1), rel=1e-7
    )


def test_few_sequences_of_many_tasks_are_like_new_ones():
    # with a task for each sequence of many, the tasks of training are any tasks
    assert same_task_error(3, 1e6, 0.5, 0.1) == pytest.approx(
        new_task_error(3, 1e6, 0.5, 0.1), rel=1e-4
    )


def test_resolvent_is_that_of_many_tasks():
    d = 400
    W = np.random.default_rng(0).standard_normal((200, d))
    eigenvalues = np.linalg.eigvalsh(W.T @ W / 200)
    M, slope = resolvent(0.3, 0.5)
    assert np.mean(1 / (eigenvalues + 0.3)) == pytest.approx(M, rel=0.01)
    assert -np.mean(1 / (eigenvalues + 0.3) ** 2) == pytest.approx(slope, rel=0.01)
    assert resolvent(0.3, np.inf) == pytest.approx((1 / 1.3, -1 / 1.3**2))


@pytest.mark.parametrize("same", [True, False])
def test_error_is_that_of_many_sequences(same):
    d = 3
    rho = 0.25
    data = InContextRegression(
        n=200_000,
        context=4,
        eigenvalues=[1 / d] * d,
        features="averaged",
        noise=rho**0.5,
        tasks=2 if same else None,
        sphere=True,
    )
    samples = data.samples(Streams(1))
    Gamma = np.random.default_rng(2).standard_normal((d, d + 1)) / 2
    mean = np.zeros(d)
    moment = np.eye(d)
    if same:
        W = data.task_vectors(Streams(1))
        assert np.linalg.norm(W, axis=1) == pytest.approx(d**0.5)
        mean = W.mean(0)
        moment = W.T @ W / 2
    squares = (samples.x @ Gamma.ravel() - samples.y) ** 2
    error = expected_error(Gamma, 4, rho, mean, moment)
    assert error == pytest.approx(squares.mean(), abs=4 * squares.std() / len(squares) ** 0.5)


def test_posterior_mean_knows_its_tasks():
    # with a long context and little noise it finds a task of training, and takes a new one for
    # a task of training: E |w - w_j|^2 / d = 2 for a single one
    rng = np.random.default_rng(3)
    assert bayes_gap(30, 60, 1, 0.01, 400, rng) == pytest.approx(2, rel=0.35)
    assert bayes_gap(2, 5, 2000, 0.5, 400, rng) == pytest.approx(0, abs=0.15)
