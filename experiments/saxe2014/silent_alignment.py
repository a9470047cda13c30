"""Silent alignment: the kernel turns to the labels before the loss falls (Atanasov et al. 2022,
Figure 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.ntk import ntk

SMALL = ("0.1", "0.0316", "0.01", "0.001")
DEEP = ("0.1", "0.0316")
"""sigma of the networks of two and of three matrices."""
DEEPER = {
    4: ("optimizer.lr=0.1", "optimizer.iterations=1000"),
    5: ("optimizer.lr=0.2", "optimizer.iterations=3000"),
}
"""Matrices of the deeper networks, from sigma = 0.1 -> how they are trained."""
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of anisotropic inputs, two matrices, sigma = 0.01."""
ROLES = ("2 {}", "3 {}", "{:d} matrices", "gamma {}")
"""Of the linear networks, by sigma, matrices and gamma."""
D = 30


@dataclass(frozen=True)
class Silent:
    """A linear network on whitened data, K recorded states.

    `losses` (K,) over the first at `times` (K,), and the `alignment` (K,) of the tangent kernel
    with the labels, whose last is `final`; `moves` is its range once a tenth of the loss has gone,
    over the final one. Times: of `half` the loss, `predicted` for two matrices from the initial
    weights (A, C.1), NaN for others; `turned`, when the cosine of `W_1^T W_1` with `beta beta^T` is
    1/2; `aligned`, of 90 % of the rise of the alignment to its end in theory, NaN where that is not
    reached, with the loss `left` then, over the first.
    """

    sigma: float
    depth: int
    times: kit.Floats
    losses: kit.Floats
    alignment: kit.Floats
    final: float
    moves: float
    half: float
    predicted: float
    turned: float
    aligned: float
    left: float


def silent(run: kit.Run) -> Silent:
    """Read a run of a linear network on whitened data, K recorded states."""
    x = run.dataset().x
    y = run.dataset().y
    initialization, optimizer = (
        getattr(run.config, name) for name in ("initialization", "optimizer")
    )
    beta = x.T @ y / len(x)
    names = [
        name
        for name in run.parameters
        if name not in ("output_weight", f"weight_{len(run.parameters)}")
    ]
    W = np.asarray(run.parameters[names[0]], np.float64)
    gram = np.einsum("kmi,kmj->kij", W, W)
    predicted = np.nan
    if "output_weight" in run.parameters:
        a = np.asarray(run.parameters["output_weight"][0], np.float64)
        w = W[0] @ beta
        c0 = float((a @ a + w @ w) / 4 + a @ w / 2)  # (q + r) / 2 of A, C.1
        predicted = float(np.log((np.sqrt(2) - 1) * (1 - c0) / c0) / 2) if c0 < 1 else np.nan
    at = run.snapshot_iterations
    depth = len(run.parameters)
    alignment = run.measures["kernel_alignment"]
    times = float(optimizer.lr) * at
    losses = run.losses[at] / run.losses[0]
    cosine = np.einsum("i,kij,j->k", beta, gram, beta) / np.linalg.norm(gram, axis=(1, 2))
    start = alignment[0]
    final = float(alignment[-1])
    late = alignment[losses < 0.9]
    aligned = kit.crossing(times, alignment, start + 0.9 * (final_alignment(depth) - start))
    return Silent(
        sigma=float(initialization.scale),
        depth=depth,
        times=times,
        losses=losses,
        alignment=alignment,
        final=final,
        moves=float(np.ptp(late)) / final if len(late) else np.nan,
        half=kit.crossing(times, -losses, -0.5),
        predicted=predicted,
        turned=kit.crossing(times, cosine, 0.5),
        aligned=aligned,
        left=float(np.interp(aligned, times, losses)),
    )


@dataclass(frozen=True)
class Evidence:
    """All linear networks, and the ReLU network beside its kernels.

    Linear networks of `two`, `three` and `deeper` matrices by sigma, and `anisotropic` ones;
    `relu_first` and `relu_last` are relative distances on new points of the ReLU network from
    regression with its kernels, and `fitted` the share of its training loss that is left.
    """

    two: list[Silent]
    three: list[Silent]
    deeper: list[Silent]
    anisotropic: list[Silent]
    relu_first: float
    relu_last: float
    fitted: float


def evidence(runs: kit.Runs) -> Evidence:
    """Read the runs, and do kernel regression with the first and the last kernel of the ReLU
    network.
    """
    run: Any = runs["relu"]
    x = run.dataset().x
    y = run.dataset().y
    new = np.random.default_rng(0).standard_normal((1000, x.shape[1]))
    f = run.network(-1)(new)
    f_0 = run.network(0)
    errors = []
    for i in (0, -1):
        state = run.state(i)
        W, a = (np.asarray(state[name], np.float64) for name in ("hidden_weight", "output_weight"))
        K = ntk(x, x, W, a)
        here = f_0(new) + ntk(new, x, W, a) @ np.linalg.lstsq(K, y - f_0(x), rcond=1e-12)[0]
        errors.append(float(np.linalg.norm(here - f) / np.linalg.norm(f)))
    two, three, deeper, bent = (
        [silent(one) for one in kit.by_values(runs, role).values()] for role in ROLES
    )
    return Evidence(
        two,
        three,
        deeper,
        anisotropic=bent,
        relu_first=errors[0],
        relu_last=errors[1],
        fitted=run.losses[-1] / run.losses[0],
    )


def final_alignment(depth: int, dimension: int = D) -> float:
    """Return `L / sqrt(L^2 + D - 1)`, the alignment of the final kernel on whitened data (A, Eq.
    10).
    """
    return depth / float(np.sqrt(depth**2 + dimension - 1))


def slope(x: kit.Floats, y: kit.Floats) -> float:
    """Return the slope of a line through points (K,); NaN where all have one x, or some y is
    none.
    """
    return float(np.polyfit(x, y, 1)[0]) if np.ptp(x) > 0 and np.isfinite(y).all() else np.nan


def power(runs: list[Silent], times: list[float]) -> float:
    """Return the power of sigma with which times grow; NaN where one was not reached."""
    all_reached = min(times) > 0  # never for NaN
    return slope(np.log([run.sigma for run in runs]), np.log(times)) if all_reached else np.nan


def claims(e: Evidence) -> list[kit.Claim]:
    small = e.two[1:]  # sigma^2 <= 1e-3
    halved, turned = ([getattr(run, name) for run in e.three] for name in ("half", "turned"))
    aligned = [run.aligned for run in small]
    fitted = e.fitted < 0.01
    return [
        kit.claim(
            "final-2",
            r"Two matrices: the final kernel is aligned as $L/\sqrt{L^2 + D - 1}$ (largest"
            r" relative "
            r"error, $\sigma^2 \le$ 1e-3)",
            "A, Eq. 10",
            kit.at_most(0.01),
            max(abs(run.final / final_alignment(2) - 1) for run in small),
        ),
        kit.claim(
            "final-3",
            r"Three matrices (relative error at $\sigma^2$ = 1e-3)",
            "A, Eq. 10",
            kit.at_most(0.02),
            abs(e.three[-1].final / final_alignment(3) - 1),
        ),
        *[
            kit.claim(
                f"final-{run.depth}",
                rf"{word} matrices (relative error at $\sigma^2$ = 1e-2)",
                "A, Eq. 10",
                kit.at_most(0.02),
                abs(run.final / final_alignment(run.depth) - 1),
            )
            for word, run in zip(("Four", "Five"), e.deeper, strict=True)
        ],
        kit.claim(
            "half",
            "Two matrices: half the loss when predicted (largest relative error)",
            "A, C.1",
            kit.at_most(0.02),
            max(abs(run.half / run.predicted - 1) for run in e.two),
        ),
        kit.claim(
            "slope",
            r"Alignment comes later by 1/2 for each unit of $\ln \sigma^{-2}$ (slope)",
            "A, C.1",
            kit.near(0.5, 0.01),
            -slope(2 * np.log([run.sigma for run in e.two]), np.array([run.half for run in e.two])),
        ),
        kit.claim(
            "same",
            "Alignment comes at the same time for all scales (latest over earliest 90 %, "
            r"$\sigma^2 \le$ 1e-3)",
            "A, Section 3",
            kit.at_most(1.02),
            np.max(aligned) / np.min(aligned),
        ),
        kit.claim(
            "silent",
            "Alignment comes while the loss has hardly fallen (least loss over the first then, "
            r"$\sigma^2 \le$ 1e-3)",
            "A, Section 3",
            kit.more_than(0.9),
            np.min([run.left for run in small]),
        ),
        kit.claim(
            "three-half",
            r"Three matrices: half the loss at a time $\sim 1/\sigma$ (power of $\sigma$)",
            "A, Figure 3",
            kit.near(-1, 0.1),
            power(e.three, halved),
        ),
        kit.claim(
            "three-aligned",
            r"Three matrices: the first layer is aligned at a time $\sim 1/\sigma$ too (power; "
            "cosine 1/2)",
            "A, Figure 3",
            kit.near(-1, 0.1),
            power(e.three, turned),
        ),
        kit.claim(
            "three-first",
            "Alignment comes before learning (its time over the time of half the loss, the larger)",
            "A, Figure 3",
            kit.less_than(1),
            np.max(np.divide(turned, halved)),
        ),
        kit.claim(
            "anisotropic",
            "The less white the inputs, the more the kernel moves while the loss falls (range of "
            r"the alignment after the first tenth, over its end: least growth from one $\gamma$ to"
            r" the next)",
            "A, Figure 4; order",
            kit.more_than(0),
            np.diff([run.moves for run in e.anisotropic]).min(),
        ),
        kit.claim(
            "relu-last",
            "A ReLU network on white inputs is regression with its last kernel (relative distance "
            "on new points, within 10 %)",
            "A, Figure 1",
            kit.at_most(0.1),
            kit.given(fitted, e.relu_last),
        ),
        kit.claim(
            "relu-first",
            "A ReLU network is not regression with its first kernel (distance, over that from the "
            "last)",
            "A, Figure 1",
            kit.more_than(1),
            e.relu_first / e.relu_last if fitted else np.nan,
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    def losses(title: str, runs: Sequence[Silent]) -> kit.Chart:
        name = r"$\sigma^2 = 10^{{{:.0f}}}$".format
        return kit.chart(
            title,
            "loss; dashed: $A$",
            [kit.line(run.times, run.losses, name(2 * np.log10(run.sigma))) for run in runs],
            [kit.line(run.times, run.alignment, look="dashed 1.0") for run in runs],
            kit.level(final_alignment(runs[0].depth), look="theory dotted 0.9"),
            xlabel="time",
        )

    last = [e.two[-1], e.three[-1], *e.deeper]
    at = range(2, 6)
    ends = [run.final for run in last]
    return kit.charts(
        losses(r"$L = 2$; dotted: $A_{\mathrm{final}}$", e.two),
        losses("$L = 3$", e.three),
        kit.chart(
            "Smallest scales",
            "$A$ in the end",
            kit.line([run.depth for run in last], ends, look="measured points"),
            kit.line(at, [*map(final_alignment, at)], look="theory dotted"),
            xlabel="matrices $L$",
            ticks=at,
            limits=(0, 0.75),
        ),
        kit.chart(
            "Inputs not white",
            "late range of $A$ over end",
            kit.line(GAMMAS, [run.moves for run in e.anisotropic], look="measured joined"),
            xlabel=r"anisotropy $\gamma$",
            ticks=GAMMAS,
            limits=(0, None),
        ),
    )


def _wanted() -> dict[str, str | kit.Wanted]:
    config = "saxe2014/whitened.yaml"
    two, three, deeper, bent = ROLES
    deep = (
        "architecture={{kind: fully_connected, widths: {}, activation: linear, bias: false}}".format
    )
    ends = {
        "0.1": ("optimizer.lr=0.01", "optimizer.iterations=2500"),
        "0.0316": ("optimizer.lr=0.02", "optimizer.iterations=3000"),
    }
    relu = (
        "dataset.n=200",
        "dataset.whiten=true",
        "architecture.width=100",
        "architecture.activation=relu",
        "initialization.scale=0.01",
        "optimizer.lr=0.05",
        "optimizer.iterations=2000",
        "record.measures=[]",
    )
    return {
        **kit.grid(config, {"initialization.scale": SMALL}, two),
        **{
            three.format(s): kit.Wanted(
                config, (deep([50, 50]), f"initialization.scale={s}", *ends[s])
            )
            for s in DEEP
        },
        **{
            deeper.format(L): kit.Wanted(
                config,
                (
                    deep([50] * (L - 1)),
                    "initialization.scale=0.1",
                    *more,
                    "record.snapshots.interval=50",
                ),
            )
            for L, more in DEEPER.items()
        },
        **kit.grid(
            config,
            {"dataset.anisotropy": GAMMAS},
            bent,
            "initialization.scale=0.01",
            "optimizer={kind: gd, lr: 0.02, iterations: 2000}",
        ),
        "relu": kit.Wanted(config, relu),
    }


FIGURE = kit.Figure(
    id="saxe2014-silent-alignment",
    caption=(
        "A linear teacher on whitened inputs, linear networks of two and three matrices from"
        " several scales: loss over the first (full), alignment A of the tangent kernel with the"
        " labels (dashed), and the alignment of the final kernel in theory (dotted). From small"
        " scales the kernel turns before the loss falls. (c): the alignment in the end of two to"
        " five matrices. (d): how far it moves once the loss has fallen by a tenth, over its end,"
        " for inputs with a spectrum (30 / (H k))^gamma."
    ),
    configs=_wanted(),
    passes={
        "linear": {
            "final-* half slope same silent three-* anisotropic": (
                "Linear networks decide it: this null leaves them."
            ),
            "relu-*": (
                "It is proved for linear networks; the claim is that a ReLU network does the same."
            ),
        }
    },
)
