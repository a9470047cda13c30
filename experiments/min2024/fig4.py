"""Figure 4: the activation pattern of a positive neuron over time.

`dyn reproduce min2024-fig4`. About 2 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.activation import activation_patterns
from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.measures.regions import DEAD, MINUS, PLUS, pattern_changes, regions
from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs

from .shared import TRAINED, read_states


@dataclass(frozen=True)
class Evidence:
    """The neuron, and what all positive neurons of the run do."""

    y: Floats
    changes: Floats
    """(c,) iterations."""
    patterns: Bools
    """(c + 1, n)"""
    forbidden: int
    """Activations on positive data lost, or on negative data gained, by positive neurons of the whole run."""
    reaches: int
    """Region at the end."""
    candidates: int
    """Positive neurons that start active on all negative and no positive data."""


def evidence(runs: Runs) -> Evidence:
    """Find positive neurons that start in S_- and take the one that reaches S_+ last."""
    states = read_states(runs["descent"])
    active = activation_patterns(states.x, np.asarray(states.W))  # (K, n, m)
    found = regions(states.x, states.y, np.asarray(states.W))
    always = (np.asarray(states.v) > 0).all(axis=0)
    dying = np.flatnonzero(always & (found[0] == MINUS))
    living = dying[found[-1, dying] == PLUS] if len(dying) else dying
    pool = living if len(living) else dying if len(dying) else np.flatnonzero(always)
    arrivals = (found[:, pool] != PLUS).sum(axis=0)
    j = int(pool[np.argmax(arrivals)])
    changes, patterns = pattern_changes(states.iterations, active[:, :, j])
    gains = np.diff(active[:, :, always].astype(np.int8), axis=0)  # (K - 1, n, m')
    wrong = np.count_nonzero(gains[:, states.y > 0] < 0) + np.count_nonzero(gains[:, states.y < 0] > 0)
    return Evidence(states.y, changes, patterns, int(wrong), int(found[-1, j]), len(dying))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Section 3.3."""
    source = "Section 3.3, Figure 4"
    first = found.patterns[0]
    return [
        claim(
            "start",
            "The neuron starts active on all negative and no positive data (points for which not)",
            source,
            expected=exactly(0),
            measured=int(np.count_nonzero(first != (found.y < 0))),
        ),
        claim(
            "one-way",
            "No positive neuron loses a positive or gains a negative point (such changes in the run)",
            "Eq. 7, Section 3.3",
            expected=exactly(0),
            measured=found.forbidden,
        ),
        claim(
            "count",
            "It takes at most n changes of its pattern",
            "Section 3.3",
            expected=at_most(len(found.y)),
            measured=len(found.changes),
        ),
        claim(
            "end",
            "and eventually reaches S+ or Sdead (0 if not)",
            source,
            expected=exactly(1),
            measured=float(found.reaches in (PLUS, DEAD)),
        ),
        finding("candidates", "Positive neurons that start so", source, measured=found.candidates),
        finding(
            "last", "Iteration of the last change", source, measured=found.changes[-1] if len(found.changes) else 0
        ),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw a column of points for every pattern, filled where active."""
    figure, (axes,) = new_figure(1, width=4.6, aspect=0.55, extra_height=0.25)
    times = [0.0, *found.changes.tolist()]
    for k, pattern in enumerate(found.patterns):
        for row, (on, label) in enumerate(zip(pattern, found.y, strict=True)):
            color = PALETTE.positive if label > 0 else PALETTE.negative
            axes.plot(k, -row, marker="P" if label > 0 else "s", ms=9, mec=color, mfc=color if on else "white", mew=1.0)
    axes.set_xticks(range(len(times)), labels=[format_number(t) for t in times])
    axes.set_yticks([-k for k in range(len(found.y))], labels=[f"$x_{k + 1}$" for k in range(len(found.y))])
    axes.set(xlabel="iteration at which the pattern changes", xlim=(-0.5, len(times) - 0.5))
    axes.margins(y=0.12)
    looks = ((PALETTE.positive, "P", "$y_i=+1$, active"), (PALETTE.negative, "s", "$y_i=-1$, active"))
    handles = [axes.plot([], [], ls="none", marker=m, ms=7, color=c, label=t)[0] for c, m, t in looks]
    handles += axes.plot([], [], ls="none", marker="s", ms=7, mfc="white", mec=PALETTE.muted, label="not active")
    figure_legend(figure, handles, columns=3)
    return figure


FIGURE = Figure(
    id="min2024-fig4",
    caption=(
        "A positive neuron of the balanced run on the data of Figure 6 that starts active on all negative and"
        " no positive data: filled marks are the points on which it is active, at first and after each "
        "change."
    ),
    configs={"descent": "min2024/two_drops_flow.yaml"},
    origin={**TRAINED, "data": "assumed"},
    evidence=evidence,
    claims=claims,
    draw=draw,
)
