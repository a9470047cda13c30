"""Figure 21: a single neuron with many Caratheodory solutions.

`dyn reproduce min2024-fig21`. About 1 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Floats
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import PALETTE, SERIES, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, more_than
from dynamics_cli.reproduction.figure import Figure, Runs

from .single_neuron import STATED, V, W, draw_scene, neuron

LEAVES = (0.0, 0.5, 1.0, np.inf)
"""Times t_0 at which the solutions leave Sdead."""


@dataclass(frozen=True)
class Evidence:
    """Solutions from the same start."""

    times: Floats
    paths: list[Floats]
    """(T, 3) each"""
    defects: list[float]
    apart: float
    """Least distance at the end between two of them."""


def evidence(_: Runs) -> Evidence:
    """Compute solutions of Eq. 47 that leave at different times."""
    one = neuron(1.0)
    times = np.linspace(0.0, 2.0, 4001)
    paths = [one.leave(W, V, at, times) for at in LEAVES]
    ends = [path[-1] for path in paths]
    apart = min(float(np.linalg.norm(a - b)) for k, a in enumerate(ends) for b in ends[:k])
    return Evidence(times, paths, [one.defect(times, path) for path in paths], apart)


def claims(found: Evidence) -> list[Claim]:
    """Compare with Appendix E.4."""
    source = "Appendix E.4, Figure 21"
    return [
        claim(
            "solutions",
            "Each path satisfies theta(t) = theta(0) + int F (largest defect; the grid gives 1e-3)",
            source,
            expected=at_most(1e-3),
            measured=max(found.defects),
        ),
        claim(
            "stays",
            "Staying for ever is one of them (defect)",
            source,
            expected=exactly(0.0),
            measured=found.defects[-1],
        ),
        claim(
            "different",
            "They differ although they start at the same point (least distance at t = 2)",
            source,
            expected=more_than(0.05),
            measured=found.apart,
        ),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw the field, and the first coordinate over time."""
    figure, axes = new_figure(2, aspect=0.8)
    draw_scene(axes[0], neuron(1.0))
    axes[0].plot(*found.paths[0][:, :2].T, color=SERIES[0], lw=1.6, zorder=5)
    for k, (at, path) in enumerate(zip(LEAVES, found.paths, strict=True)):
        label = f"leaves at $t_0={at:g}$" if np.isfinite(at) else "stays for ever"
        axes[1].plot(
            found.times,
            path[:, 0],
            color=SERIES[k] if np.isfinite(at) else PALETTE.theory,
            label=label,
            ls=("-", "--", "-.", ":")[k],
        )
    axes[1].set(xlabel="time $t$", ylabel=r"$\langle x, w(t)\rangle$")
    axes[1].legend(loc="upper left")
    panel_label(axes[0], 0, "flow at $v=1$")
    panel_label(axes[1], 1, "four solutions")
    return figure


FIGURE = Figure(
    id="min2024-fig21",
    caption=(
        "As Figure 20 with label +1 and sigma'(0) = 0: the neuron can stay on the boundary of Sdead or leave "
        "it at any time; all of these are Caratheodory solutions."
    ),
    origin=STATED,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
