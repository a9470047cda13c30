"""Normalised and smoothed margin of a run (Eqs. 5 and 6), and a training set as Lemma 6.1 wants it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from dynamics_cli.datasets.samples import Samples
from dynamics_cli.measures.arrays import Bools, Floats, Ints
from dynamics_cli.measures.margins import normalised_margin, smoothed_margin
from dynamics_cli.measures.two_layer import outputs
from dynamics_cli.plotting.layout import place_legend
from dynamics_cli.plotting.style import PALETTE, SERIES
from dynamics_cli.plotting.time_axis import draw_curve, set_time_axis, set_value_axis
from dynamics_cli.reproduction.claims import Claim, around, at_most, claim, exactly, finding, more_than
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.runs import Run
from dynamics_cli.theory.agreement import (
    Directions,
    largest_margin,
    margin_of_assumption_3,
    perfect_agreement_directions,
    wrongly_classifiable,
)

from .curves import DASHED
from .fig8 import par_shares
from .trajectory import Groups, joint_cosine, read_groups


@dataclass(frozen=True)
class Margins:
    """Both margins at the recorded states (K,)."""

    iterations: Ints
    normalised: Floats
    smoothed: Floats
    late: Bools
    """From where on Assumption 6.1 holds: the summed loss has been below log 2."""
    largest: float
    """The normalised margin of the convex program's solution."""
    needed: float
    """The smoothed margin that assumption 3 of Theorem 6.2 asks for."""

    @property
    def largest_fall(self) -> float:
        """Largest fall of the smoothed margin from one late state to the next, relative to it; 0 if it never falls."""
        values = self.smoothed[self.late]
        return float(np.max(-np.diff(values) / np.abs(values[:-1]), initial=0.0)) if len(values) else float("nan")

    @property
    def reached(self) -> float:
        """The largest smoothed margin over the one that assumption 3 asks for: it holds from 1 on."""
        return float(self.smoothed.max() / self.needed)


def margins(groups: Groups, x: Floats, y: Floats, predicted: Directions) -> Margins:
    """Return both margins at every recorded state of a run, with what theory says of them."""
    k = groups.W.shape[1]
    H = np.concatenate([groups.W, groups.U], axis=1)  # (K, m, d)
    a = groups.v * np.concatenate([np.ones(k), -np.ones(groups.U.shape[1])])
    h = outputs(x, H, np.broadcast_to(a, H.shape[:2]), groups.alpha)  # (K, n)
    loss = np.logaddexp(0.0, -y * h).sum(axis=-1)
    norm = np.sqrt(np.sum(H**2, axis=(-2, -1)))
    return Margins(
        iterations=groups.iterations,
        normalised=normalised_margin(h, y, norm),
        smoothed=smoothed_margin(loss, norm),
        late=np.logical_or.accumulate(loss < np.log(2)),
        largest=largest_margin(predicted, groups.v, k),
        needed=margin_of_assumption_3(x, groups.alpha, groups.v, k),
    )


@dataclass(frozen=True)
class MarginEvidence:
    """What Theorem 6.2 and Lemma 6.1 speak of."""

    sgd: Margins
    limit: Margins
    """In rescaled time."""
    points: int
    exposed: int
    """Training points that a vector can get wrong which classifies the other class right: 0 under assumption 4."""
    symmetric_exposed: int
    """The same number for a symmetric training set."""
    symmetric_share: float
    """The smaller share of neurons w, u in the PAR after training on it."""
    symmetric_cosine: float
    """Joint cosine of the directions learned on it with the predicted ones."""


def margin_evidence(data: Samples, sgd: Groups, limit: Groups, predicted: Directions, symmetric: Run) -> MarginEvidence:
    """Measure the margins of both runs on `data`, and what the run on the symmetric training set came to."""
    other, groups = symmetric.dataset(), read_groups(symmetric)
    shares = par_shares(groups, other.x, other.y)
    return MarginEvidence(
        sgd=margins(sgd, data.x, data.y, predicted),
        limit=margins(limit, data.x, data.y, predicted),
        points=data.n,
        exposed=int(wrongly_classifiable(data.x, data.y).sum()),
        symmetric_exposed=int(wrongly_classifiable(other.x, other.y).sum()),
        symmetric_share=float(min(share[-1] for share in shares)),
        symmetric_cosine=joint_cosine(groups, -1, perfect_agreement_directions(other.x, other.y, groups.alpha)),
    )


def symmetric_run(config: str) -> Wanted:
    """Return the run of a config on 25 positive points of its first Gaussian and their mirror images."""
    positive = np.round(np.random.default_rng(0).normal((2.0, 0.0), 0.5, (25, 2)), 3)
    x = json.dumps(np.concatenate([positive, -positive]).tolist())
    return Wanted(config, ("dataset.kind=points", f"dataset.x={x}", f"dataset.y={[1.0] * 25 + [-1.0] * 25}"))


def margin_claims(found: MarginEvidence) -> list[Claim]:
    """Compare margins and the symmetric training set with Theorem 6.2, its proof, and Lemma 6.1."""
    limit, sgd = found.limit, found.sgd
    return [
        claim(
            "margin-grows",
            "The smoothed margin never falls once the summed loss is below log 2 (largest relative fall between "
            "recorded states, rescaled time; rounding allowed)",
            "Eq. 6, Appendix G.1 after Lyu and Li (2020), Theorem A.7",
            expected=at_most(1e-12),
            measured=limit.largest_fall,
        ),
        claim(
            "margin-largest",
            "The normalised margin tends to the largest of the PAR, v sqrt(k) / ||(w, u)|| (share, rescaled time)",
            "Eqs. 5 and 8, Theorem 6.2",
            expected=around(1),
            measured=float(limit.normalised[-1]) / limit.largest,
        ),
        claim(
            "lemma-6.1",
            "On a symmetric training set no vector that is right on one class is wrong on a point of the other (points "
            "for which there is one, of 50)",
            "Lemma 6.1",
            expected=exactly(0),
            measured=found.symmetric_exposed,
        ),
        claim(
            "symmetric-par",
            "A network trained on it ends in the PAR (smaller share of neurons)",
            "Lemma 6.1, Theorem 6.2",
            expected=exactly(1),
            measured=found.symmetric_share,
        ),
        claim(
            "symmetric-directions",
            "with the directions of the convex program (joint cosine, rescaled time)",
            "Theorem 6.2",
            expected=more_than(0.999),
            measured=found.symmetric_cosine,
        ),
        finding(
            "margin-sgd", "Largest relative fall of the smoothed margin, plain SGD", "Eq. 6", measured=sgd.largest_fall
        ),
        finding(
            "assumption-3",
            "Assumption 3 holds where this is at least 1: largest smoothed margin over alpha v sqrt(k) max ||x_i||",
            "Theorem 6.2, Appendix G.1",
            measured=limit.reached,
        ),
        finding(
            "assumption-4",
            f"Assumption 4 asks for 0: points of these {found.points}, symmetric in distribution only, that a vector "
            "can get wrong which is right on the other class",
            "Theorem 6.2, Lemma 6.1",
            measured=found.exposed,
        ),
    ]


def draw_margins(axes: Axes, found: Margins) -> None:
    """Draw both margins from where Assumption 6.1 holds, with the largest one and the one of assumption 3."""
    steps, late = found.iterations[found.late], found.late
    if not late.any():
        return
    shown = np.concatenate([found.normalised[late], found.smoothed[late], [found.largest]])
    set_value_axis(axes, shown, "margin", log=False)
    curves = ((found.normalised, "normalised (Eq. 5)", "-"), (found.smoothed, "smoothed (Eq. 6)", DASHED))
    lines = [
        draw_curve(axes, steps, values[late], log_time=True, color=color, ls=look, label=label)
        for (values, label, look), color in zip(curves, SERIES, strict=False)
    ]
    for value, label, color, look in (
        (found.largest, "largest (Eq. 8)", PALETTE.highlight, (0, (3, 2))),
        (found.needed, "assumption 3", PALETTE.muted, (0, (1, 1.5))),
    ):
        lines.append(axes.axhline(value, color=color, ls=look, lw=1.2, label=label))
    set_time_axis(axes, steps, "log", "step")
    place_legend(axes, lines, "inside", columns=1)
