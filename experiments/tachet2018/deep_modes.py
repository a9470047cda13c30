"""Figures 4 and 8: logit and confidence for several depths and norms, networks of N weights in a
row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from dynamics_cli import kit

from .theory.deep_mode import deep_logit, even_start
from .trained import (
    ModeCurve,
    confidence,
    if_learnt,
    largest_error,
    layers,
    one_point,
    outputs,
    over_time,
    reached,
    sigmoidal,
    times,
)

CONFIG = "tachet2018/deep.yaml"
U0 = 0.05
"""Initial logit of every mode."""
LENGTHS = {2: 22000, 4: 8500, 8: 8500}
"""Updates at step 1e-3."""
LEVELS = (0.9, 0.99)
"""Confidences that are timed."""


def _wanted(depth: int) -> kit.Wanted:
    """Return the run of two modes, norms 1 and 2, of N = `depth` weights in a row, that start at
    the logit `U0`.
    """
    z = [(U0 / norm) ** (1.0 / depth) for norm in (1.0, 2.0)]
    change = [
        f"initialization.y=[[{z[0]!r}], [{2.0 * z[1]!r}]]",
        f"initialization.z=[[{z[0]!r}], [{z[1]!r}]]",
        f"optimizer.iterations={LENGTHS[depth]}",
    ]
    if depth == 2:
        network = ("architecture.kind=two_layer", "architecture.width=2")
        return kit.Wanted("tachet2018/two_classes.yaml", (*network, "loss.reduction=sum", *change))
    return kit.Wanted(CONFIG, (f"architecture.widths={[2] * (depth - 1)}", *change))


@dataclass(frozen=True)
class DeepCurve(ModeCurve):
    """One trained mode, K times, and Eq. 5; `y` and `y_theory` are the logit."""

    depth: int
    norm: float
    imbalance: float
    """Largest difference of the weights in the row, divided by the largest weight: they stay
    equal (Appendix B).
    """

    @property
    def reached(self) -> kit.Floats:
        """When the trained network reaches the confidences `LEVELS`, (2,)."""
        return np.array([kit.crossing(self.t, self.P, level) for level in LEVELS])


@dataclass(frozen=True)
class Evidence:
    """The trained modes, and where both depths take the same time.

    `even` (2,) are the initial logits, for norms 1 and 2, from which both depths take the same time
    to P = 0.99.
    """

    curves: list[DeepCurve]
    even: list[float]


def evidence(runs: kit.Runs) -> Evidence:
    """Compare all modes of the runs with Eq. 5."""
    curves = [_curve(run, label) for run in runs.values() for label in (1, -1)]
    depths = curves[0].depth, curves[-1].depth
    return Evidence(
        curves=curves, even=[even_start(1 - LEVELS[1], depths, norm) for norm in (1.0, 2.0)]
    )


def _curve(run: kit.Run, label: int) -> DeepCurve:
    x, norm, p = one_point(run, label)
    weights = layers(run)
    neuron = 0 if label == 1 else 1
    u = label * outputs(run, x[None])[:, 0]
    u_theory = deep_logit(times(run), float(u[0]), len(weights), norm, p=p)
    row = [weights[0][:, neuron] @ x / norm, *(w[:, neuron, neuron] for w in weights[1:-1])]
    row.append(np.abs(weights[-1][:, 0, neuron]))
    table = np.array(row)  # (N, K)
    imbalance = float((np.ptp(table, axis=0) / table.max(axis=0)).max())
    name = rf"$N={len(weights)}$, $\Vert x\Vert={norm:g}$"
    P = confidence(run, x, label)
    P_theory = np.asarray(expit(u_theory))
    return DeepCurve(name, times(run), u, u_theory, P, P_theory, len(weights), norm, imbalance)


def overtaking(shallow: DeepCurve, deep: DeepCurve) -> tuple[float, float]:
    """Return the time and confidence at which the deeper trained network passes the shallow one
    for good, or NaN.
    """
    lead = deep.P - np.interp(deep.t, shallow.t, shallow.P)
    since = slice(np.flatnonzero(lead < 0)[-1] if lead.min() < 0 else 0, None)
    time = kit.crossing(deep.t[since], lead[since], 0.0)
    return time, float(np.interp(time, deep.t, deep.P))


def _claims(e: Evidence, source: str) -> list[kit.Claim]:
    """Compare the curves with Eq. 5 and the statements of the paper on norms, and in `source` on
    depth.
    """
    pairs = list(zip(e.curves[::2], e.curves[1::2], strict=True))  # norms 1 and 2 of each depth
    shallow = pairs[0]
    deep = pairs[-1]
    N = shallow[0].depth
    M = deep[0].depth
    gains = [
        large.reached[1] / small.reached[1] for small, large in pairs
    ]  # equal logits at the start
    sooner = np.max([b.reached / a.reached for a, b in zip(shallow, deep, strict=True)], axis=0)
    exact = [2.0 ** (-2.0 / N), 2.0 ** (2.0 / M - 2.0 / N)]
    return [
        kit.claim(
            "overlay",
            "Trained deep diagonal networks follow Eq. 5 (largest "
            r"$|P_\mathrm{train} - P_\mathrm{theory}|$, both classes)",
            "Section 4, Eqs. 5, 25; limit of small steps",
            kit.at_most(1e-3),
            largest_error(e.curves),
        ),
        kit.claim(
            "sigmoidal",
            "A sigmoidal shape appears here too (trained curves of four that are convex, then "
            "concave)",
            source,
            kit.exactly(len(e.curves)),
            sum(sigmoidal(c.t, c.P) for c in e.curves),
        ),
        kit.claim(
            "equal-weights",
            "The weights in a row stay equal while they are trained (largest relative difference)",
            "Appendix B",
            kit.at_most(1e-8),
            if_learnt(reached(e.curves), max(curve.imbalance for curve in e.curves)),
        ),
        kit.claim(
            "larger-norm",
            r"Larger $\|x\|$ converge faster: the time to P = 0.99 is as $\|x\|^{-2/N}$ (norm 2 "
            f"over norm 1, N = {N})",
            "Section 4, Appendix B; Eq. 5",
            kit.near(exact[0], 1e-3),
            gains[0],
        ),
        kit.claim(
            "norm-fades",
            rf"The effect of $\|x\|$ shrinks as N grows (that ratio over the one for N = {M})",
            "Section 4, Appendix B; Eq. 5",
            kit.near(exact[1], 1e-3),
            gains[0] / gains[-1],
        ),
        kit.claim(
            "deeper",
            f"The deeper the network, the faster the learning (times to P = 0.99, N = {M} to N ="
            f" {N}, u0 = {U0:g}, the larger of both norms')",
            source,
            kit.less_than(1),
            sooner[1],
        ),
        kit.theory(
            "deeper-small",
            "The deeper the network, the faster from any initial logit (largest u0 below which N ="
            f" {M} takes longer to P = 0.99 than N = {N}, by Eq. 5; the larger of both norms')",
            source,
            kit.exactly(0),
            max(e.even),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return below which initial logit the deeper network is the slower one, and the ratio of
    the times to P = 0.9.
    """
    pairs = zip(e.curves[:2], e.curves[2:], strict=True)
    early = max(float(deep.reached[0] / shallow.reached[0]) for shallow, deep in pairs)
    ahead = [overtaking(a, b)[1] for a, b in zip(e.curves[:2], e.curves[2:], strict=True)]
    return {
        **{
            f"initial logit below which the deeper network takes longer to P = 0.99, norm {norm}": (
                u0
            )
            for norm, u0 in zip((1, 2), e.even, strict=True)
        },
        "time to P = 0.9 of the deeper network over the other's, the larger of both norms'": early,
        **{
            f"confidence at which the deeper network gets ahead, norm {norm}": P
            for norm, P in zip((1, 2), ahead, strict=True)
        },
    }


def draw(e: Evidence) -> kit.Drawing:
    end = min(float(curve.t[-1]) for curve in e.curves)
    ahead = [overtaking(*pair) for pair in zip(e.curves[:2], e.curves[2:], strict=True)]
    times, confidences = zip(*ahead, strict=True)
    return kit.charts(
        over_time("Logit", "logit $u(t)$", e.curves, "y", end, limits=(0, None)),
        over_time(
            "Confidence",
            "confidence $P_t$",
            e.curves,
            "P",
            end,
            kit.line(times, confidences, "deeper gets ahead", "theory x"),
            kit.level(1, look="muted 0.5"),
            limits=(0.5, 1.01),
        ),
    )


def _figure(number: int, source: str, depths: tuple[int, int]) -> kit.Figure:
    return kit.Figure(
        id=f"tachet2018-fig{number}",
        caption=(
            "Solutions of Eq. 5 (lines) and deep diagonal networks really trained (dots), initial"
            " logit 0.05; crosses: where the deeper network of the same norm gets ahead."
        ),
        configs={f"N = {depth}": _wanted(depth) for depth in depths},
        claims=lambda e: _claims(e, source),
        passes={
            "random_features": {
                "sigmoidal": (
                    "The other weights in a row still multiply, which is enough for such a curve."
                )
            }
        },
    )


FIGURES = kit.by_id(_figure(4, "Section 4", (2, 4)), _figure(8, "Section 4, Appendix B", (4, 8)))
