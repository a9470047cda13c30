"""Figure 8: two separable Gaussians in many dimensions, share of neurons in the PAR against epochs.

`dyn reproduce sarussi2021-fig8`. About 2 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure as Drawing

from dynamics_cli.measures.agreement import agreement_share
from dynamics_cli.measures.arrays import Floats
from dynamics_cli.measures.groups import outside_linear_regime
from dynamics_cli.plotting.layout import figure_legend, panel_label
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.reproduction.claims import Claim, claim, exactly, finding
from dynamics_cli.reproduction.figure import Figure, Runs, Wanted
from dynamics_cli.runs import Run

from .curves import DASHED, Curve, draw_over_epochs
from .trajectory import ORIGIN, Groups, read_groups

DIMENSIONS = (10, 50, 100)


@dataclass(frozen=True)
class Entrance:
    """Shares of neurons in the PAR at the recorded states (K,)."""

    epochs: Floats
    w: Floats
    u: Floats
    entered: float
    """Epoch from which on all neurons are in the PAR; NaN if never."""
    outside: float
    """Share of training and held-out points outside the linear regime at the end."""


@dataclass(frozen=True)
class Evidence:
    """The entrance into the PAR in every dimension."""

    dimensions: Mapping[int, Entrance]


def evidence(runs: Runs) -> Evidence:
    """Count the neurons in the PAR at every recorded state."""
    return Evidence({dim: entrance(runs[f"dim-{dim}"]) for dim in DIMENSIONS})


def entrance(run: Run) -> Entrance:
    """Return the shares of one run."""
    groups, data = read_groups(run), run.dataset()
    w, u = par_shares(groups, data.x, data.y)
    missing = (w < 1) | (u < 1)
    first = len(missing) - int(missing[::-1].argmax()) if missing.any() else 0
    held_out = data.x if data.x_test is None else data.x_test
    return Entrance(
        epochs=groups.epochs,
        w=w,
        u=u,
        entered=float(groups.epochs[first]) if first < len(missing) else float("nan"),
        outside=float(outside_linear_regime(held_out, *groups.last).mean()),
    )


def par_shares(groups: Groups, x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the shares (K,) of neurons w and u that are in the PAR."""
    return agreement_share(x, y, groups.W), agreement_share(x, y, groups.U, sign=-1)


def claims(found: Evidence) -> list[Claim]:
    """Compare the last shares with Appendix I."""
    listed = []
    for dim, one in found.dimensions.items():
        for kind, share in (("w", one.w), ("u", one.u)):
            listed.append(
                claim(
                    f"{kind}-{dim}",
                    f"{dim} dimensions: the network enters the PAR (share of neurons {kind} in it at the end)",
                    "Appendix I, Figure 8",
                    expected=exactly(1),
                    measured=float(share[-1]),
                )
            )
        text = f"{dim} dimensions: epoch from which on all neurons are in the PAR"
        listed.append(finding(f"entered-{dim}", text, "Figure 8", measured=one.entered))
        text = f"{dim} dimensions: share of held-out points outside the linear regime at the end"
        listed.append(finding(f"outside-{dim}", text, "Eq. 7", measured=one.outside))
    return listed


def draw(found: Evidence) -> Drawing:
    """Draw the shares of neurons w on the left, u on the right."""
    figure, axes = new_figure(2, 1, aspect=0.75, extra_height=0.25)
    colored = list(zip(found.dimensions.items(), SERIES, strict=False))
    for k, kind in enumerate(("w", "u")):
        styles = ("-", DASHED, (0, (1, 1.2)))
        curves = [
            Curve(one.epochs, getattr(one, kind), f"{dim} dimensions", color, style)
            for ((dim, one), color), style in zip(colored, styles, strict=False)
        ]
        lines = draw_over_epochs(axes[k], curves, "share in the PAR", share=True)
        panel_label(axes[k], k, f"neurons ${kind}_i$")
    figure_legend(figure, lines, columns=3)
    return figure


FIGURE = Figure(
    id="sarussi2021-fig8",
    caption=(
        "Share of neurons w (a) and u (b) in the perfect agreement regime against epochs, for two separable Gaussians "
        "in several dimensions."
    ),
    configs={
        f"dim-{dim}": Wanted("sarussi2021/gaussians_50d.yaml", (f"dataset.dim={dim}",) if dim != 50 else ())
        for dim in DIMENSIONS
    },
    origin=ORIGIN,
    evidence=evidence,
    claims=claims,
    draw=draw,
)
