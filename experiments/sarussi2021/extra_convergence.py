"""Theorem 4.1: epochs that SGD takes to a loss of at most eps, against eps, for several networks and scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics_cli import kit

from .groups import ORIGIN, read_groups

CONFIG = "sarussi2021/teacher.yaml"
NAMES = {"small": "scale 0.001, $k=50$", "large": "scale 10, $k=50$", "narrow": "scale 0.001, $k=1$"}
EPSILONS = np.geomspace(0.3, 2e-3, 30)
LATE = 0.03
"""Losses below this are in the late phase, whose power is fitted."""
POWER = 2.0
"""Appendix B: T epochs with a violation satisfy (b eps T)^2 <= a + c T, so T grows at most like eps^-2."""


Evidence = Mapping[str, kit.Floats]
"""Of every run the epochs to a loss of at most each of `EPSILONS`; NaN where it is not reached."""


def evidence(runs: kit.Runs) -> Evidence:
    """Read off when each loss was reached first."""
    needed = {}
    for name in NAMES:
        run, groups = runs[name], read_groups(runs[name])
        per_epoch = max(groups.iterations[-1] / groups.epochs[-1], 1.0)
        losses, at = np.asarray(run.losses), np.asarray(run.loss_iterations) / per_epoch
        reached = losses[None, :] <= EPSILONS[:, None]
        needed[name] = np.where(reached.any(axis=1), at[reached.argmax(axis=1)], np.nan)
    return needed


def power(needed: kit.Floats) -> float:
    """Return the exponent p of `epochs ~ eps^-p` in the late phase."""
    late = np.isfinite(needed) & (EPSILONS <= LATE) & (needed > 0)
    if late.sum() < 2:
        return float("nan")
    return -float(np.polyfit(np.log(EPSILONS[late]), np.log(needed[late]), 1)[0])


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare the powers with Theorem 4.1."""
    listed = []
    # fmt: off
    for name, one in e.items():
        text = NAMES[name].replace("$", "")
        listed.append(
            kit.claim(f"polynomial-{name}",
                      f"SGD reaches a loss of eps in polynomially many epochs (power of 1/eps; {text})",
                      "Theorem 4.1; at most 2 by the inequality of Appendix B", kit.at_most(POWER), power(one)))
    # fmt: on
    return listed


def draw(e: Evidence) -> kit.Drawing:
    """Draw epochs against 1/eps."""
    figure, (axes,) = kit.new_figure(1, 1, width=3.6, aspect=0.78, extra_height=0.4)
    lines = [
        axes.loglog(1 / EPSILONS, np.maximum(one, 1), color=color, ls=line, label=NAMES[name])[0]
        for (name, one), color, line in zip(e.items(), kit.SERIES, ("-", "-", (0, (2, 2))), strict=False)
    ]
    last = [one[-1] for one in e.values() if np.isfinite(one[-1])]
    if last:
        middle = 1 / EPSILONS[len(EPSILONS) // 2 :]
        look: dict[str, Any] = {"color": kit.PALETTE.theory, "ls": (0, (1, 1.5)), "lw": 1.0}
        lines += axes.plot(middle, 0.5 * min(last) * middle / middle[-1], label="power 1", **look)
    axes.set(xlabel=r"$1/\varepsilon$", ylabel=r"epochs to loss $\leq\varepsilon$")
    kit.place_legend(axes, lines, "below", columns=2)
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-extra-convergence",
    caption=(
        "Epochs that SGD takes until the training loss is at most eps, against 1/eps, for a linear teacher and several "
        "widths and initialisation scales; polynomial by Theorem 4.1."
    ),
    configs={
        "small": CONFIG,
        "large": kit.Wanted(CONFIG, ("initialization.scale=10",)),
        "narrow": kit.Wanted(CONFIG, ("architecture.width=2", "initialization.output_value=0.70710678")),
    },
    origin=ORIGIN,
)  # fmt: skip
