"""Statements of the paper without a figure: Lemma 3.1, Corollary 3.3, A.4, A.7 and the rate of
the logit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expi, expit

from dynamics_cli import kit

from .theory.confidence_times import cross_entropy_time
from .theory.deep_mode import deep_logit
from .trained import (
    TRAINED,
    dots,
    if_learnt,
    layers,
    one_point,
    outputs,
    times,
)

TWO_CLASSES = "tachet2018/two_classes.yaml"
DELTAS = np.geomspace(1e-1, 1e-6, 60)
SHOWN = (1e-2, 1e-4, 1e-6)
"""Of the table of Corollary 3.3."""
DELTA = 1e-2
"""At which the trained networks of Corollary 3.3 are timed."""
SHARE = 0.3
"""Of class D_1, three points of ten."""
POINTS = (1, 4, 16)
"""Orthogonal points of a class (A.7)."""
U0 = 0.04
"""Initial logit of A.7 and of the rate of the logit."""
LEVEL = 0.9
"""Confidence that is timed for A.7."""
SHOWN_UNTIL = 8.0
"""Time that the panel of A.7 shows."""
LOG_TIMES = np.linspace(2.0, 300.0, 150)
"""Decimal logarithms of the times at which the logit is compared with log t."""


def unequal() -> kit.Wanted:
    """Return the run of two classes of unequal share, norms 1 and 2, logits 0.04 and 0.08 at the
    start.
    """
    x = [[1.0, 0.0]] * 3 + [[0.0, 2.0]] * 7
    changes = (
        f"dataset.x={x}",
        f"dataset.y={[1] * 3 + [-1] * 7}",
        "optimizer.lr=5.0e-3",
        "optimizer.iterations=20000",
    )
    return kit.Wanted(TWO_CLASSES, changes)


def three() -> kit.Wanted:
    """Return the run of three neurons of D_1, all balanced, and one of D_2."""
    changes = (
        "architecture.width=4",
        "initialization.y=[[0.1, 0.2, 0.3], [0.4]]",
        "initialization.z=[[0.1, 0.2, 0.3], [0.2]]",
    )
    return kit.Wanted(TWO_CLASSES, changes)


def orthogonal(m: int) -> kit.Wanted:
    """Return the run of m orthogonal unit vectors of one class, with `m y^2 = z^2`, summed over
    the batch.
    """
    y = float(np.sqrt(U0 / np.sqrt(m)))
    changes = (
        f"dataset.x={np.eye(m).tolist()}",
        f"dataset.y={[1] * m}",
        "architecture.width=1",
        f"initialization.y=[[{y!r}], []]",
        f"initialization.z=[[{y * float(np.sqrt(m))!r}], []]",
        "loss.reduction=sum",
        "optimizer.iterations=8500",
        "record.snapshots.interval=10",
    )
    return kit.Wanted(TWO_CLASSES, changes)


@dataclass(frozen=True)
class Evidence:
    """The networks of all statements, beside closed forms.

    `ratios` are those of Corollary 3.3 for `DELTAS` by A.5, `trained_ratio` the trained one for
    `DELTA`, `rates` the logit over log t at `LOG_TIMES`.
    """

    independent: Independent
    limit: float
    ratios: kit.Floats
    shown: kit.Floats
    trained_ratio: float
    three: Logit
    by_eq_14: kit.Floats
    of_m: dict[int, Logit]
    reached: dict[int, float]
    rates: kit.Floats


def evidence(runs: kit.Runs) -> Evidence:
    """Measure the networks of all statements, and evaluate Eq. 2."""
    modes = [_neuron(runs["unequal"], label) for label in (1, -1)]
    (norm_1, p, u_1), (norm_2, q, u_2) = ((mode.norm, mode.p, mode.u[0]) for mode in modes)
    first, second = (kit.crossing(mode.t, expit(mode.u), 1 - DELTA) for mode in modes)
    times_1, times_2 = (
        cross_entropy_time(np.append(DELTAS, SHOWN), u, norm, p=share)
        for u, norm, share in ((u_1, norm_1, p), (u_2, norm_2, q))
    )
    ratios = times_2 / times_1
    three = _neuron(runs["three"], 1)
    of_m = {m: _class_of(runs[f"m = {m}"]) for m in POINTS}
    return Evidence(
        independent=independent(runs["independent"]),
        limit=norm_1 / norm_2 * p / q,
        ratios=ratios[: len(DELTAS)],
        shown=ratios[len(DELTAS) :],
        trained_ratio=second / first,
        three=three,
        by_eq_14=deep_logit(three.t, float(three.u[0]), 2, three.norm, p=three.p),
        of_m=of_m,
        reached={m: kit.crossing(one.t, expit(one.u), LEVEL) for m, one in of_m.items()},
        rates=np.array([logit_after(power) / (power * np.log(10)) for power in LOG_TIMES]),
    )


@dataclass(frozen=True)
class Independent:
    """Several neurons per class over all K states.

    `violations` counts the neurons, points and states with an activity that Lemma 3.1 rules out,
    and the output weights that do not have the sign of their class; `active` (K, h) is the largest
    preactivation of each neuron on the other class, `own` (K, h) the least on its own; `least` is
    the least confidence in the end.
    """

    steps: kit.Ints
    own: kit.Floats
    other: kit.Floats
    violations: int
    least: float
    signs: kit.Floats


def independent(run: kit.Run) -> Independent:
    """Follow a run of several neurons per class over all its K states."""
    data = run.dataset()
    W, a = layers(run)
    z = W @ data.x.T  # (K, h, n)
    signs = np.sign(a[0, 0])
    right = signs[:, None] * data.y > 0  # (h, n)
    wrong = np.where(right, z <= 0, z > 0)
    end = expit(data.y * outputs(run, data.x)[-1])
    return Independent(
        steps=run.snapshot_iterations,
        own=np.where(right, z, np.inf).min(axis=2),
        other=np.where(right, -np.inf, z).max(axis=2),
        violations=int(wrong.sum()) + int((np.sign(a[:, 0]) != signs).sum()),
        least=float(end.min()),
        signs=signs,
    )


@dataclass(frozen=True)
class Logit:
    """The logit of a class over time, (K,), its norm and its rate."""

    t: kit.Floats
    u: kit.Floats
    norm: float = 1.0
    p: float = 1.0


def _neuron(run: kit.Run, label: int) -> Logit:
    x, norm, p = one_point(run, label)
    return Logit(t=times(run), u=label * outputs(run, x[None])[:, 0], norm=norm, p=p)


def _class_of(run: kit.Run) -> Logit:
    """Return the logit of a class of orthogonal points over time: the least of them."""
    return Logit(times(run), outputs(run, run.dataset().x).min(axis=1))


def logit_after(power: float) -> float:
    """Return the logit at the time `10^power` by Eq. 2 with norm 1, solved in the logarithm of
    t: no power overflows.
    """

    def late(u: float) -> float:
        return float(np.log(np.log(u / U0) + expi(u) - expi(U0)) - np.log(2.0)) - power * float(
            np.log(10)
        )

    return float(brentq(late, U0 * (1 + 1e-9), 705.0))


def claims(e: Evidence) -> list[kit.Claim]:
    three_reached = float(expit(e.three.u).max())
    gains = {m: e.reached[1] / e.reached[m] / np.sqrt(m) for m in POINTS[1:]}
    deviations = np.abs(e.shown / e.limit - 1)
    return [
        kit.claim(
            "independent",
            "Under H1-H3 neurons stay active on their own class alone and output weights keep"
            f" their signs (violations in {e.independent.steps[-1]} steps of one sample, five"
            " neurons, seven points)",
            "Lemma 3.1",
            kit.exactly(0),
            if_learnt(e.independent.least, e.independent.violations),
        ),
        kit.claim(
            "corollary",
            r"$t_2^*/t_1^* \approx (\|x_1\|/\|x_2\|)\, p/(1-p)$ (trained, p = 0.3, norms 1 and 2,"
            r" $\delta$ = 0.01)",
            "Corollary 3.3",
            kit.around(e.limit),
            e.trained_ratio,
        ),
        kit.claim(
            "corollary-exact",
            r"For $u_0 < |v_0|$ the ratio has the factor $1 - t_v/t^*$ (trained ratio over that of"
            r" A.5)",
            "A.5; limit of small steps",
            kit.near(1, 5e-3),
            e.trained_ratio / e.shown[0],
        ),
        kit.theory(
            "corollary-limit",
            r"The higher the required confidence, the nearer the ratio is (its deviation for"
            r" $\delta$ = 1e-6 over that for "
            "0.01, by A.5)",
            "A.5",
            kit.less_than(1),
            deviations[-1] / deviations[0],
        ),
        kit.claim(
            "several-neurons",
            "With three balanced neurons the logit follows the equation of one (largest difference"
            " of confidences)",
            "A.4; limit of small steps",
            kit.at_most(1e-3),
            if_learnt(three_reached, float(np.abs(expit(e.three.u) - expit(e.by_eq_14)).max())),
        ),
        *[
            kit.claim(
                f"orthogonal-{m}",
                rf"A class of {m} orthogonal points, summed, learns $\sqrt{{m}}$ times as fast as"
                r" one point (ratio of the "
                r"times to P = 0.9, over $\sqrt{m}$)",
                "A.7",
                kit.near(1, 1e-3),
                gain,
            )
            for m, gain in gains.items()
        ],
        kit.theory(
            "log-t",
            r"The logit grows as $\log t$ (their ratio at $t = 10^{300}$, by Eq. 2)",
            "Section 5",
            kit.around(1),
            e.rates[-1],
        ),
        kit.theory(
            "slower",
            r"Convergence is slower than $2 \log t$ (largest ratio of the logit and $\log t$ from t"
            r" = 100 on)",
            "Section 3.2, Eq. 19",
            kit.less_than(2),
            e.rates.max(),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return ratios, logits and rates that the notes quote."""
    rates = dict(zip(LOG_TIMES, e.rates, strict=True))
    return {
        "limit of the ratio of Corollary 3.3": e.limit,
        **{
            f"ratio for delta = {delta:g}, by A.5": ratio
            for delta, ratio in zip(SHOWN, e.shown, strict=True)
        },
        "trained ratio for delta = 0.01": e.trained_ratio,
        "last logit of three neurons, trained": e.three.u[-1],
        "the same by Eq. 14": e.by_eq_14[-1],
        "logit over log t at t = 1e2": rates[2.0],
        "logit over log t at t = 1e12": logit_after(12.0) / (12.0 * np.log(10)),
        "logit over log t at t = 1e300": e.rates[-1],
    }


def draw(e: Evidence) -> kit.Drawing:
    modes = e.independent
    logits = []
    for k, (m, one) in enumerate(e.of_m.items()):
        name = f"{m} points" if m > 1 else "1 point"
        at = np.searchsorted(one.t, np.linspace(0.5, SHOWN_UNTIL, 9))
        theory = deep_logit(one.t, U0, 2, np.sqrt(m))
        logits += [kit.line(one.t, theory, name, f"C{k} 1.1"), dots(one.t, one.u, at, f"C{k}")]
    figure = kit.charts(
        kit.chart(
            "Independent modes",
            "preactivation",
            kit.line(modes.steps, modes.own, "own class, least", "measured 0.9"),
            kit.line(modes.steps, modes.other, "other class, largest", "C1 0.9"),
            kit.level(0, look="theory 0.6"),
            xlabel="step",
        ),
        kit.chart(
            "Ratio of times",
            r"$t_2^*/t_1^*$",
            kit.line(DELTAS, e.ratios, look="measured 1.2"),
            kit.line([DELTA], [e.trained_ratio], look="measured hollow"),
            kit.level(e.limit),
            xlabel=r"$\delta$",
            log="x",
        ),
        kit.chart(
            "Orthogonal points",
            "logit",
            *logits,
            TRAINED,
            xlabel="time $t$",
            limits_x=(0, SHOWN_UNTIL),
            limits=(None, 7.5),
        ),
        kit.chart(
            "Rate of the logit",
            r"$u(t)\,/\,\log t$",
            kit.line(LOG_TIMES, e.rates, look="measured 1.2"),
            kit.level(1),
            xlabel=r"$\log_{10} t$",
        ),
        legend="below",
    )
    figure.axes[1].invert_xaxis()
    return figure


FIGURE = kit.Figure(
    id="tachet2018-statements",
    caption=(
        "(a) Preactivations of five neurons along stochastic gradient descent: the least on the"
        " class of a neuron and the largest on the other one, whose signs never change (Lemma 3.1)."
        " (b) Ratio of the times of both classes to the confidence 1 - delta by A.5, trained (dot),"
        " and Corollary 3.3 (dashed). (c) Logit of a class of orthogonal points over time by A.7"
        " and of trained networks (dots). (d) The logit of Eq. 2 over log t."
    ),
    configs={
        "independent": "tachet2018/independent.yaml",
        "unequal": unequal(),
        "three": three(),
        **{f"m = {m}": orthogonal(m) for m in POINTS},
    },
)
