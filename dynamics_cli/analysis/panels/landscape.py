"""The loss around a trajectory, `interpolation` and `loss_slice`; `spectral_density`; `similarity` of hidden layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics_cli.analysis.curves import mark_time, value_scale
from dynamics_cli.analysis.panels.training import COLORS, bound_of
from dynamics_cli.analysis.registry import panel
from dynamics_cli.analysis.states import ROW_WIDTH
from dynamics_cli.analysis.view import View, no_data, no_network, spread
from dynamics_cli.kinds import stream
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.lanczos import density
from dynamics_cli.measures.landscape import filter_normalised, principal_plane
from dynamics_cli.plotting.layout import figure_legend, format_number, note, panel_label, place_legend
from dynamics_cli.plotting.panels.many_runs import draw_phase_diagram
from dynamics_cli.plotting.style import MARKER, PALETTE, new_figure
from dynamics_cli.plotting.time_axis import set_value_axis, visible
from dynamics_cli.recording.derivatives import features_of
from dynamics_cli.recording.weights import hidden_layers, linear_cka
from dynamics_cli.runs.columns import recorded
from dynamics_cli.runs.run import measured

POINTS, SIDE = 76, 21
"""Points of a line, and of a side of a square, at which the loss is evaluated."""
BEYOND = 0.25
"""How far lines and squares go beyond the trajectory, as a share of it."""
WORK = 2e10
"""Multiply-adds that a picture takes at most, before it takes fewer samples; at least `FEWEST`."""
FEWEST = 100
PLANE_STATES, PLANE_NUMBERS = 200, 2e7
"""States that a plane is fitted to at most, and weights of them together."""
DENSE_POINTS, WIDTH = 1000, 0.005
"""Points of a density, and the width of the Gaussians as a share of the range of eigenvalues."""
CURVES = 5
"""Densities that are drawn at most."""
TIMES = 40
"""States between which layers are compared at most."""
SAMPLES = 500
"""Samples on which layers are compared at most."""


def _no_loss(view: View) -> str | None:
    return "two networks trained against each other share no loss" if view.run.config.architecture.players else None


def _few_states(view: View) -> str | None:
    return None if view.states > 2 else "it needs three recorded states"


class Landscape:
    """Training and held-out loss of a run's network as functions of its weights, float64."""

    def __init__(self, view: View, evaluations: int) -> None:
        """Take as many samples, from the first on, as so many evaluations have time for."""
        config, data = view.run.config, view.dataset
        self._view, self._loss, self._architecture = view, config.loss, config.architecture
        self._start = view.run.state(0) if config.architecture.centered else None
        cost = evaluations * max(config.architecture.multiply_adds(self.shapes, data.d), 1)
        self.most = max(int(WORK // cost), FEWEST)
        parts = {"training": (data.x, data.y), "held-out": (data.x_test, data.y_test)}
        self.parts = {
            name: (x[: self.most], y[: self.most]) for name, (x, y) in parts.items() if x is not None and y is not None
        }
        self.note = f"{self.most} of {data.n} samples" if self.most < data.n else ""

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the weights by name."""
        return {name: array.shape[1:] for name, array in self._view.run.parameters.items()}

    def weights(self, i: int) -> Floats:
        """Return all weights of state `i` as one vector (P,)."""
        return self.flat(self._view.run.state(i))

    def flat(self, weights: Mapping[str, Floats]) -> Floats:
        """Return weights as one vector (P,)."""
        return np.concatenate([np.asarray(weights[name], np.float64).ravel() for name in self.shapes])

    def named(self, theta: Floats) -> dict[str, Floats]:
        """Return a vector (P,) as weights by name."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes.values()])
        parts = np.split(theta, ends[:-1])
        return {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def losses(self, theta: Floats) -> dict[str, float]:
        """Return the loss at weights `theta` (P,), training and held-out; not finite where it overflows."""
        found = {}
        with np.errstate(over="ignore", invalid="ignore"):
            h = self._architecture.function(self.named(theta), self._start)
            for name, (x, y) in self.parts.items():
                found[name] = float(self._loss.total(h(x), self._loss.numbered(y)))
        return found


NEEDS = (_no_loss, no_data, no_network)


@panel(
    "interpolation", "loss on the line from the first (or --at) to the last state", *NEEDS, _few_states, log="y",
    by_default=False,
)  # fmt: skip
def interpolation_figure(view: View, iteration: int | None) -> Figure:
    """Draw `L((1 - a) theta_s + a theta_T)` over `a` from -1/4 to 5/4 (Goodfellow et al. 2015, Section 3)."""
    first, last = 0 if iteration is None else view.run.index_of(iteration), view.states - 1
    first = 0 if first >= last else first
    landscape = Landscape(view, POINTS)
    a, b = landscape.weights(first), landscape.weights(last)
    shares = np.linspace(-BEYOND, 1 + BEYOND, POINTS)
    losses = [landscape.losses(a + share * (b - a)) for share in shares]
    figure, (axes,) = new_figure(1)
    every = np.array([list(one.values()) for one in losses])
    log = set_value_axis(axes, every, "loss", log=value_scale(every, view.log) == "log")
    for name, values in zip(losses[0], visible(every, log=log).T, strict=True):
        color = COLORS["train" if name == "training" else "test"]
        axes.plot(shares, values, color=color, label=name)
    names = [f"iteration {format_number(int(view.iterations[i]))}" for i in (first, last)]
    axes.set(xlabel=r"place $\alpha$ between the two states", xlim=(shares[0], shares[-1]))
    for at, name in zip((0, 1), names, strict=True):
        mark_time(axes, at, name)
    if landscape.note:
        note(axes, landscape.note)
    place_legend(axes, axes.lines[: len(losses[0])], "below")
    return figure


@panel(
    "loss_slice", "loss in the plane of the trajectory, and along two random directions", *NEEDS, _few_states,
    by_default=False,
)  # fmt: skip
def slice_figure(view: View, iteration: int | None) -> Figure:
    """Draw the loss on two planes through the last state, or the one nearest to `iteration` (Li et al. 2018).

    One is spanned by the principal directions of the trajectory, which is projected on it; the other by two random
    directions, filter-normalised, the same for every state of a run.
    """
    i = view.states - 1 if iteration is None else min(view.run.index_of(iteration), view.states - 1)
    landscape = Landscape(view, 2 * SIDE**2)
    centre = landscape.weights(i)
    states = spread(view.states, int(np.clip(PLANE_NUMBERS // len(centre), 12, PLANE_STATES)))
    moves = np.stack([landscape.weights(int(k)) - centre for k in states])
    planes = []
    if moves.any():
        directions, path, shares = principal_plane(moves)
        if shares[1] > 0:
            words = [f"principal direction {k + 1} ({100 * share:.3g} %)" for k, share in enumerate(shares)]
            planes.append(("trajectory", directions, [_reach(path[:, k]) for k in range(2)], words, path))
    rng = stream(view.run.config.seed, "loss_slice")
    drawn = [landscape.flat(filter_normalised(landscape.named(centre), rng)) for _ in range(2)]
    sides = [np.linspace(-1, 1, SIDE)] * 2
    words = [f"random direction {k + 1}, filter-normalised" for k in range(2)]
    planes.append(("random", np.stack(drawn), sides, words, np.zeros((0, 2))))
    rows = list(landscape.parts)
    figure, panels = new_figure(len(planes), len(rows), width=ROW_WIDTH if len(planes) > 1 else None, aspect=0.85)
    for column, (title, directions, (u, v), words, path) in enumerate(planes):
        points = [landscape.losses(centre + a * directions[0] + b * directions[1]) for b in v for a in u]
        for row, name in enumerate(rows):
            axes = panels[row * len(planes) + column]
            values = np.array([one[name] for one in points]).reshape(len(v), len(u))
            values = np.where(np.isfinite(values), values, np.nan)
            draw_phase_diagram(
                axes, u, v, values, xlabel=words[0], ylabel=words[1], label=f"{name} loss", contours=True
            )
            panel_label(axes, row * len(planes) + column, f"plane of the {title}" if len(path) else "random plane")
            _draw_path(axes, path)
    where = f"centre: iteration {format_number(int(view.iterations[i]))}"
    figure.suptitle(", ".join(filter(None, [where, landscape.note])), fontsize=8)
    return figure


def _reach(coordinates: Floats) -> Floats:
    """Return the side of a square that shows a path, and a part beyond it."""
    low, high = float(coordinates.min()), float(coordinates.max())
    return np.linspace(low - BEYOND * (high - low), high + BEYOND * (high - low), SIDE)


def _draw_path(axes: Axes, path: Floats) -> None:
    """Draw the trajectory (k, 2): a ring where it begins, a star where it ends, a cross at the centre."""
    if len(path):
        axes.plot(*path.T, color=PALETTE.negative, lw=1.0, marker=".", ms=2.5)
        axes.plot(*path[0], marker=MARKER, mfc="white", mec=PALETTE.negative, ms=5)
        axes.plot(*path[-1], marker="*", mfc=PALETTE.negative, mec="white", mew=0.5, ms=9)
    axes.plot(0, 0, marker="x", color="white", ms=5, zorder=2.5)


def _no_density(view: View) -> str | None:
    return None if _densities(view) else "neither spectral_density nor hessian_spectrum is recorded"


def _densities(view: View) -> list[str]:
    """Return the names of the measures that are spectra of the Hessian."""
    return [name for name in view.run.measures if recorded(view.run.config, name, lambda one: one.of_spectrum)]


@panel("spectral_density", "density of the eigenvalues of the Hessian", _no_density, log="xy")
def density_figure(view: View, iteration: int | None) -> Figure:
    """Draw the densities of some states, or of the one nearest to `iteration`, in one panel for each measure."""
    names = _densities(view)
    figure, panels = new_figure(len(names), aspect=0.8, extra_height=0.3)
    for k, (axes, name) in enumerate(zip(panels, names, strict=True)):
        steps, values = measured(view.run, name)
        chosen = spread(len(steps), CURVES) if iteration is None else [int(np.argmin(np.abs(steps - iteration)))]
        shape = view.run.measures[name].shape[1:]
        _draw_densities(axes, view, name, steps[chosen], [_rules(values[i], shape) for i in chosen])
        if len(names) > 1:
            panel_label(axes, k, name.replace("_", " "))
    figure_legend(figure, [line for axes in panels for line in axes.lines if not str(line.get_label()).startswith("_")])
    return figure


def _rules(values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return the record of a state as rules (probes, 2, steps); of all eigenvalues, each has the same weight."""
    if len(shape) == 3:
        return values.reshape(shape)
    return np.stack([values, np.full(len(values), 1 / len(values))])[None]


def _draw_densities(axes: Axes, view: View, name: str, steps: Ints, rules: list[Floats]) -> None:
    """Draw a density for each state, early states dark, with the bound of the measure."""
    nodes = np.concatenate([rule[:, 0].ravel() for rule in rules])
    low, high = float(np.nanmin(nodes)), float(np.nanmax(nodes))
    width = WIDTH * (high - low) or 1.0
    at = np.linspace(low - 5 * width, high + 5 * width, DENSE_POINTS)
    curves = np.stack([density(rule, at, width) for rule in rules])
    shown = np.where(curves > 1e-7 * curves.max(), curves, np.nan)  # tails of Gaussians are no part of it
    log = set_value_axis(axes, shown, "density", log=value_scale(shown, view.log) == "log")
    for curve, step, shade in zip(shown, steps, np.linspace(0, 0.85, len(steps)), strict=True):
        label = f"iteration {format_number(int(step))}"
        axes.plot(at, visible(curve, log=log), color=colormaps["viridis"](shade), label=label)
    line = bound_of(view.run, name)
    if line is not None and line[1] < 3 * high:
        axes.axvline(line[1], color="black", ls="--", lw=0.8, label=line[0])
    if view.log is not None and "x" in view.log:
        axes.set_xscale("symlog", linthresh=10 * width)
    axes.set_xlabel("eigenvalue")


def _no_layers(view: View) -> str | None:
    hidden = hidden_layers(view.run.config.architecture)
    return None if hidden else "it compares hidden layers of fully connected networks"


@panel(
    "similarity", "CKA of hidden layers between recorded times, and between layers",
    _no_layers, no_data, no_network, _few_states, by_default=False,
)  # fmt: skip
def similarity_figure(view: View, iteration: int | None) -> Figure:
    """Draw linear CKA (Kornblith et al. 2019) of each hidden layer between any two times, and at last between layers.

    The last panel is of the last state, or the one nearest to `iteration`.
    """
    steps = view.iterations[: view.states]
    wanted = np.linspace(steps[0], steps[-1], TIMES)
    chosen = np.unique([int(np.argmin(np.abs(steps - one))) for one in wanted])
    x = view.dataset.x[:SAMPLES]

    def features(i: int) -> list[Floats]:
        return [h for _, h in features_of(view.run.config.architecture, view.run.state(i), x)]

    at = view.states - 1 if iteration is None else min(view.run.index_of(iteration), view.states - 1)
    over, last = [features(int(i)) for i in chosen], features(at)
    depth = len(last)
    count = depth + (depth > 1)
    width = ROW_WIDTH if count > 2 else None
    figure, panels = new_figure(min(count, 3), -(-count // 3), width=width, aspect=0.85)
    grids = [_similarities([one[layer] for one in over]) for layer in range(depth)] + [_similarities(last)]
    lowest = min(float(np.nanmin(grid, initial=0.999)) for grid in grids)
    look: dict[str, Any] = {"label": "CKA", "limits": (lowest, 1.0)}  # similar states differ in the second digit
    for layer in range(depth):
        values, times = grids[layer], steps[chosen]
        draw_phase_diagram(panels[layer], times, times, values, xlabel="iteration", ylabel="iteration", **look)
        panel_label(panels[layer], layer, f"layer {layer + 1}")
    if depth > 1:
        axes, numbers = panels[depth], np.arange(1, depth + 1)
        draw_phase_diagram(axes, numbers, numbers, grids[-1], xlabel="layer", ylabel="layer", **look)
        axes.set(xticks=numbers, yticks=numbers)
        panel_label(axes, depth, f"iteration {format_number(int(steps[at]))}")
    for unused in panels[count:]:
        unused.remove()
    return figure


def _similarities(features: list[Floats]) -> Floats:
    """Return the similarity of any two of k features, (k, k)."""
    return np.array([[linear_cka(a, b) for b in features] for a in features])
