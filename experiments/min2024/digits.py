"""Figures 5, 10 and 11: two digits of MNIST. What is measured in a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli.datasets.streams import Streams
from dynamics_cli.measures.alignment_history import AlignmentHistory, alignment_history
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.correlation import Correlation, centres, correlation
from dynamics_cli.measures.neurons import cosines
from dynamics_cli.measures.regions import DEAD, MINUS, PLUS, regions
from dynamics_cli.reproduction.figure import Runs

from .shared import States, first_at, read_states, slope

SHOWN = 120
"""Images of each digit in the heat map, evenly spread over all."""


@dataclass(frozen=True)
class Pictures:
    """Vectors of 784 pixels, each (d,)."""

    x_plus: Floats
    """`x_+ / |I_+|`, and so on."""
    x_minus: Floats
    w_plus: Floats
    """The mean neuron of V_+ at the end, scaled to the norm of `x_plus`."""
    w_minus: Floats
    mean: Floats
    """The mean image that was subtracted."""


@dataclass(frozen=True)
class Evidence:
    """Everything that claims and drawing need."""

    n: int
    products: Floats
    """(2 SHOWN, 2 SHOWN) `<x_i, x_j>`, positive label first."""
    data: Correlation
    centre_cosine: float
    """cos(x_+, x_-)."""
    iterations: Ints
    history: AlignmentHistory
    loss_iterations: Ints
    losses: Floats
    falls: float
    """First iteration with a loss below 0.9."""
    slope: float
    """Power of t with which the loss falls over the last half of training."""
    peak: float
    """Largest over time of the smaller of the two mean cosines."""
    pictures: Pictures
    neuron_cosines: tuple[float, float]
    """Of the mean neurons with x_+ and x_- at the end."""
    placed: float
    """Share of V_+ in S_+ or S_dead and of V_- in S_- or S_dead, where the alignment is best."""

    def cosine_at(self, iteration: int) -> float:
        """Return the smaller of the two mean cosines at the state nearest to an iteration."""
        k = int(np.argmin(np.abs(self.iterations - iteration)))
        return float(min(self.history.plus.mean[k], self.history.minus.mean[k]))

    def loss_at(self, iteration: int) -> float:
        """Return the loss nearest to an iteration."""
        return float(self.losses[np.argmin(np.abs(self.loss_iterations - iteration))])


def evidence(runs: Runs) -> Evidence:
    """Measure a run on two digits."""
    run = runs["digits"]
    states = read_states(run)
    x_plus, x_minus = centres(states.x, states.y)
    history = alignment_history(states.W, states.v, x_plus, x_minus)
    both = np.fmin(history.plus.mean, history.minus.mean)
    raw = run.config.dataset.model_copy(update={"center": False}).load(Streams(run.config.seed))
    pictures = _pictures(states, raw.x[:, : states.x.shape[1]].mean(axis=0))
    return Evidence(
        n=len(states.x),
        products=_products(states),
        data=correlation(states.x, states.y),
        centre_cosine=float(cosines(x_plus[None], x_minus)[0]),
        iterations=states.iterations,
        history=history,
        loss_iterations=states.loss_iterations,
        losses=states.losses,
        falls=first_at(states.loss_iterations, states.losses < 0.9),
        slope=slope(states.loss_iterations, states.losses, first=states.loss_iterations[-1] / 2),
        peak=float(np.nanmax(both)),
        pictures=pictures,
        neuron_cosines=(
            float(cosines(pictures.w_plus[None], x_plus)[0]),
            float(cosines(pictures.w_minus[None], x_minus)[0]),
        ),
        placed=_placed(states, int(np.nanargmax(both))),
    )


def _products(states: States) -> Floats:
    """Return the inner products of some images of either label, the positive ones first."""
    rows = []
    for members in (np.flatnonzero(states.y > 0), np.flatnonzero(states.y < 0)):
        rows.append(members[np.linspace(0, len(members) - 1, min(SHOWN, len(members))).astype(int)])
    x = states.x[np.concatenate(rows)]
    return np.asarray(x @ x.T)


def _pictures(states: States, mean: Floats) -> Pictures:
    W, v = np.asarray(states.W[-1], dtype=np.float64), np.asarray(states.v[-1])
    centre = [states.x[states.y > 0].mean(axis=0), states.x[states.y < 0].mean(axis=0)]
    neurons = []
    for target, members in zip(centre, (v > 0, v < 0), strict=True):
        average = W[members].mean(axis=0) if members.any() else np.zeros(W.shape[1])
        length = float(np.linalg.norm(average))
        neurons.append(average * (np.linalg.norm(target) / length if length > 0 else 0.0))
    return Pictures(centre[0], centre[1], neurons[0], neurons[1], mean)


def _placed(states: States, k: int) -> float:
    """Return the share of neurons in the region of their sign, or dead, at state k."""
    found = regions(states.x, states.y, np.asarray(states.W[k]))
    v = np.asarray(states.v[k])
    right = np.where(v > 0, found == PLUS, found == MINUS) | (found == DEAD)
    return float(np.mean(right))
