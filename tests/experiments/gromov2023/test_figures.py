"""The figures on runs that are really trained, and the analytic weights."""

from __future__ import annotations

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.gromov2023.theory.analytic import (
    analytic_weights,
    participation,
    phase_sums,
    strongest,
)
from dynamics_cli._bundled.experiments.gromov2023.theory.analytic import (
    outputs as sums,
)

from dynamics_cli.reproduction.catalogue import load_figure
from tests.experiments.falsify import Change, check_changes, check_complete
from tests.experiments.helpers import check_pure, drawing, evidence_of, titles, verdicts

FEW = ("dataset.train_fraction=0.3",)
RANDOM = ("dataset.random_labels=1.0",)
DECAY = "its decay keeps AdamW from fitting random labels"
# fmt: off
CHANGES = {
    "curves": [
        Change("few pairs", FEW, ("gd-learns", "gd-later", "momentum-learns", "momentum-later"),
               ("gradient descent", "momentum")),
        Change("very few pairs", ("dataset.train_fraction=0.2",), ("adamw-learns", "adamw-later"), ("AdamW",)),
        Change("nearly all pairs", ("dataset.train_fraction=0.95",), ("adamw-memorises",), ("AdamW",)),
        Change("a step of 1e-9", ("optimizer.lr=1e-9", "optimizer.iterations=20"),
               ("gd-memorises", "momentum-memorises"), ("gradient descent", "momentum"),
               "of 95 % of the pairs, too, descent learns the others later"),
    ],
    "ipr": [Change("random labels", RANDOM, ("gd-rises", "gd-periodic", "adamw-rises", "adamw-periodic"),
                   untrained=DECAY)],
    "phases": [Change("random labels", RANDOM, ("gd-frequency", "gd-phases", "adamw-frequency", "adamw-phases"),
                      untrained=DECAY)],
    "fraction": [
        Change("many pairs", ("dataset.train_fraction=0.7",), ("gd-few", "adamw-few"),
               ("gradient descent 0.3", "AdamW 0.2")),
        Change("fewer pairs", ("dataset.train_fraction=0.5",), ("gd-sooner", "adamw-sooner"),
               ("gradient descent 0.7", "AdamW 0.7")),
    ],
}
# fmt: on


@pytest.mark.long
@pytest.mark.parametrize("figure", CHANGES)
def test_claims_come_out_and_can_fail(figure: str) -> None:
    one = load_figure(f"gromov2023-{figure}")
    evidence = evidence_of(one)
    stated = verdicts(one.claims(evidence))
    assert {id for id, verdict in stated.items() if verdict != "reproduced"} == set()
    check_pure(one, evidence)
    check_changes(one.id, CHANGES[figure])
    check_complete(one.id, CHANGES[figure])


def test_a_run_that_is_much_too_short_gives_verdicts_and_a_picture() -> None:
    one = load_figure("gromov2023-ipr")
    short = ("optimizer.iterations=20", "optimizer.lr=0.05", "dataset.p=7", "architecture.outputs=7")
    evidence = evidence_of(one, short)
    assert set(verdicts(one.claims(evidence)).values()) >= {"not reproduced"}
    assert titles(drawing(one, evidence)) == [
        "(a) AdamW",
        "(b) The median neuron",
        "(c) Its spectrum",
        "(d) All neurons",
    ]


def test_analytic_weights_add() -> None:
    U, V, W = analytic_weights(11, 400, np.random.default_rng(0))
    # a sum over neurons, written out for one pair and one output
    n, m, q = 3, 9, 4
    expected = sum(W[q, k] * (U[k, n] + V[k, m]) ** 2 for k in range(400))
    f = sums(U, V, W)
    assert f[n, m, q] == pytest.approx(expected)
    np.testing.assert_array_equal(f.argmax(-1), np.add.outer(np.arange(11), np.arange(11)) % 11)
    same, total = phase_sums(U, V, W)
    assert same.all()
    np.testing.assert_allclose(total, 0, atol=1e-12)
    np.testing.assert_allclose(participation(U), 1)
    with pytest.raises(ValueError, match="odd"):
        analytic_weights(10, 4, np.random.default_rng(0))


def test_fourier_measures_of_waves_and_noise() -> None:
    t = 2 * np.pi * np.arange(31) / 31
    rows = np.stack([np.cos(3 * t + 0.7), np.cos(5 * t - 1.0) + np.cos(2 * t)])
    np.testing.assert_allclose(participation(rows), [1, 0.5])
    s, phase = strongest(rows[:1] + 9.0)
    assert (s[0], phase[0]) == (3, pytest.approx(0.7))
    noise = np.random.default_rng(0).standard_normal((4000, 31))
    assert participation(noise).mean() == pytest.approx(2 / 16, rel=0.1)
