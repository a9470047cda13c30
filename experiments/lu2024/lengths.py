"""Figure 3: the length of the context at which an error of the closed forms is least."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import LogNorm

from dynamics_cli import kit

from .theory.linear_attention import new_task_error, same_task_error

KAPPAS = np.linspace(0.1, 2.1, 41)
RHOS = np.linspace(0.01, 1, 34)
ALPHAS = np.geomspace(0.01, 1000, 300)


@dataclass(frozen=True)
class Panel:
    """An error at a number of sequences, and the settings simulated in Figure 2 of the release."""

    title: str
    error: Callable[..., kit.Floats]
    tau: float
    rho: float
    """Noise of the simulated settings."""
    simulated: tuple[float, ...]
    """kappa of the simulated settings, lettered A to E."""


PANELS = (
    Panel(r"New, $\tau$ = 0.5", new_task_error, 0.5, 0.1, (0.2, 0.4, 0.5, 0.6, 1.5)),
    Panel(r"Training, $\tau$ = 0.5", same_task_error, 0.5, 0.5, (0.1, 0.3, 0.5, 0.7, 2)),
    Panel(r"New, $\tau$ = 20", new_task_error, 20, 0.5, (0.25, 0.75, 1, 1.1, 2)),
)
RELEASED_NEW = {0.2: 2.35, 0.4: 5.5, 0.5: 9.62, 0.6: 22.7}
RELEASED_SAME = {0.3: 6.15, 0.5: 5.6, 0.7: 7.4}
"""kappa -> the length that the release simulates beside 1, 100 and 1000, in panels B and A."""


def best_length(panel: Panel, kappa: float, rho: float, alphas: kit.Floats = ALPHAS) -> float:
    """Return alpha at the first minimum of the error; NaN where the error is monotonic."""
    errors = panel.error(alphas, kappa, panel.tau, rho)
    before, here, after = errors[:-2], errors[1:-1], errors[2:]
    minima = np.flatnonzero((here < before - 1e-9) & (here < after - 1e-9))
    if not minima.size:
        return float("nan")
    return float(alphas[minima[0] + 1])


@dataclass(frozen=True)
class Lengths:
    """Best lengths (panels, rhos, kappas), and whether new errors are unbounded, (taus, kappas)."""

    best: kit.Floats
    new: kit.Floats
    """Best length over the released one, (4,)."""
    same: kit.Floats
    """The same for the tasks of training, (3,)."""
    unbounded: kit.Floats


def grows(tau: float, kappa: float) -> bool:
    """Return whether the error on new tasks goes on growing in proportion to long contexts."""
    error, later = new_task_error(np.array([1e7, 1e8]), kappa, tau, 0.1)
    return bool(later > 5 * error)


def evidence(_runs: kit.Runs) -> Lengths:
    """Evaluate the closed forms."""
    coarse = ALPHAS[::3]  # colours need no more
    best = [[[best_length(p, k, rho, coarse) for k in KAPPAS] for rho in RHOS] for p in PANELS]
    new, same, _ = PANELS
    return Lengths(
        best=np.array(best),
        new=np.array([best_length(new, k, new.rho) / at for k, at in RELEASED_NEW.items()]),
        same=np.array([best_length(same, k, same.rho) / at for k, at in RELEASED_SAME.items()]),
        unbounded=np.array([[grows(p.tau, k) for k in KAPPAS] for p in (new, PANELS[2])]),
    )


def claims(e: Lengths) -> list[kit.Claim]:
    below = np.array([min(p.tau, 1) for p in (PANELS[0], PANELS[2])])[:, None] - KAPPAS
    decided = np.abs(below) > 0.02  # at the boundary itself the error grows like a root
    return [
        kit.theory(
            "least-new",
            r"The error on new tasks ($\tau$ = 0.5, $\rho$ = 0.1) is least at the lengths that the"
            r" release simulates for $\kappa$ = 0.2, 0.4, 0.5, 0.6 (ratio, the farthest of four)",
            "released grid of Figure 2 B: 2.35, 5.5, 9.62, 22.7",
            kit.around(1),
            kit.farthest(e.new),
        ),
        kit.theory(
            "least-same",
            r"The error on tasks of training ($\tau$ = 0.5, $\rho$ = 0.5) is least at the lengths"
            r" that the release simulates for $\kappa$ = 0.3, 0.5, 0.7 (ratio, the farthest of"
            " three)",
            "released grid of Figure 2 A: 6.15, 5.6, 7.4",
            kit.around(1),
            kit.farthest(e.same),
        ),
        kit.theory(
            "unbounded",
            r"With long contexts the error on new tasks is unbounded exactly for $\kappa$ < min"
            r"($\tau$, 1) (share of all $\kappa$ and both $\tau$)",
            "line in the released picture",
            kit.exactly(1),
            np.mean((e.unbounded == (below > 0))[decided]),
        ),
    ]


def draw(e: Lengths) -> kit.Drawing:
    figure, axes = kit.new_figure(3, aspect=0.9, extra_height=0.1)
    for panel, axis, best in zip(PANELS, axes, e.best, strict=True):
        axis.set_facecolor(kit.PALETTE.muted)
        image = axis.pcolormesh(
            KAPPAS, RHOS, best, norm=LogNorm(0.1, 1000), cmap="viridis", rasterized=True
        )
        axis.axvline(min(panel.tau, 1), color="C1", lw=1.4)
        for letter, kappa in zip("ABCDE", panel.simulated, strict=True):
            height = panel.rho + 0.05 * (
                letter in "BD"
            )  # neighbours are closer than letters are wide
            axis.text(kappa, height, letter, ha="center", va="center", size="small", color="white")
        axis.set(xlabel=r"tasks $\kappa = k/d$", xticks=(0.5, 1, 1.5, 2))
    axes[0].set_ylabel(r"noise $\rho$")
    figure.colorbar(image, ax=axes, aspect=25, pad=0.02).set_label(r"length $\alpha$")
    kit.panel_labels(axes, *[panel.title for panel in PANELS])
    return figure


FIGURE = kit.Figure(
    id="lu2024-fig3",
    caption=(
        "Length of the context at which an error of the closed forms is least, against the number"
        " of tasks and the noise; grey: the error is monotonic. Letters: settings that the release"
        " simulates in Figure 2; line: below min(tau, 1) tasks, errors on new tasks grow without"
        " bound with the length."
    ),
)
