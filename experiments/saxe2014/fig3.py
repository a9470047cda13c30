"""Figure 3: strengths of the modes of hierarchical data against iterations, linear and tanh
networks beside Eq. 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics_cli import kit
from dynamics_cli.theory.linear_modes import linear_mode

from .theory.modes import half_time

KINDS = ("linear", "tanh")
MODES = (1, 2, 3, 5, 12, 18, 31)
SEEDS = 100
"""Networks of each kind in `--preset full`, as many as the paper has."""
LONGER = ("optimizer.iterations=2500", "record.snapshots.interval=10")
"""Of these, till the slowest learn half of mode 31."""
U0 = 1e-6
"""Strength of the modes at the start."""


@dataclass(frozen=True)
class Modes:
    """The 32 modes of a run at K states.

    `u` (K, 32) are strengths `(U^T W V)_kk` at the recorded `iterations` (K,), `theory` (K, 32) the
    same by Eq. 12, `s` (32,) the singular values that they learn, `deviation` is the largest
    difference of the first mode from Eq. 12, over s, and `delays` (32,) how much later than by Eq.
    12 a mode reaches half its strength, relative; NaN where it does not.
    """

    iterations: kit.Ints
    u: kit.Floats
    s: kit.Floats
    theory: kit.Floats
    delays: kit.Floats
    deviation: float


def path(run: kit.Run) -> Modes:
    """Project a run on the modes of its data; inputs are the unit vectors."""
    architecture: Any = run.config.architecture
    lr, iterations = float(run.config.optimizer.lr), run.snapshot_iterations  # type: ignore[attr-defined]
    U, s, Vt = np.linalg.svd(run.dataset().y.T, full_matrices=False)  # (1000, 32), (32,), (32, 32)
    hidden = np.asarray(
        architecture.sigma.value(np.asarray(run.parameters["hidden_weight"], np.float64))
    )
    seen = np.einsum(
        "oa,koh->kah", U, np.asarray(run.parameters["output_weight"]), optimize=True
    )  # (K, 32, h)
    u = np.einsum("kah,khi,ai->ka", seen, hidden, Vt, optimize=True)
    theory = linear_mode(lr * iterations, U0, s, 2)
    delays = (
        lr
        * np.array([kit.crossing(iterations, u[:, k], s[k] / 2) for k in range(len(s))])
        / half_time(s, U0)
        - 1
    )
    deviation = float(np.abs(u - theory)[:, 0].max() / s[0])
    return Modes(iterations, u, s, theory, delays, deviation)


@dataclass(frozen=True)
class Evidence:
    """Modes by role, and delays (networks, 7) by kind."""

    paths: dict[str, Modes]
    delays: dict[str, kit.Floats]


def evidence(runs: kit.Runs) -> Evidence:
    """Project all runs: `paths` by role, and by kind `delays` (networks, 7) of the modes of the
    figure.
    """
    paths = {role: path(run) for role, run in runs.items()}
    chosen = np.array(MODES) - 1
    delays = {
        kind: np.array(
            [modes.delays[chosen] for role, modes in paths.items() if role.split(" + ")[0] == kind]
        )
        for kind in KINDS
    }
    return Evidence(
        paths={role: modes for role, modes in paths.items() if " + " not in role}, delays=delays
    )


def claims(e: Evidence) -> list[kit.Claim]:
    chosen = np.array(MODES) - 1
    linear, tanh = (e.delays[kind].mean(0) for kind in KINDS)
    exact = e.paths["decoupled"]
    s = exact.s[0]
    lr = 5e-4
    return [
        kit.claim(
            "exact",
            "From a decoupled start the first mode follows Eq. 12 (largest difference over s, over"
            " the "
            r"error of Euler's method, $\lambda s \ln(s/u_0)/8$)",
            "Eq. 12; error derived",
            kit.near(1, 0.2),
            exact.deviation / (lr * s * np.log(s / U0) / 8),
        ),
        kit.claim(
            "exact-half",
            "From a decoupled start the first mode reaches half its strength later by the share "
            r"$\lambda s/2$ (measured over it)",
            "Eq. 12; error derived",
            kit.near(1, 0.2),
            exact.delays[0] / (lr * s / 2),
        ),
        kit.claim(
            "order",
            "From small random weights modes are learnt in the order of their strengths (modes that"
            " reach half later than the one before)",
            "Figure 3",
            kit.exactly(len(MODES) - 1),
            np.sum(np.diff((1 + linear) * half_time(e.paths["linear"].s[chosen], U0)) > 0),
        ),
        kit.claim(
            "random",
            "Modes are learnt later than by Eq. 12 on average (mean delay of these modes, less that"
            " from a decoupled start, which is Euler's error)",
            "Figure 3 right",
            kit.more_than(0),
            np.mean(linear - exact.delays[chosen]),
        ),
        kit.claim(
            "tanh",
            "Networks with tanh learn later than linear ones (modes of seven)",
            "Figure 3 right",
            kit.exactly(len(MODES)),
            np.sum(tanh > linear),
        ),
    ]


def numbers(e: Evidence) -> dict[str, float]:
    """Return the mean delay of a random start, and of the decoupled one."""
    chosen = np.array(MODES) - 1
    return {
        "mean delay, random start": e.delays["linear"].mean(),
        "mean delay, decoupled start": e.paths["decoupled"].delays[chosen].mean(),
    }


def draw(e: Evidence) -> kit.Drawing:
    figure, (left, right) = kit.new_figure(2, aspect=0.85, extra_height=0.25)
    colors = {"linear": "C0", "tanh": "C2"}
    chosen = np.array(MODES) - 1
    linear = e.paths["linear"]
    modes = kit.chart(
        f"Modes {', '.join(map(str, MODES))}",
        "strength of the mode",
        kit.lines(linear.iterations, linear.theory[:, chosen], "theory, Eq. 12", "C1"),
        *(
            kit.lines(linear.iterations, e.paths[name].u[:, chosen], name, f"{color} dashed 0.9")
            for name, color in colors.items()
        ),
    )
    handles = kit.panel(left, 0, modes)
    x = np.arange(len(MODES))
    for k, (name, color) in enumerate(colors.items()):
        spread = e.delays[name].std(0) if len(e.delays[name]) > 1 else None
        right.bar(x + 0.4 * k - 0.2, e.delays[name].mean(0), 0.38, color=color, yerr=spread)
    right.axhline(0, color=kit.PALETTE.theory, lw=0.7)
    right.set_xticks(x, [str(mode) for mode in MODES])
    right.set(xlabel="mode", ylabel="relative delay at half strength")
    kit.panel_label(right, 1, "Delay")
    kit.figure_legend(figure, handles)
    return figure


DECOUPLED = "initialization={kind: decoupled, scale: 1.0e-6}"
FIGURE = kit.Figure(
    id="saxe2014-fig3",
    caption=(
        "Hierarchical data. Left: strengths of some modes of the map from inputs to features"
        " against iterations: Eq. 12, a linear network and a tanh network from small random"
        " weights. Right: how much later than by Eq. 12 they reach half their strength."
    ),
    configs={
        "linear": "saxe2014/tree.yaml",
        "tanh": kit.Wanted("saxe2014/tree.yaml", ("architecture.activation=tanh",)),
        "decoupled": kit.Wanted("saxe2014/tree.yaml", (DECOUPLED,)),
    },
    presets={
        "full": kit.grid(
            "saxe2014/tree.yaml",
            {"architecture.activation": KINDS, "seed": range(1, SEEDS)},
            "{} + {:d}",
            *LONGER,
        )
    },
    passes={"linear": {"exact* order random": "Linear networks decide it: this null leaves them."}},
)
