"""Figures 3 and 4: one linear neuron for several imbalances delta, trained and exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.assumptions import times_of

from .theory.single_neuron import kernel_distance, last_distance, single_neuron, start

CONFIG = "kunin2024/neuron.yaml"
DELTAS = (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
ONE = ("dataset.x=[[0.5, 1.0]]", "dataset.y=[1.1]")
"""The single sample of Figure 4(b)."""
WHITENED = 1e-12
"""Largest entry of `X^T X - I` of inputs that count as white."""
NULLS = {"data": ("dataset.x=[[1.0, 0.5], [0.0, 1.0]]", "dataset.y=[0.0, 1.0]")}
"""Inputs that are not white."""


def evidence(runs: kit.Runs) -> list[Path]:
    """Read all runs, ascending in delta; runs on one sample last."""
    paths = [path(run) for run in runs.values()]
    return sorted(paths, key=lambda neuron: (bool(np.isnan(neuron.exact_a[0])), neuron.delta))


@dataclass(frozen=True)
class Path:
    """A trained neuron at T times, and its equations.

    Measured are `w` (T, 2), `a` (T,), `predictor` `a w` (T, 2), the kernel distance `S` (T,),
    `alignment` (T,), the cosine of w and the least-norm interpolator `beta` (2,), and `aligned`,
    the first time at which it exceeds 0.99. `exact_w`, `exact_a` solve the equations, NaN where
    inputs are not white: `coloured` is the largest entry of `X^T X - I`.
    `error` is the largest difference between both, `drift` the largest change
    of `a^2 - |w|^2`: NaN unless the neuron has moved.
    """

    delta: float
    t: kit.Floats
    w: kit.Floats
    a: kit.Floats
    S: kit.Floats
    beta: kit.Floats
    exact_w: kit.Floats
    exact_a: kit.Floats
    predictor: kit.Floats
    alignment: kit.Floats
    aligned: float
    error: float
    drift: float
    coloured: float


def path(run: kit.Run) -> Path:
    """Read a trained neuron at times `t` (T,), and solve its equations."""
    samples = run.dataset()
    S = run.measures["kernel_distance"]
    W, output = kit.recorded(run, "hidden_weight", "output_weight")
    w = W[:, 0]
    a = output[:, 0]
    t = times_of(run, run.snapshot_iterations)
    beta = np.asarray(np.linalg.lstsq(samples.x, samples.y, rcond=None)[0], np.float64)
    exact_w = np.full_like(w, np.nan)
    exact_a = np.full_like(a, np.nan)
    coloured = float(np.abs(samples.x.T @ samples.x - np.eye(samples.d)).max())
    if coloured <= WHITENED:
        exact_w, exact_a = single_neuron(t, w[0], float(a[0]), beta)
    cosines = kit.cosines(w, beta)
    imbalance = a**2 - np.sum(w**2, axis=1)
    moved = np.linalg.norm(w[-1] - w[0]) > 0.1
    return Path(
        delta=float(imbalance[0]),
        t=t,
        w=w,
        a=a,
        S=S,
        beta=beta,
        exact_w=exact_w,
        exact_a=exact_a,
        predictor=a[:, None] * w,
        alignment=cosines,
        aligned=min(t[cosines > 0.99], default=np.inf),
        error=kit.given(moved, max(np.abs(w - exact_w).max(), np.abs(a - exact_a).max())),
        drift=kit.given(moved, np.abs(imbalance - imbalance[0]).max()),
        coloured=coloured,
    )


def white_claim(made: kit.Claim, paths: list[Path]) -> kit.Claim:
    """Return a claim of Theorem 3.1, which is for whitened inputs."""
    premise = "Theorem 3.1 is for whitened inputs, the largest entry of X^T X - I"
    return kit.presupposing(made, premise, kit.at_most(WHITENED), max(p.coloured for p in paths))


def claims_fig3(paths: list[Path]) -> list[kit.Claim]:
    by = dict(zip(DELTAS, paths, strict=True))
    limits = {delta: last_distance(delta, float(np.linalg.norm(p.beta))) for delta, p in by.items()}
    gap = [abs(p.S[-1] - limits[delta]) for delta, p in by.items() if delta >= -2]
    S_errors = [
        float(np.abs(p.S - kernel_distance(p.w, p.a, p.w[0], float(p.a[0]))).max()) for p in paths
    ]
    late = by[-4.0]
    aligned = [p.aligned for p in paths]
    first, rich = np.interp(
        [5.0, 15.0], late.t, late.S
    )  # without the latter nothing is late, and nothing is first
    return [
        kit.claim(
            "conserved",
            r"Gradient flow conserves $a^2 - |w|^2$ (largest change, $\delta < 0$: the integrator"
            r" imposes it from $\delta = 0$ on)",
            "Section 3; tolerance 1e-8 of a step",
            kit.less_than(1e-6),
            np.max([p.drift for p in paths if p.delta < 0]),
        ),
        white_claim(
            kit.claim(
                "exact",
                r"Trained neurons follow the exact solution (largest difference of a weight, all"
                r" $\delta$)",
                "Theorem 3.1; tolerance 1e-8 of a step",
                kit.less_than(1e-5),
                np.max([p.error for p in paths]),
            ),
            paths,
        ),
        kit.claim(
            "distances",
            r"The kernel distance ends at its limit, 0.71 at $\delta$ = -2 to 0.0015 at 4 (largest "
            "difference)",
            "Figure 3, right; closed form",
            kit.less_than(1e-3),
            max(gap),
        ),
        kit.claim(
            "lazy-first",
            r"Downstream learning is lazy at first (kernel distance at t = 5, $\delta$ = -4)",
            "Figure 3, right",
            kit.less_than(0.1),
            kit.given(rich > 0.6, first),
        ),
        kit.claim(
            "rich-later",
            "Downstream neurons are rich in the end: delayed rich (at t = 15)",
            "Figure 3, right; limit 0.895",
            kit.more_than(0.6),
            rich,
        ),
        kit.claim(
            "sooner",
            r"The larger $\delta$, the sooner w is aligned (share of larger $\delta$ that are"
            r" aligned "
            "sooner)",
            "Figure 3, middle",
            kit.exactly(1.0),
            np.mean(np.diff(aligned[1:]) < 0),
        ),
        kit.claim(
            "never",
            r"At $\delta$ = -4 w is not yet aligned at t = 20, where all others are (largest"
            r" alignment)",
            "Figure 3, middle",
            kit.less_than(0.99),
            kit.given(np.isfinite(aligned[1:]).all(), late.alignment.max()),
        ),
        kit.theory(
            "formula",
            "The kernel distance from w and a is the gradients' (largest difference)",
            "|K|^2 = 2 a^4 + 2 a^2 |w|^2 + |w|^4",
            kit.less_than(1e-10),
            max(S_errors),
        ),
    ]


def end_of_one_sample(delta: float, w0: kit.Floats, beta: kit.Floats) -> kit.Floats:
    """Return where the predictor (2,) ends on one sample: the part of `w` across it stays."""
    n = np.array([-beta[1], beta[0]]) / np.linalg.norm(beta)
    kept = float(n @ w0)
    K = (kept**2 + delta) / 2
    return np.asarray(beta + n * kept * np.sqrt(K + np.hypot(K, np.linalg.norm(beta))))


def claims_fig4(paths: list[Path]) -> list[kit.Claim]:
    white = paths[: len(DELTAS)]
    single = paths[len(DELTAS) :]
    gaps = [
        float(np.abs(p.predictor[-1] - end_of_one_sample(p.delta, p.w[0], p.beta)).max())
        for p in single
    ]
    return [
        kit.claim(
            "one-solution",
            "On white inputs every imbalance learns the same predictor (largest distance from "
            r"$\beta^*$, $\delta$ -2 to 4)",
            "Figure 4(a)",
            kit.less_than(1e-2),
            max(float(np.linalg.norm(p.predictor[-1] - p.beta)) for p in white[1:]),
        ),
        white_claim(
            kit.claim(
                "exact",
                "White inputs: weights follow the exact solution (largest difference of a weight)",
                "Theorem 3.1; tolerance 1e-8 of a step",
                kit.less_than(1e-5),
                np.max([p.error for p in white]),
            ),
            white,
        ),
        kit.claim(
            "ends",
            "On one sample the imbalance chooses the interpolator: the end points of the theory"
            " (largest distance)",
            "Figure 4(b), Theorem 3.2",
            kit.less_than(1e-4),
            max(gaps),
        ),
        kit.claim(
            "fits",
            "All neurons fit the sample (largest final error)",
            "Figure 4(b)",
            kit.less_than(1e-4),
            max(
                abs(float((p.predictor[-1] - p.beta) @ p.beta)) / float(np.linalg.norm(p.beta))
                for p in single
            ),
        ),
    ]


def _color(delta: float) -> str:
    known = round(delta, 6) in DELTAS
    return f"C{DELTAS.index(round(delta, 6)) % len(kit.SERIES)}" if known else "C6"


def draw_fig3(paths: list[Path]) -> kit.Drawing:
    def over_time(
        title: str, ylabel: str, measure: Callable[[Path], tuple[kit.Floats, kit.Floats]]
    ) -> kit.Chart:
        pairs = [(neuron, *measure(neuron)) for neuron in paths]
        return kit.chart(
            title,
            ylabel,
            *(
                kit.line(one.t, found, rf"$\delta={one.delta:g}$", f"{_color(one.delta)} 2")
                for one, found, _ in pairs
            ),
            *(
                kit.line(one.t, exact, "exact solution", "theory dashed 0.8")
                for one, _, exact in pairs
            ),
        )

    return kit.charts(
        over_time(
            "Size",
            r"$a\,\Vert w\Vert$",
            lambda n: (n.a * kit.norms(n.w), n.exact_a * kit.norms(n.exact_w)),
        ),
        over_time(
            "Alignment",
            r"$\cos(w,\beta^*)$",
            lambda n: (n.alignment, kit.cosines(n.exact_w, n.beta)),
        ),
        over_time(
            "Kernel distance",
            "$S(0,t)$",
            lambda n: (n.S, kernel_distance(n.exact_w, n.exact_a, n.w[0], float(n.a[0]))),
        ),
        xlabel="time $t$",
    )


def draw_fig4(paths: list[Path]) -> kit.Drawing:
    figure, axes = kit.new_figure(2, 1, aspect=0.9, extra_height=0.3)
    handles = []
    white = paths[: len(DELTAS)]
    single = paths[len(DELTAS) :]
    for k, some in enumerate((white, single)):
        for neuron in some:
            (line,) = axes[k].plot(
                *neuron.predictor.T,
                color=_color(neuron.delta),
                lw=1.8,
                label=rf"$\delta={neuron.delta:g}$",
            )
            if k == 0:
                exact = neuron.exact_a[:, None] * neuron.exact_w
                (dashes,) = axes[0].plot(
                    *exact.T, color="black", lw=0.8, ls=kit.DASHED, label="exact solution"
                )
                handles.append(line)
        axes[k].plot(*some[0].predictor[0], "s", color="black", ms=4)
        axes[k].set(xlabel=r"$\beta_1$", ylabel=r"$\beta_2$")
    ends = np.array(
        [end_of_one_sample(neuron.delta, neuron.w[0], neuron.beta) for neuron in single]
    )
    (cross,) = axes[1].plot(*ends.T, "x", color="black", ms=5, ls="none", label="predicted end")
    beta = single[0].beta
    across = np.array([-beta[1], beta[0]])
    places = (ends - beta) @ across / (across @ across)
    line_of = (
        beta + np.array([places.min() - 0.2, places.max() + 0.6])[:, None] * across
    )  # beyond the last cross
    axes[1].plot(*line_of.T, color=kit.PALETTE.muted, lw=1.0, zorder=0)
    axes[1].annotate(
        "fits the sample", line_of[-1], xytext=(8, 0), textcoords="offset points", va="center"
    )
    kit.panel_labels(axes, "White inputs", "One sample")
    kit.figure_legend(figure, [*handles, dashes, cross], columns=5)
    return figure


def _wanted(
    beta: tuple[float, float], changes: tuple[str, ...] = (), name: str = "white"
) -> dict[str, kit.Wanted]:
    wanted = {}
    for delta in DELTAS:
        w, a = start(delta, beta)
        weights = (
            f"initialization.hidden_weight=[{[float(v) for v in w]}]",
            f"initialization.output_weight=[{a!r}]",
        )
        wanted[f"{name}, delta = {delta:g}"] = kit.Wanted(CONFIG, (*weights, *changes))
    return wanted


WHITE = _wanted((-1.0, 0.0))
SINGLE = _wanted((0.4, 0.05), ONE, "one sample")
FIGURES = {
    "kunin2024-fig3": kit.Figure(
        id="kunin2024-fig3",
        caption=(
            "One linear neuron on white inputs, from the predictor (-1, 0) towards (0, 1), for"
            " several imbalances delta = a^2 - |w|^2: signed size, alignment and distance of the"
            " tangent kernel; the exact solution dashed."
        ),
        configs=WHITE,
        nulls=NULLS,
        passes={
            "data": {
                "conserved": "The imbalance is conserved for all data.",
                "rich-later sooner": "A larger imbalance is sooner aligned for other inputs too.",
            },
        },
    ),
    "kunin2024-fig4": kit.Figure(
        id="kunin2024-fig4",
        caption=(
            "Paths of the predictor of one linear neuron: on white inputs all imbalances head for"
            " one, on one sample each ends in an interpolator of its own; squares: starts."
        ),
        configs={**WHITE, **SINGLE},
        nulls=NULLS,
        passes={
            "data": {"fits": "Two samples that are not white are fitted too."},
            "wrong_gradient": {
                "one-solution": (
                    "From these starts w alone, whose update is right, fits two white samples,"
                    " which have one interpolator."
                ),
            },
        },
    ),
}
