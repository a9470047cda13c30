"""Figure 15: A measured path and the maximal path.

`dyn reproduce min2024-fig15`. About 2 s.
"""

from __future__ import annotations

from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.layout import figure_legend, format_number
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure

from .paths import NEGATIVE, ORIGIN, POSITIVE, Evidence, draw_grid, draw_path, evidence


def claims(found: Evidence) -> list[Claim]:
    """Compare the maximal path with Appendix C.2."""
    source = "Appendix C.2, Figure 15"
    return [
        claim(
            "length",
            "The maximal path has n+ + n- edges",
            source,
            expected=exactly(POSITIVE + NEGATIVE),
            measured=len(found.longest_possible) - 1,
        ),
        claim(
            "largest",
            "Any path has at most the travel time of the maximal one (largest T(P) / T(Pmax))",
            source,
            expected=at_most(1.0),
            measured=max(path.bound for path in found.paths) / found.maximal_time,
        ),
        claim(
            "below-t1",
            "T(Pmax) is at most t1 (ratio)",
            "Appendix C.2",
            expected=at_most(1.0),
            measured=found.maximal_time / found.constants.t1,
        ),
        claim(
            "measured",
            "No neuron takes longer than t1 to reach S+ (largest time over t1)",
            "Theorem 1",
            expected=at_most(1.0),
            measured=max(path.time for path in found.paths) / found.constants.t1,
        ),
        finding("t1", "The bound t1", "Appendix C.2", measured=found.constants.t1),
        finding("slowest", "The slowest measured time", source, measured=max(path.time for path in found.paths)),
    ]


@styled
def draw(found: Evidence) -> Drawing:
    """Draw the longest measured path and the maximal one."""
    figure, (axes,) = new_figure(1, width=3.6, aspect=0.95, extra_height=0.3)
    draw_grid(axes)
    path = found.paths[0]
    measured = f"measured: {path.time:.2f}, $T(P)$ = {format_number(round(path.bound))}"
    largest = rf"$P_{{\max}}$: $T$ = {format_number(round(found.maximal_time))}"
    draw_path(axes, path.counts, PALETTE.measured, measured, shift=0.06)
    draw_path(axes, found.longest_possible, PALETTE.theory, largest, style="--", shift=-0.06)
    figure_legend(figure, axes.get_legend_handles_labels()[0], columns=1)
    return figure


FIGURE = Figure(
    id="min2024-fig15",
    caption=(
        "The longest measured path beside the maximal path of n+ + n- edges, whose travel time bounds that of"
        " every path and is itself below t1."
    ),
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
