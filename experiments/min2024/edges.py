"""Figures 16 and 17: which edge of the maximal path bounds which edge of a measured one."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.arrays import Bools
from dynamics_cli.plotting.layout import figure_legend
from dynamics_cli.plotting.style import PALETTE, new_figure, styled
from dynamics_cli.reproduction.claims import Claim, at_most, claim, exactly
from dynamics_cli.theory.early_alignment import edge_times

from .paths import Evidence, Path, draw_grid, draw_path


def _chosen(path: Path, loses: bool) -> Bools:
    """Return which edges (L,) lose a negative point (or, if not `loses`, only gain positive ones)."""
    down = np.diff(path.counts[:, 1]) < 0
    return down if loses else ~down


def correspondence_claims(found: Evidence, source: str, *, loses: bool) -> list[Claim]:
    """Check for all measured paths that partners take at least as long and are used once."""
    largest = edge_times(found.longest_possible, found.constants.rate)
    shares, twice = [0.0], 0
    for path in found.paths:
        kept = _chosen(path, loses)
        shares += (edge_times(path.counts, found.constants.rate) / largest[path.edges])[kept].tolist()
        twice += len(path.edges) - len(set(path.edges.tolist()))
    return [
        claim(
            "shorter",
            "The travel time of an edge is at most that of its partner in the maximal path (largest ratio)",
            source,
            expected=at_most(1.0),
            measured=max(shares),
        ),
        claim(
            "once",
            "The correspondence is one to one (edges of the maximal path that are used again)",
            source,
            expected=exactly(0),
            measured=twice,
        ),
    ]


@styled
def draw_correspondence(found: Evidence, *, loses: bool) -> Drawing:
    """Draw the longest measured path, the maximal one, and arrows between partners."""
    figure, (axes,) = new_figure(1, width=3.6, aspect=0.95, extra_height=0.3)
    draw_grid(axes)
    path = found.paths[0]
    draw_path(axes, path.counts, PALETTE.measured, "measured path", shift=0.06)
    draw_path(axes, found.longest_possible, PALETTE.theory, r"$P_{\max}$", style="--", shift=-0.06)
    middles = (path.counts[1:] + path.counts[:-1]) / 2 + 0.06
    partners = (found.longest_possible[1:] + found.longest_possible[:-1])[path.edges] / 2 - 0.06
    for start, end, kept in zip(middles, partners, _chosen(path, loses), strict=True):
        if kept and np.linalg.norm(end - start) > 0.3:
            look = {"arrowstyle": "->", "color": PALETTE.rank, "lw": 0.9, "connectionstyle": "arc3,rad=0.15"}
            axes.annotate("", end, start, arrowprops=look, zorder=4)
    axes.plot([], [], color=PALETTE.rank, lw=0.9, label="takes at least as long")
    figure_legend(figure, axes.get_legend_handles_labels()[0], columns=3)
    return figure
