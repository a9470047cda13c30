"""Theorem 4.1: epochs that SGD takes to a loss of at most eps, against eps, for several networks and scales.

`dyn reproduce sarussi2021-extra-convergence`. About 3 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import place_legend
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, at_most, claim, finding
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.runs import Run

from .trajectory import ORIGIN, read_groups

NAMES = {
    "small": "scale 0.001, $k=50$",
    "large": "scale 10, $k=50$",
    "narrow": "scale 0.001, $k=1$",
}
EPSILONS = np.geomspace(0.3, 2e-3, 30)
LATE = 0.03
"""Losses below this are in the late phase, whose power is fitted."""
POWER = 2.0
"""Appendix B: T epochs with a violation satisfy (b eps T)^2 <= a + c T, so T grows at most like eps^-2."""


@dataclass(frozen=True)
class Descent:
    """How fast one run descends."""

    needed: Floats
    """Epochs to a loss of at most each of `EPSILONS`; NaN where it is not reached."""
    power: float
    """Exponent p of `epochs ~ eps^-p` in the late phase."""


@dataclass(frozen=True)
class Evidence:
    """Every run."""

    runs: Mapping[str, Descent]


def evidence(runs: Runs) -> Evidence:
    """Read off when each loss was reached first."""
    return Evidence({name: descent(runs[name]) for name in NAMES})


def descent(run: Run) -> Descent:
    """Return the epochs to every epsilon, and the power of the late phase."""
    groups = read_groups(run)
    per_epoch = max(groups.iterations[-1] / groups.epochs[-1], 1.0)
    losses, at = np.asarray(run.losses), np.asarray(run.loss_iterations) / per_epoch
    reached = losses[None, :] <= EPSILONS[:, None]
    needed = np.where(reached.any(axis=1), at[reached.argmax(axis=1)], np.nan)
    late = np.isfinite(needed) & (EPSILONS <= LATE) & (needed > 0)
    if late.sum() < 2:
        return Descent(needed, float("nan"))
    slope = np.polyfit(np.log(EPSILONS[late]), np.log(needed[late]), 1)[0]
    return Descent(needed, float(-slope))


def claims(found: Evidence) -> list[Claim]:
    """Compare the powers with Theorem 4.1."""
    listed = []
    for name, one in found.runs.items():
        text = NAMES[name].replace("$", "")
        listed.append(
            claim(
                f"polynomial-{name}",
                f"SGD reaches a loss of eps in polynomially many epochs (power of 1/eps; {text})",
                "Theorem 4.1; at most 2 by the inequality of Appendix B",
                expected=at_most(POWER),
                measured=one.power,
            )
        )
        text = f"Epochs to a loss of {EPSILONS[-1]:g} ({text})"
        listed.append(finding(f"epochs-{name}", text, "Theorem 4.1", measured=float(one.needed[-1])))
    return listed


def draw(found: Evidence) -> Drawing:
    """Draw epochs against 1/eps."""
    figure, (axes,) = new_figure(1, 1, width=3.6, aspect=0.78, extra_height=0.4)
    lines = [
        axes.loglog(1 / EPSILONS, np.maximum(one.needed, 1), color=color, ls=line, label=NAMES[name])[0]
        for (name, one), color, line in zip(found.runs.items(), SERIES, ("-", "-", (0, (2, 2))), strict=False)
    ]
    last = [one.needed[-1] for one in found.runs.values() if np.isfinite(one.needed[-1])]
    if last:
        middle = 1 / EPSILONS[len(EPSILONS) // 2 :]
        look: dict[str, Any] = {"color": PALETTE.theory, "ls": (0, (1, 1.5)), "lw": 1.0}
        lines += axes.plot(middle, 0.5 * min(last) * middle / middle[-1], label="power 1", **look)
    axes.set(xlabel=r"$1/\varepsilon$", ylabel=r"epochs to loss $\leq\varepsilon$")
    place_legend(axes, lines, "below", columns=2)
    return figure


FIGURE = Figure(
    id="sarussi2021-extra-convergence",
    caption=(
        "Epochs that SGD takes until the training loss is at most eps, against 1/eps, for a linear teacher and several "
        "widths and initialisation scales; polynomial by Theorem 4.1."
    ),
    configs={
        "small": "sarussi2021/teacher.yaml",
        "large": Wanted("sarussi2021/teacher.yaml", ("initialization.scale=10",)),
        "narrow": Wanted(
            "sarussi2021/teacher.yaml",
            ("architecture.width=2", "initialization.output_value=0.70710678"),
        ),
    },
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
