"""Figures 6 and 10 and Table 1: gradient starvation, a frequent and a rare feature trained,
integrated and bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynamics_cli import kit

from .theory.confidence_times import required_logit
from .theory.shared_neuron import hyperboloid
from .theory.starvation import Neuron, simple_bound, starvation_path, stopping_points, theorem_d2
from .trained import LEARNT, TRAINED, confidence, dots, layers, times

LAMBDAS = (0.5, 0.2, 0.1, 0.01)
"""Of Table 1 (printed); one of 1 / lambda points of the class has both features."""
DELTAS = np.concatenate([np.linspace(0.47, 0.02, 120), np.geomspace(0.02, 1e-4, 60)[1:]])
DRAWS = 1000
"""Random cases of the bounds."""
ACTIVE = "Each neuron is active on its feature all along, where a ReLU is linear."
Kind = Literal["positive", "strong", "negative"]


def configs(*, fair: bool) -> dict[str, kit.Wanted]:
    """Return a run per lambda.

    All start at alpha0 = z0 = 0.1, fair ones at the same beta0, the others at `beta0 = lambda
    alpha0`.
    """
    return {f"lambda = {value:g}": wanted(value, fair) for value in LAMBDAS}


def wanted(lambda_: float, fair: bool, *extra: str) -> kit.Wanted:
    """Return the run of one lambda with the changes `extra`."""
    n = round(1 / lambda_)
    beta = 0.1 if fair else 0.1 * lambda_
    x = [[1, 1], *[[1, 0]] * (n - 1)]
    changes = [
        f"dataset.x={x}",
        f"dataset.y={[1] * n}",
        f"initialization.hidden_weight=[[0.1, {beta!r}]]",
    ]
    if n == 100:
        changes += [
            "optimizer.lr=4.0e-3",
            "optimizer.iterations=20000",
            "record.snapshots.interval=20",
        ]
    return kit.Wanted("tachet2018/starvation.yaml", (*changes, *extra))


@dataclass(frozen=True)
class Evidence:
    """All runs, the bounds that are drawn, and random cases.

    `trained` is by the role of the run, `fine` the networks of all lambdas, in the order of
    `LAMBDAS`. `bounds` (lambdas, D) by name are drawn beside them, `cases` are by kind.
    """

    trained: dict[str, Starved]
    fine: list[Starved]
    bounds: Mapping[str, kit.Floats]
    cases: dict[Kind, Cases]


def evidence(runs: kit.Runs, bounds: Mapping[str, kit.Floats], *kinds: Kind) -> Evidence:
    """Compare all runs with Eq. 8, and draw random cases of these kinds."""
    trained = {role: starve(run) for role, run in runs.items()}
    fine = [measured for role, measured in trained.items() if role.startswith("lambda")]
    cases = {kind: random_cases(kind) for kind in kinds}
    return Evidence(trained, fine, bounds, cases)


@dataclass(frozen=True)
class Starved:
    """A trained network beside Eq. 8.

    `start` is alpha0, beta0, z0; `frequent` and `rare` (K,) are trained confidences on (x1, 0) and
    (0, x2), `error` is the largest difference of either from Eq. 8, `z` (K,) the trained output
    weight, `drift` the largest departure of the ODE from its invariant, `truth` (D,) the confidence
    on (0, x2) at t* for `DELTAS`.
    """

    lambda_: float
    start: kit.Floats
    frequent: kit.Floats
    rare: kit.Floats
    z: kit.Floats
    error: float
    drift: float
    truth: kit.Floats


def starve(run: kit.Run) -> Starved:
    """Compare a trained network, K times, with Eq. 8."""
    x = run.dataset().x
    lambda_ = float(np.mean(x[:, 1] != 0))
    W, a = layers(run)
    start = np.array([*W[0, 0], a[0, 0, 0]])
    path = starvation_path(times(run), start, lambda_)
    frequent, rare = (confidence(run, np.array(point), 1) for point in ([1.0, 0.0], [0.0, 1.0]))
    invariant = hyperboloid(path.alpha, path.beta, path.z)
    return Starved(
        lambda_,
        start,
        frequent,
        rare,
        z=a[:, 0, 0],
        error=float(max(np.abs(frequent - path.frequent).max(), np.abs(rare - path.rare).max())),
        drift=float(np.abs(invariant - invariant[0]).max()),
        truth=stopping_points(DELTAS, start, lambda_).rare,
    )


@dataclass(frozen=True)
class Cases:
    """Random starts, and the neuron when training stops."""

    lambda_: kit.Floats
    delta: kit.Floats
    start: tuple[kit.Floats, kit.Floats, kit.Floats]
    stop: Neuron


def random_cases(kind: Kind) -> Cases:
    """Draw `DRAWS` cases: beta0 > 0; with `alpha0 >= beta0 / lambda > 0` (Theorem 6.1); with `0
    > beta0 > -alpha0`.
    """
    rng = np.random.default_rng(2018)
    lambda_ = rng.uniform(0.005, 0.95, DRAWS)
    delta = 10 ** rng.uniform(-5, -1.3, DRAWS)
    alpha0 = 10 ** rng.uniform(-3, -0.2, DRAWS)
    z0 = 10 ** rng.uniform(-3, -0.2, DRAWS)
    beta0 = 10 ** rng.uniform(-3, -0.2, DRAWS)
    if kind != "positive":
        beta0 = alpha0 * (lambda_ if kind == "strong" else -1.0) * rng.uniform(0, 1, DRAWS)
    start = alpha0, beta0, z0
    return Cases(lambda_, delta, start, stop=stopping_points(delta, start, lambda_))


def claims_of_both(e: Evidence) -> list[kit.Claim]:
    """Compare the trained networks with Eq. 8."""
    return [
        kit.claim(
            "overlay",
            r"Trained networks follow Eq. 8 (largest difference of both confidences, all"
            r" $\lambda$)",
            "Section 6, Eq. 8; limit of small steps",
            kit.at_most(1e-3),
            worst(e, lambda run: run.error),
        ),
        kit.theory(
            "invariant",
            r"$\alpha^2 + \beta^2 - z^2$ is conserved (largest drift)",
            "Eq. 8",
            kit.at_most(1e-8),
            max(run.drift for run in e.fine),
        ),
    ]


def worst(e: Evidence, measure: Callable[[Starved], kit.Floats | float]) -> float:
    """Return the largest `measure`, one number or (K,), of trained networks from the confidence
    `LEARNT` in x1 on.

    NaN unless every network gets there: one that stays where it starts follows every theory and
    meets every bound.
    """
    late = [
        np.broadcast_to(measure(run), run.frequent.shape)[run.frequent >= LEARNT] for run in e.fine
    ]
    return float(max(part.max(initial=-np.inf) for part in late)) if all(map(len, late)) else np.nan


def draw(e: Evidence) -> kit.Drawing:
    looks = ("dashed 1.2", "dotted 1.4")
    lines = [
        kit.entry("Eq. 8", "theory"),
        *(kit.entry(name, f"theory {look}") for name, look in zip(e.bounds, looks, strict=False)),
        TRAINED,
    ]
    for k, (run, *values) in enumerate(zip(e.fine, *e.bounds.values(), strict=False)):
        at = np.searchsorted(run.frequent, np.arange(0.56 + 0.015 * k, 0.99, 0.08))
        lines += [
            *(
                kit.line(1 - DELTAS, y, "", f"C{k} {look}")
                for y, look in zip(values, looks, strict=False)
            ),
            kit.line(1 - DELTAS, run.truth, rf"$\lambda={run.lambda_:g}$", f"C{k}"),
            dots(run.frequent, run.rare, at, f"C{k}"),
        ]
    return kit.charts(
        kit.chart(
            "",
            r"confidence in $x_2$ alone",
            *lines,
            kit.line([0.5, 1], [0.5, 1], look="muted 0.6"),
            xlabel=r"confidence in $x_1$, $1-\delta$",
            limits=(0.5, 1),
            limits_x=(0.5, 1),
        )
    )


def evidence_fig6(runs: kit.Runs) -> Evidence:
    """Measure the runs of Figure 6 beside both bounds of Theorem D.2 with z* = alpha*.

    As printed it is Eq. 7, since `beta0 - alpha0` is 0; with `beta0 - lambda alpha0` in its place
    the exponent is `lambda L + sqrt(L) (beta0 - lambda alpha0)`.
    """
    z_star = np.sqrt(required_logit(DELTAS))
    bounds = {
        name: np.array(
            [
                theorem_d2(DELTAS, value, (0.1, 0.1, 0.1), z_star, printed=printed)
                for value in LAMBDAS
            ]
        )
        for name, printed in (("D.2 printed (= Eq. 7)", True), ("D.2 likely meant", False))
    }
    return evidence(runs, bounds, "positive", "negative")


def exponent_terms(lambda_: float, delta: float) -> tuple[float, float]:
    """Return both terms of the exponent of Theorem D.2 (as its proof has it) at t*, from the start
    of Figure 6.

    They are `lambda L` and `z* (beta0 - lambda alpha0)`, with z* integrated.
    """
    z_star = float(stopping_points(delta, (0.1, 0.1, 0.1), lambda_).z)
    return lambda_ * float(required_logit(delta)), z_star * (0.1 - lambda_ * 0.1)


def claims_fig6(e: Evidence) -> list[kit.Claim]:
    cases = e.cases["positive"]
    negative = e.cases["negative"]
    about = (cases.delta, cases.lambda_, cases.start, cases.stop.z)
    violated = [
        (cases.stop.rare > theorem_d2(*about, printed=printed) + 1e-12).sum()
        for printed in (True, False)
    ]
    main, extra = exponent_terms(0.01, 1e-4)
    below_0 = (negative.stop.rare > simple_bound(negative.delta, negative.lambda_) + 1e-12).sum()
    return [
        *claims_of_both(e),
        kit.claim(
            "starvation",
            "The rare feature lags behind (largest of $P((0, x_2)) - P((x_1, 0))$, all "
            r"$\lambda$, trained from 90 % on)",
            "Section 6, Figure 6",
            kit.less_than(0),
            worst(e, lambda run: run.rare - run.frequent),
        ),
        kit.claim(
            "bound",
            "The corrected Theorem D.2 holds for trained networks (largest confidence minus bound,"
            " from 90 % on)",
            "proof of Theorem D.2",
            kit.at_most(1e-12),
            worst(
                e,
                lambda run: (
                    run.rare
                    - theorem_d2(1 - run.frequent, run.lambda_, run.start, run.z, printed=False)
                ),
            ),
        ),
        kit.theory(
            "theorem-d2",
            rf"Theorem D.2 as printed, with $\beta_0 - \alpha_0$, holds (violations in {DRAWS} "
            r"random cases of $\lambda, \delta, \alpha_0, \beta_0 > 0, z_0$)",
            "Theorem D.2",
            kit.exactly(0),
            violated[0],
        ),
        kit.theory(
            "corrected",
            r"With $\beta_0 - \lambda \alpha_0$, as its proof has it, Theorem D.2 holds "
            f"(violations in {DRAWS})",
            "proof of Theorem D.2",
            kit.exactly(0),
            violated[1],
        ),
        kit.theory(
            "negative",
            f"For beta0 < 0 Eq. 7 holds (violations in {DRAWS} random cases)",
            "Theorem D.2, beta0 < 0",
            kit.exactly(0),
            below_0,
        ),
        kit.theory(
            "limited",
            r"The term of $\alpha_0$ and $\beta_0$ has a limited effect on the exponent (it over "
            r"$\lambda \log((1-\delta)/\delta)$, $\lambda$ = 0.01, $\delta$ = 1e-4, the start of"
            r" the figure)",
            "Appendix D",
            kit.less_than(1),
            extra / main,
        ),
    ]


def numbers_fig6(e: Evidence) -> dict[str, float]:
    """Return both terms of the exponent, and confidences beside the bounds of Theorem D.2."""
    main, extra = exponent_terms(0.01, 1e-4)
    start = (0.1, 0.1, 0.1)
    stop = stopping_points(0.01, start, 0.1)
    exact = {
        name: theorem_d2(0.01, 0.1, start, stop.z, printed=printed)
        for name, printed in (("printed", True), ("corrected", False))
    }
    drawn = {name: of_lambdas[-1, -1] for name, of_lambdas in e.bounds.items()}
    meant = [*e.bounds.values()][-1]
    excess = max((run.truth - bound).max() for run, bound in zip(e.fine, meant, strict=True))
    return {
        "lambda log((1 - delta) / delta) for lambda = 0.01, delta = 1e-4": main,
        "the term of alpha0 and beta0 there": extra,
        "confidence for lambda = 0.1, delta = 0.01": float(stop.rare),
        **{f"{name} bound there, z* integrated": float(bound) for name, bound in exact.items()},
        "confidence for lambda = 0.01, delta = 1e-4": e.fine[-1].truth[-1],
        **{f"{name} there, z* = alpha*": bound for name, bound in drawn.items()},
        "largest confidence minus the bound likely meant, z* = alpha*": excess,
    }


FIGURE_6 = kit.Figure(
    id="tachet2018-fig6",
    caption=(
        "Confidence in a sample that has only the rare feature x2, at the moment when that in x1 is"
        " 1 - delta, from alpha0 = beta0 = 0.1: Eq. 8 integrated, trained networks (dots), and two"
        " bounds with z* = alpha*. Theorem D.2 as printed has the term z* (beta0 - alpha0), which"
        " is 0 here, so it is Eq. 7, and is exceeded; its proof gives lambda L + sqrt(L) (beta0 -"
        " lambda alpha0), L = log((1 - delta) / delta), which is likely what the paper draws."
    ),
    configs=configs(fair=True),
    passes={"linear": {"overlay starvation bound": ACTIVE}},
)


def evidence_fig10(runs: kit.Runs) -> Evidence:
    """Measure the runs of Figure 10 beside Eq. 7."""
    return evidence(
        runs,
        {"bound, Eq. 7": np.array([simple_bound(DELTAS, value) for value in LAMBDAS])},
        "strong",
    )


def claims_fig10(e: Evidence) -> list[kit.Claim]:
    cases = e.cases["strong"]
    late = e.trained["late"]
    violations = (cases.stop.rare > simple_bound(cases.delta, cases.lambda_) + 1e-12).sum()
    example = kit.given(late.frequent.max() >= 0.9999, np.interp(0.9999, late.frequent, late.rare))
    return [
        *claims_of_both(e),
        kit.claim(
            "bound",
            r"Eq. 7 holds for trained networks that start at $\beta_0 = \lambda \alpha_0$ (largest "
            "confidence minus bound, from 90 % on)",
            "Theorem 6.1",
            kit.at_most(1e-12),
            worst(e, lambda run: run.rare - simple_bound(1 - run.frequent, run.lambda_)),
        ),
        kit.claim(
            "example",
            r"With $\lambda$ = 0.1 and $\delta$ = 1e-4, $P((0, x_2))$ is at most 72 % (trained)",
            "Section 6",
            kit.at_most(0.72),
            example,
        ),
        kit.theory(
            "bound-curves",
            "Eq. 7 holds for the curves of the figure (largest confidence minus bound)",
            "Theorem 6.1",
            kit.at_most(1e-12),
            max(
                (run.truth - bound).max()
                for run, bound in zip(e.fine, *e.bounds.values(), strict=True)
            ),
        ),
        kit.theory(
            "random",
            r"Eq. 7 holds for random starts with $\alpha_0 \ge \beta_0/\lambda > 0$ (violations in "
            f"{DRAWS} cases)",
            "Theorem 6.1",
            kit.exactly(0),
            violations,
        ),
    ]


FIGURE_10 = kit.Figure(
    id="tachet2018-fig10",
    caption=(
        "As Figure 6 with the bound of Eq. 7, which drops alpha0 and beta0; neurons start at alpha0"
        " = 0.1, beta0 = 0.1 lambda, the least favour to the strong feature that Theorem 6.1"
        " allows."
    ),
    configs={
        **configs(fair=False),
        "late": wanted(
            0.1,
            False,
            "optimizer.lr=0.02",
            "optimizer.iterations=50000",
            "record.snapshots.interval=50",
        ),
    },
    passes={"linear": {"overlay bound example": ACTIVE}},
)


PRINTED = ((91, 71, 61, 51), (99, 86, 72, 52))
"""Percentages of the paper's Table 1."""
CONFIDENCES = {"99 %": 0.99, "99.99 %": 0.9999}
"""`1 - delta`; the paper's column is labelled delta."""


def evidence_table1(_: kit.Runs) -> kit.Floats:
    """Return Eq. 7 in percent, (2, 4), for the confidences and lambdas of the table."""
    delta = 1.0 - np.array([*CONFIDENCES.values()])
    return 100.0 * simple_bound(delta[:, None], LAMBDAS)


def claims_table1(e: kit.Floats) -> list[kit.Claim]:
    return [
        kit.theory(
            f"cell-{i + 1}-{j + 1}",
            rf"Confidence {confidence}, $\lambda$ = {LAMBDAS[j]:g} (rounded " "percentage)",
            "Table 1, Eq. 7",
            kit.exactly(PRINTED[i][j]),
            np.rint(e[i, j]),
        )
        for i, confidence in enumerate(CONFIDENCES)
        for j in range(4)
    ]


def table_table1(e: kit.Floats) -> tuple[list[str], list[list[str]]]:
    """Return the table as the paper has it, unrounded in brackets."""
    header = ["confidence on x_1", *(f"lambda = {value:g}" for value in LAMBDAS)]
    rows = [
        [confidence, *(f"{np.rint(percent):.0f} % ({percent:.2f})" for percent in cells)]
        for confidence, cells in zip(CONFIDENCES, e, strict=True)
    ]
    return header, rows


def draw_table1(e: kit.Floats) -> kit.Drawing:
    header = ["confidence on $x_1$", *(rf"$\lambda={value:g}$" for value in LAMBDAS)]
    return kit.table_figure(header, table_table1(e)[1], align="lrrrr")


TABLE1 = kit.Figure(
    id="tachet2018-table1",
    caption=(
        "Upper bound of Eq. 7 on the confidence in a sample that has only x_2, when training stops"
        " at the given confidence on x_1 (the paper's column is labelled delta); in brackets"
        " unrounded."
    ),
)


FIGURES = kit.by_id(FIGURE_6, FIGURE_10, TABLE1)
