"""Trained networks find the analytic features: one frequency a neuron, and phases with phi_U +
phi_V = phi_W.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics_cli import kit

from .grokking import ADAMW, GD, KEYS, NO_DECAY, chosen, layers, own_form
from .theory.analytic import analytic_weights, phase_sums

CLOSE = 0.3
"""Radians; a random phase is as near to 0 in 10 % of the cases."""


@dataclass(frozen=True)
class Phases:
    """The phases of the weights of N neurons.

    `same` (N,) says which neurons have one strongest frequency in all, `total` (N,) is `phi_U +
    phi_V - phi_W`, `close` the share of these neurons whose phases nearly add up, NaN unless most
    neurons are among them.
    """

    same: kit.Floats
    total: kit.Floats
    close: float


def phases(U: kit.Floats, V: kit.Floats, W: kit.Floats) -> Phases:
    """Analyse weights U (N, p), V (N, p), W (p, N)."""
    same, total = phase_sums(U, V, W)
    close = float(np.mean(np.abs(total[same > 0]) < CLOSE)) if same.mean() > 0.5 else np.nan
    return Phases(same, total, close)


Evidence = dict[str, Phases]
"""Optimizer, or analytic weights -> phases."""


def evidence(runs: kit.Runs) -> Evidence:
    """Analyse the last networks, and analytic weights of the same size."""
    trained = {name: phases(*layers(run, -1)) for name, run in runs.items()}
    U, _, _ = layers(runs[ADAMW], 0)
    return {
        **trained,
        "analytic": phases(*analytic_weights(U.shape[1], len(U), np.random.default_rng(0))),
    }


def claims(e: Evidence) -> list[kit.Claim]:
    exact = e["analytic"]
    made = []

    for name in (ADAMW, GD):
        key = KEYS[name]
        net = e[name]
        least = {GD: 0.8, ADAMW: 0.95}[name]
        made += [
            kit.claim(
                f"{key}-frequency",
                f"{name}: U, V and W of a neuron have one frequency (share of the neurons)",
                "Eq. 12",
                kit.at_least(least),
                net.same.mean(),
            ),
            kit.claim(
                f"{key}-phases",
                f"{name}: phases of a neuron add up (share of these within {CLOSE} of 0)",
                "Eq. 12; most: more than half",
                kit.most(),
                net.close,
            ),
        ]
    return [
        *made,
        kit.theory(
            "analytic",
            "Analytic weights: the sum of the phases (largest size)",
            "Eq. 12",
            kit.at_most(1e-9),
            np.abs(exact.total).max(),
        ),
    ]


def draw(e: Evidence) -> kit.Drawing:
    bins = np.linspace(-np.pi, np.pi, 32)
    counts = [np.histogram(net.total[net.same > 0], bins)[0] for net in e.values()]
    return kit.charts(
        *(
            kit.chart(
                name.capitalize() if name != ADAMW else name,
                "neurons",
                kit.stairs(bins, heights, look=f"C{panel}"),
            )
            for panel, (name, heights) in enumerate(zip(e, counts, strict=True))
        ),
        xlabel=r"$\phi_U + \phi_V - \phi_W$",
        ticks={-np.pi: r"$-\pi$", 0: "0", np.pi: r"$\pi$"},
    )


CONFIGS, PRESETS = chosen(ADAMW, GD)
FIGURE = kit.Figure(
    id="gromov2023-phases",
    caption=(
        "The phases of U and V less that of W (radians) at the strongest frequency of each neuron,"
        " where these agree: of networks trained by AdamW and by gradient descent, and of the"
        " analytic weights, for which they sum to 0."
    ),
    configs=CONFIGS,
    presets=PRESETS,
    variants=own_form(GD),
    passes={"decay": {"gd-*": NO_DECAY}},
)
