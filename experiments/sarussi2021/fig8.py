"""Figure 8: two separable Gaussians in many dimensions, share of neurons in the PAR against epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dynamics_cli import kit

from .groups import ORIGIN, read_groups
from .panels import DASHED, Curve, draw_over_epochs
from .theory.clustering import outside_linear_regime

DIMENSIONS = (10, 50, 100)


@dataclass(frozen=True)
class Entrance:
    """How the neurons of one run enter the PAR."""

    epochs: kit.Floats
    """(K,)"""
    shares: Mapping[str, kit.Floats]
    """Shares (K,) of neurons `w` and `u` in the PAR."""
    outside: float
    """Share of held-out points outside the linear regime at the end."""

    @property
    def entered(self) -> float:
        """Epoch from which on all neurons are in the PAR; NaN if never."""
        missing = (self.shares["w"] < 1) | (self.shares["u"] < 1)
        first = len(missing) - int(missing[::-1].argmax()) if missing.any() else 0
        return float(self.epochs[first]) if first < len(missing) else float("nan")


Evidence = Mapping[int, Entrance]
"""By dimension."""


def evidence(runs: kit.Runs) -> Evidence:
    """Count the neurons in the PAR at every recorded state."""
    return {dim: entrance(runs[f"dim-{dim}"]) for dim in DIMENSIONS}


def entrance(run: kit.Run) -> Entrance:
    """Return the shares of one run."""
    groups = read_groups(run)
    held_out = groups.data.x if groups.data.x_test is None else groups.data.x_test
    outside = float(outside_linear_regime(held_out, *groups.last).mean())
    return Entrance(groups.epochs, groups.par_shares, outside)


def claims(e: Evidence) -> list[kit.Claim]:
    """Compare the last shares with Appendix I."""
    listed = []
    # fmt: off
    for dim, one in e.items():
        listed += [
            *[kit.claim(f"{kind}-{dim}",
                        f"{dim} dimensions: the network enters the PAR (share of neurons {kind} in it at the end)",
                        "Appendix I, Figure 8", kit.exactly(1), share[-1])
              for kind, share in one.shares.items()],
            kit.finding(f"entered-{dim}", f"{dim} dimensions: epoch from which on all neurons are in the PAR",
                        "Figure 8", one.entered),
            kit.finding(f"outside-{dim}",
                        f"{dim} dimensions: share of held-out points outside the linear regime at the end",
                        "Eq. 7", one.outside),
        ]
    # fmt: on
    return listed


def draw(e: Evidence) -> kit.Drawing:
    """Draw the shares of neurons w on the left, u on the right."""
    figure, axes = kit.new_figure(2, 1, aspect=0.75, extra_height=0.25)
    styles = ("-", DASHED, (0, (1, 1.2)))
    for k, kind in enumerate(("w", "u")):
        curves = [
            Curve(one.epochs, one.shares[kind], f"{dim} dimensions", color, style)
            for (dim, one), color, style in zip(e.items(), kit.SERIES, styles, strict=False)
        ]
        lines = draw_over_epochs(axes, k, f"neurons ${kind}_i$", curves, "share in the PAR", share=True)
    kit.figure_legend(figure, lines, columns=3)
    return figure


FIGURE = kit.Figure(
    id="sarussi2021-fig8",
    caption=(
        "Share of neurons w (a) and u (b) in the perfect agreement regime against epochs, for two separable Gaussians "
        "in several dimensions."
    ),
    configs={
        f"dim-{dim}": kit.Wanted("sarussi2021/gaussians_50d.yaml", (f"dataset.dim={dim}",) if dim != 50 else ())
        for dim in DIMENSIONS
    },
    origin=ORIGIN, evidence=evidence, claims=claims, draw=draw,
)  # fmt: skip
