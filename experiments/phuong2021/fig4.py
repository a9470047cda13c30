"""Figure 4: the first fully connected layer of the convolutional network: singular values and neurons.

`dyn reproduce phuong2021-fig4`. About 16 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Bools, Floats
from dynamics_cli.measures.neurons import cosines, norms
from dynamics_cli.measures.spectra import leading_directions, project, singular_values
from dynamics_cli.plotting.layout import panel_label
from dynamics_cli.plotting.style import new_figure
from dynamics_cli.reproduction.claims import Claim, Interval, claim, finding, less_than, most
from dynamics_cli.reproduction.figure import Figure, Runs

from .features import CONFIGS, ORIGIN, PRESETS, architecture_of
from .panels import draw_plane, draw_values, legend_of_colors, two_colors

SIGNIFICANT = 0.1
"""Share of the largest singular value above which one is significantly non-zero."""
SIGNIFICANT_TOO = (0.2, 0.05)
"""Other choices of it."""
OUTER = 0.5
"""A neuron is away from the origin from this share on of ..."""
MANY = 0.9
"""... this quantile of the norms in the plane. A single far neuron moves the largest norm, but not this one."""
NEAR = 0.25
"""Share of the largest norm up to which a neuron is near the origin."""


@dataclass(frozen=True)
class Evidence:
    """The first fully connected layer."""

    values: Floats
    """All singular values of W7."""
    points: Floats
    """(m, 2) rows on the two leading right-singular directions."""
    signs: Floats
    """(m,) signs of the output weights W8."""
    held: float
    """Share of the squared norms that the plane holds."""

    def above(self, share: float) -> int:
        """Return the number of singular values above a share of the largest."""
        return int(np.sum(self.values > share * self.values[0]))

    def outer(self, share: float = OUTER, quantile: float = MANY) -> Bools:
        """Return which neurons (m,) have a norm in the plane above a share of a quantile of all."""
        lengths = norms(self.points)
        result: Bools = lengths > share * np.quantile(lengths, quantile)
        return result

    def sorted_by_sign(self, outer: Bools) -> float:
        """Return the share of outer neurons (m,) closer to the mean of those of their sign.

        NaN when one sign has none there.
        """
        points, signs = self.points[outer], self.signs[outer]
        if not (signs > 0).any() or not (signs < 0).any():
            return float("nan")
        plus, minus = (cosines(points, points[signs == s].mean(axis=0)) for s in (1, -1))
        return float(np.mean((plus > minus) == (signs > 0)))


def evidence(runs: Runs) -> Evidence:
    """Measure the weights of the first fully connected layer."""
    run = runs["mnist"]
    section, state = architecture_of(run), run.state(-1)
    number = len(section.convolutions) + 1
    W, a = (state[f"weight_{k}"].astype(np.float64) for k in (number, number + 1))
    points = project(W, leading_directions(W))
    return Evidence(singular_values(W), points, np.sign(a[0]), float(np.sum(points**2) / np.sum(W**2)))


def claims(found: Evidence) -> list[Claim]:
    """Compare with Appendix D."""
    lengths = norms(found.points)
    outer = found.outer()
    near = lengths < NEAR * lengths.max()
    smaller = [int((found.signs[outer] == s).sum()) for s in (1, -1)]
    spread = [np.std(lengths[outer & (found.signs == s)]) / np.mean(lengths[outer & (found.signs == s)])
              for s in (1, -1) if (outer & (found.signs == s)).any()]  # fmt: skip
    return [
        claim(
            "few",
            "Very few singular values are significantly non-zero, perhaps five or ten, more than two (above 10 %)",
            "Appendix D, Figure 4a",
            expected=Interval(3, 10),
            measured=found.above(SIGNIFICANT),
        ),
        claim(
            "projection-lossy",
            "The projection on two dimensions is lossy (share of the squared norms that it holds)",
            "Appendix D",
            expected=less_than(1.0),
            measured=found.held,
        ),
        claim(
            "by-sign",
            "Two clusters away from the origin belong to the signs of W8 (share of neurons in theirs, of those with a "
            f"norm above {OUTER:g} of the {MANY:.0%} quantile)",
            "Appendix D, Figure 4b",
            expected=most(),
            measured=found.sorted_by_sign(outer),
        ),
        claim(
            "mixed",
            "A mixed cluster lies close to the origin (smaller of the shares of both signs there)",
            "Appendix D, Figure 4b",
            expected=Interval(low=0.1, text="both signs, >= 10 %"),
            measured=float(min(np.mean(found.signs[near] == s) for s in (1, -1))) if near.any() else float("nan"),
        ),
        finding("outer-smaller", "Neurons of the smaller outer cluster", "Figure 4b", measured=min(smaller)),
        finding("near", "Share of neurons near the origin", "Figure 4b", measured=float(np.mean(near))),
        finding(
            "spread",
            "Relative deviation of the norms within the outer clusters: clusters rather than rays",
            "Appendix D",
            measured=float(np.mean(spread)) if spread else float("nan"),
        ),
        *[
            finding(
                f"above-{share * 100:g}", f"Singular values above {share:.0%} of the largest", "Figure 4a",
                measured=found.above(share),
            )
            for share in SIGNIFICANT_TOO
        ],
        *[
            finding(
                f"by-sign-{share:g}", f"Outer neurons in the cluster of their sign, with a norm above {share:g} of the "
                "largest (nothing: one sign has none)", "Figure 4b",
                measured=found.sorted_by_sign(found.outer(share, 1.0)),
            )
            for share in (OUTER, NEAR)
        ],
    ]  # fmt: skip


def draw(found: Evidence) -> Drawing:
    """Draw panels a and b."""
    figure, axes = new_figure(2, 1, aspect=0.72, extra_height=0.25)
    draw_values(axes[0], found.values)
    draw_plane(axes[1], found.points, two_colors(found.signs))
    panel_label(axes[0], 0, "Singular values of $W_7$")
    panel_label(axes[1], 1, "Neurons")
    legend_of_colors(figure, "$W_8[j] > 0$", "$W_8[j] < 0$")
    return figure


FIGURE = Figure(
    id="phuong2021-fig4",
    caption=(
        "(a) The ten largest singular values of the first fully connected layer after training. (b) Its neurons on the "
        "two leading right-singular directions, orange for W8[j] > 0, blue for W8[j] < 0."
    ),
    configs=CONFIGS,
    presets=PRESETS,
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
