"""What Figures 2 and 9 share: a grid of initialisations (z0, y0) that are all trained, and curves of several modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter, minimum_filter

from dynamics_cli import kit

from .theory.modes import Outcome, outcome
from .trained import Curve, Paths, draw_curves, mode_curve, step, train_together, trained_handle

CELLS = 120
"""Initialisations along either axis of the diagram."""
REACH = 1.0
"""The diagram shows [-1, 1]^2."""
CASES = {"c_1": (-0.6, 0.42), "c_2": (-0.5, 0.7), "c_3": (-0.8, 0.35)}
"""(z0, y0) of the three cases of Section 3.3, placed like in the paper's picture; c_1 is on the line y = -0.7 z."""
LABELS = (((4, 2), "left"), ((-3, 3), "right"), ((-1, -11), "center"))
"""Where the names of the cases go, in points."""
STARTS = {
    "c = 0": ("[[0.2], [0.4]]", "[[0.2], [0.2]]"),
    "c = 1": ("[[1.019803902718557], [1.0770329614269007]]", "[[0.2], [0.2]]"),
    "c = -0.5": ("[[0.2], [0.2]]", "[[0.7348469228349535], [0.3674234614174767]]"),
}
"""y0 and z0 of both classes, of norms 1 and 2, for the curves."""
COLORS = ("#F3B7A6", "#BFE3D0", "#FFFFFF", "#E08A73")
"""Of frozen, solved, undecided and dead neurons."""


@dataclass(frozen=True)
class PhaseGrid:
    """Outcomes on a grid, and the paths of the three cases."""

    norm: float
    axis: kit.Floats
    """(G,) centres of the cells along z0 and along y0."""
    trained: NDArray[np.int8]
    """(G, G) what happened, y0 down the rows; values of `Outcome`, `VANISHES` where neither came to pass."""
    theory: NDArray[np.int8]
    """(G, G) what Section 3.3 says."""
    cases: Paths
    """The neurons of `CASES`, trained."""

    @property
    def agreement(self) -> float:
        """Share of cells in which both agree."""
        return float(np.mean(self.trained == self.theory))

    @property
    def disagree_inside(self) -> int:
        """Cells that disagree although all cells around them are in the same region."""
        inside = maximum_filter(self.theory, 3) == minimum_filter(self.theory, 3)
        return int(((self.trained != self.theory) & inside).sum())

    def count(self, end: Outcome) -> int:
        """Return in how many trained cells a neuron ended so."""
        return int((self.trained == end).sum())


@dataclass(frozen=True)
class Diagram:
    """The grid, and the curves with their closed forms."""

    grid: PhaseGrid
    curves: list[Curve]
    """Two classes each of `STARTS`: norm 1, norm 2."""
    coarse: list[Curve]
    """The same at ten times the step."""
    steps: tuple[float, float]
    """Coarse, fine."""


def configs(fine: tuple[str, ...], coarse: tuple[str, ...]) -> dict[str, kit.Wanted]:
    """Return the runs of all curves with the changes `fine` and, at the coarse step, `coarse`."""

    def wanted(name: str, changes: tuple[str, ...]) -> kit.Wanted:
        y, z = STARTS[name]
        start = (f"initialization.y={y}", f"initialization.z={z}")
        return kit.Wanted("tachet2018/two_classes.yaml", (*start, *changes))

    return {name: wanted(name, fine) for name in STARTS} | {f"{name}, coarse": wanted(name, coarse) for name in STARTS}


def diagram(runs: kit.Runs) -> Diagram:
    """Train the grid of the run `phase` and compare the curves with their closed forms."""
    fine, coarse = [runs[name] for name in STARTS], [runs[f"{name}, coarse"] for name in STARTS]
    return Diagram(
        grid=train_grid(runs["phase"]),
        curves=[mode_curve(run, label) for run in fine for label in (1, -1)],
        coarse=[mode_curve(run, label) for run in coarse for label in (1, -1)],
        steps=(step(coarse[0]), step(fine[0])),
    )


def train_grid(run: kit.Run) -> PhaseGrid:
    """Train the single neuron of a run on its single point from every cell of the grid."""
    x = float(run.dataset().x[0, 0])
    axis: kit.Floats = (np.arange(CELLS, dtype=np.float64) + 0.5) * (2 * REACH / CELLS) - REACH
    z0, y0 = (array.ravel() for array in np.meshgrid(axis, axis))
    total = run.iterations
    path = train_together(run, (y0 / x)[:, None], z0, snapshots=[total])
    y, z = path.w[0, :, 0] * x, path.z[0]
    frozen = (path.w[0, :, 0] == y0 / x) & (z == z0) & (y0 <= 0)
    ends = np.select([frozen, y <= 0, z > 0], [Outcome.FROZEN, Outcome.DIES, Outcome.SOLVED], Outcome.VANISHES)
    starts = np.array(list(CASES.values()))
    cases = train_together(
        run, (starts[:, 1] / x)[:, None], starts[:, 0], snapshots=np.linspace(0, total, 81).astype(np.int64)
    )
    return PhaseGrid(
        norm=abs(x),
        axis=axis,
        trained=ends.reshape(CELLS, CELLS).astype(np.int8),
        theory=outcome(y0, z0, abs(x)).reshape(CELLS, CELLS),
        cases=Paths(cases.t, cases.w * x, cases.z),
    )


def draw_diagram(
    shown: Diagram, titles: tuple[str, str, str], *, label: str, until: float | None = None
) -> tuple[kit.Drawing, list[Axes]]:
    """Draw the grid on the left, y and P (the axis `label`) on the right; return the figure and the three panels."""
    figure, axes = kit.new_figure(3, 1, width=kit.TEXT_WIDTH, aspect=1.05, extra_height=0.3)
    patches = _draw_grid(axes[0], shown.grid)
    lines = draw_curves(axes[1], shown.curves, values="y", label="$y_t$", until=until)
    draw_curves(axes[2], shown.curves, values="P", label=label, until=until)
    for k, (panel, title) in enumerate(zip(axes, titles, strict=True)):
        kit.panel_label(panel, k, title)
        panel.set_box_aspect(1)
    kit.figure_legend(figure, [*patches, *lines, trained_handle()], columns=4)
    return figure, axes


def _draw_grid(axes: Axes, grid: PhaseGrid) -> list[Patch]:
    """Draw regions, hyperbolas, asymptotes and the three cases; return handles for a legend."""
    edges = np.linspace(-REACH, REACH, len(grid.axis) + 1)
    axes.pcolormesh(edges, edges, grid.trained, cmap=ListedColormap(COLORS), vmin=-0.5, vmax=3.5, rasterized=True)
    line = np.linspace(-REACH, REACH, 400)
    for c in (0.03, 0.12, 0.3):
        upper = np.sqrt(c + (grid.norm * line) ** 2)
        right = np.sqrt(np.maximum((line**2 + c) / grid.norm**2, 0.0))
        look: dict[str, Any] = {"color": kit.PALETTE.muted, "lw": 0.6}
        axes.plot(line, upper, **look)
        axes.plot(line, -upper, **look)
        axes.plot(right, line, **look)
        axes.plot(-right, line, **look)
    for slope in (1, -1):
        axes.plot(line, slope * grid.norm * line, color=kit.PALETTE.theory, lw=0.9)
    for k, name in enumerate(CASES):
        z, y = grid.cases.z[:, k], grid.cases.w[:, k, 0]
        inside = (np.abs(z) <= REACH) & (np.abs(y) <= REACH)
        axes.plot(z[inside], y[inside], color=kit.PALETTE.neurons, lw=1.5)
        axes.plot(z[0], y[0], "o", color=kit.PALETTE.neurons, mec="white", mew=0.5)
        (dx, dy), side = LABELS[k]
        axes.annotate(f"${name}$", (z[0], y[0]), xytext=(dx, dy), textcoords="offset points", ha=side)
    axes.axhline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.axvline(0, color=kit.PALETTE.theory, lw=0.5)
    axes.set(xlim=(-REACH, REACH), ylim=(-REACH, REACH), xlabel="$z_0$", ylabel="$y_0$", box_aspect=1)
    names = {1: "solved", 0: "frozen", 3: "neuron dies"}
    return [Patch(color=COLORS[k], label=label) for k, label in names.items()]
