"""Trajectories of a shared neuron on the hyperboloids of Theorem 3.4: Figures 3 (left) and 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.lines import Line2D
from mpl_toolkits.mplot3d import Axes3D
from numpy.typing import NDArray

from dynamics_cli import kit

from .theory.shared_neuron import SharedNeuron, hyperboloid, shared_neuron
from .trained import LEARNT, step, train_together, trained_handle

COLORS = {1: "#2E8B57", 2: "#E0B000", 0: "#8A8A8A"}
"""The paper's green where D_1 prevails (beta reaches 0), yellow where D_2 does (alpha reaches 0)."""
REACH = 2.0
"""Largest alpha, beta and |z| shown."""
UNTIL = 12.0
"""Time by which trajectories have left the picture or gone to rest."""


@dataclass(frozen=True)
class Trajectory:
    """One neuron, integrated and trained."""

    ode: SharedNeuron
    trained: kit.Floats
    """(K, 3) alpha, beta, z of the trained network at the same times."""
    c: float

    @property
    def winner(self) -> int:
        """1 when beta reached 0, 2 when alpha did, 0 when neither."""
        return 1 if np.isfinite(self.ode.beta_zero) else 2 if np.isfinite(self.ode.alpha_zero) else 0

    @property
    def path(self) -> kit.Floats:
        """(K, 3)"""
        return np.column_stack([self.ode.alpha, self.ode.beta, self.ode.z])

    @property
    def confidences(self) -> tuple[kit.Floats, kit.Floats]:
        """(K,) each: of the trained network in D_1 on x_1 and in D_2 on x_2."""
        alpha, beta, z = self.trained.T
        return 1 / (1 + np.exp(-z * np.maximum(alpha, 0.0))), 1 / (1 + np.exp(z * np.maximum(beta, 0.0)))

    @property
    def error(self) -> float:
        """Largest difference of the confidences in both classes between training and the ODE."""
        theory = self.ode.confidence_1, self.ode.confidence_2
        return max(float(np.abs(P - P_theory).max()) for P, P_theory in zip(self.confidences, theory, strict=True))

    @property
    def drift(self) -> float:
        """Largest departure of the ODE solution from its hyperboloid, relative to the size of its terms."""
        size = 1.0 + self.ode.alpha**2 + self.ode.beta**2
        return float(np.abs((hyperboloid(self.ode.alpha, self.ode.beta, self.ode.z) - self.c) / size).max())


def largest_error(learning: Sequence[Trajectory], failing: Sequence[Trajectory] = ()) -> float:
    """Return the largest `error` of all; NaN unless each network of `learning` reaches `LEARNT` in one class."""
    least = min(max(float(P.max()) for P in one.confidences) for one in learning)
    return max(one.error for one in (*learning, *failing)) if least >= LEARNT else float("nan")


def follow(run: kit.Run, starts: kit.Floats, *, until: float, points: int) -> list[Trajectory]:
    """Integrate Eq. 4 and train the shared neuron of a run from `starts (R, 3)`, for its iterations at most."""
    snapshots = np.unique(np.round(np.linspace(0.0, _updates(run, until), points)).astype(np.int64))
    paths = train_together(run, starts[:, :2], starts[:, 2], snapshots=snapshots)
    return [
        Trajectory(
            ode=shared_neuron(paths.t, float(start[0]), float(start[1]), float(start[2])),
            trained=np.column_stack([paths.w[:, r], paths.z[:, r]]),
            c=float(hyperboloid(*start)),
        )
        for r, start in enumerate(starts)
    ]


def trained_winners(run: kit.Run, starts: kit.Floats, *, until: float) -> NDArray[np.int8]:
    """Return which class alone activates the trained neuron in the end (0: none or both), (R,)."""
    end = train_together(run, starts[:, :2], starts[:, 2], snapshots=[_updates(run, until)])
    alpha, beta = end.w[0].T
    return np.select([(alpha > 0) & (beta <= 0), (beta > 0) & (alpha <= 0)], [1, 2], 0).astype(np.int8)


def _updates(run: kit.Run, until: float) -> int:
    return min(round(until / step(run)), run.iterations)


def on_sheet(alpha: kit.Floats, beta: kit.Floats, c: float) -> kit.Floats:
    """Return starts (R, 3) on the upper part of the hyperboloid `c`; raises ValueError where there is none."""
    square = alpha**2 + beta**2 - c
    if (square < 0).any():
        raise ValueError("no point of the hyperboloid lies above some of these")
    return np.column_stack([alpha, beta, np.sqrt(square)])


def mirrored(starts: kit.Floats) -> kit.Floats:
    """Return the mirror images (R, 3) of starts (Section 3.4): alpha and beta exchanged, z negative."""
    return np.asarray(starts[:, [1, 0, 2]] * np.array([1.0, 1.0, -1.0]))


def draw_sheets(axes: Axes3D, c: float, trajectories: list[Trajectory], *, elevation: float, azimuth: float) -> None:
    """Draw the hyperboloid `c` and trajectories on it, seen from the given direction."""
    _draw_surface(axes, c)
    _draw_trajectories(axes, trajectories)
    _set_box(axes, elevation=elevation, azimuth=azimuth)


def _draw_surface(axes: Axes3D, c: float) -> None:
    """Draw the part of the hyperboloid with alpha, beta >= 0 as a light net."""
    angle = np.linspace(0.0, np.pi / 2, 25)
    heights = (
        [np.linspace(-REACH, REACH, 41)] if c > 0 else [np.linspace(s * np.sqrt(-c), s * REACH, 21) for s in (1, -1)]
    )
    for height in heights:
        radius = np.sqrt(np.maximum(c + height**2, 0.0))
        z, phi = np.meshgrid(height, angle)
        r = np.broadcast_to(radius, z.shape)
        axes.plot_surface(
            r * np.cos(phi), r * np.sin(phi), z, color="#DDE6EE", alpha=0.5, linewidth=0.3, edgecolor="#B9C6D2",
            rstride=3, cstride=4, shade=False, zorder=0,
        )  # fmt: skip


def _draw_trajectories(axes: Axes3D, trajectories: list[Trajectory]) -> None:
    """Draw integrated trajectories as lines and trained ones as dots, coloured by winner."""
    for one in trajectories:
        color = COLORS[one.winner]
        path, trained = (_inside(array) for array in (one.path, one.trained))
        axes.plot(*path.T, color=color, lw=1.3, zorder=4)
        length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1))])
        places = np.searchsorted(length, np.arange(0.0, length[-1], 0.45))
        dots = trained[places[places < len(trained)]]
        axes.scatter(*dots.T, s=7, color="white", edgecolors=color, linewidths=0.8, depthshade=False, zorder=5)


def _inside(path: kit.Floats) -> kit.Floats:
    return path[(np.abs(path) <= REACH * 1.001).all(axis=1)]


def _set_box(axes: Axes3D, *, elevation: float, azimuth: float) -> None:
    """Label the three axes and choose the direction to look from."""
    axes.computed_zorder = False  # what is drawn later is in front
    axes.set_box_aspect((1, 1, 1.15), zoom=0.98)
    axes.set(xlim=(0, REACH), ylim=(0, REACH), zlim=(-REACH, REACH), xticks=[0.5, 1, 1.5], yticks=[0.5, 1, 1.5])
    axes.set_zticks([-1, 0, 1])
    axes.set_xlabel(r"$\alpha$", labelpad=-4)
    axes.set_ylabel(r"$\beta$", labelpad=-4)
    axes.set_zlabel("$z$", labelpad=-6)
    axes.tick_params(pad=-2, labelsize=7)
    axes.view_init(elev=elevation, azim=azimuth)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_facecolor("white")
        axis.pane.set_edgecolor("#DDDDDD")


def handles(*, separatrix: bool) -> list[Line2D]:
    """Return the legend, with a line for the separatrix where it is drawn."""
    made = [
        Line2D([], [], color=COLORS[1], label=r"$D_1$ prevails ($\beta\to0$)"),
        Line2D([], [], color=COLORS[2], label=r"$D_2$ prevails ($\alpha\to0$)"),
    ]
    if separatrix:
        made.append(Line2D([], [], color="black", lw=1.8, label=r"separatrix $\mathcal{C}_c$"))
    return [*made, trained_handle(3)]
