"""What was recorded over training: `loss`, `measures` and `spectral_density`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dynamics_cli.analysis.curves import draw_over_training, mark_iteration, mark_time, time_scale, value_scale
from dynamics_cli.analysis.registry import panel
from dynamics_cli.analysis.states import plateaus_of
from dynamics_cli.analysis.view import View, spread
from dynamics_cli.measures.arrays import Floats, Ints
from dynamics_cli.measures.curves import Plateau
from dynamics_cli.measures.lanczos import density
from dynamics_cli.plotting.layout import figure_legend, format_number, note, panel_label, place_legend
from dynamics_cli.plotting.panels.loss import draw_loss
from dynamics_cli.plotting.style import SERIES, new_figure
from dynamics_cli.plotting.time_axis import TimeScale, draw_curve, set_time_axis, set_value_axis, visible
from dynamics_cli.runs import Run
from dynamics_cli.runs.columns import recorded
from dynamics_cli.runs.run import columns_of, measured

LABELLED = 0.08
"""Share of the iterations that a plateau covers at least to be underlined: room for its value."""
ACCURATE = ("train_accuracy", "test_accuracy")
"""Measures that share an axis."""
ACCURACIES = (0.5, 1.0)
"""An axis of accuracies is linear, and contains these."""
MANY_CURVES = 20
"""Curves that a measure of several numbers shows at most."""
NAMES = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "held-out accuracy",
    "test_loss": "held-out loss",
    "weight_norm": "norm of all weights",
}
"""What measures are called in pictures, where it is not their own name."""
NOT_FINITE = "no finite value is recorded"
DENSE_POINTS, WIDTH = 1000, 0.005
"""Points of a density, and the width of the Gaussians as a share of the range of eigenvalues."""
CURVES = 5
"""Densities that are drawn at most."""
COLORS = {"train": SERIES[0], "test": SERIES[1]}
"""Colours of measures on training and on held-out data."""


def no_losses(view: View) -> str | None:
    """Return why there is no loss to draw, or None."""
    return None if len(view.run.losses) else "no loss is recorded yet"


@panel("loss", "training loss over iterations (and time), with its plateaus", no_losses, log="xy")
def loss_figure(view: View, iteration: int | None) -> Figure:
    """Draw the loss over iterations and, where time is not iterations x step, over time; `iteration` is marked."""
    times = view.run.times
    with_time = times is not None and np.isfinite(times).sum() >= 2
    figure, axes = new_figure(2 if with_time else 1)
    draw_run_loss(axes[0], view)
    if times is not None and with_time:
        for k in range(2):
            panel_label(axes[k], k)
        _draw_over_time(axes[1], view, np.asarray(times, dtype=np.float64), iteration)
    mark_iteration(axes[0], view, iteration)
    return figure


def draw_run_loss(axes: Axes, view: View, *, plateaus: bool = True) -> None:
    """Draw the training loss of a run over iterations, on scales that suit it."""
    iterations, losses = view.run.loss_iterations, view.run.losses
    shown = labelled_plateaus(view) if plateaus else []
    draw_loss(
        axes, iterations, losses, scale=value_scale(losses, view.log),
        time_scale=time_scale(iterations, losses, asked=view.log),
        plateaus=[(p.value, p.first, p.last) for p in shown],
    )  # fmt: skip


def labelled_plateaus(view: View) -> list[Plateau]:
    """Return the plateaus of the loss that are so long that their values have room."""
    return [p for p in plateaus_of(view) if p.length >= LABELLED * float(view.run.loss_iterations[-1])]


def _draw_over_time(axes: Axes, view: View, times: Floats, iteration: int | None) -> None:
    """Draw the loss over time; where the axis is logarithmic, from the first step on."""
    finite = np.isfinite(times)
    times, losses, iterations = times[finite], view.run.losses[finite], view.run.loss_iterations[finite]
    scale = time_scale(times, losses, asked=view.log)
    kept = times > 0 if scale == "log" else np.ones(len(times), dtype=bool)
    options: dict[str, Any] = {
        "scale": value_scale(losses[kept], view.log),
        "time_scale": scale,
        "xlabel": "time",
        "ylabel": "",
    }
    draw_loss(axes, times[kept], losses[kept], **options)
    if iteration is not None:
        i = int(np.argmin(np.abs(iterations - iteration)))
        mark_time(axes, float(times[i]), f"it. {format_number(int(iterations[i]))}")


def drawn_measures(run: Run) -> list[str]:
    """Return the names of the measures that are curves; others have panels of their own."""
    return [name for name in run.measures if recorded(run.config, name, lambda one: one.panel) in (None, "measures")]


def no_measures(view: View) -> str | None:
    """Return why there are no measures to draw, or None."""
    if not drawn_measures(view.run):
        return "no measures are recorded (see record.measures in its config)"
    return None if len(view.iterations) else "no measures are recorded yet"


@panel("measures", "accuracies, held-out loss and what else was measured", no_measures, log="xy")
def measures_figure(view: View, iteration: int | None, names: Sequence[str] = ()) -> Figure:
    """Draw accuracies in one panel, losses in one, and every other measure in one of its own; of `names`, or of all."""
    names = names or drawn_measures(view.run)
    accuracies = [name for name in ACCURATE if name in names]
    scale = time_scale(view.iterations, *(values_of(view, name) for name in names), asked=view.log)
    draw: list[Callable[[Axes], None]] = []
    if accuracies:
        draw.append(partial(_draw_accuracies, view=view, names=accuracies, scale=scale))
    if "test_loss" in names:
        draw.append(partial(_draw_losses, view=view, scale=scale))
    others = [name for name in names if name not in (*accuracies, "test_loss")]
    draw += [partial(_draw_other, view=view, name=name, scale=scale) for name in others]
    return draw_over_training(view, iteration, draw, aspect=0.8)


def values_of(view: View, name: str) -> Floats:
    """Return a measure as (K, c): one or several numbers a state."""
    return np.array(view.run.measures[name], dtype=np.float64).reshape(len(view.iterations), -1)


def _draw_accuracies(axes: Axes, *, view: View, names: Sequence[str], scale: TimeScale) -> None:
    """Draw shares of right answers between 0 and 1, training and held-out."""
    lines = []
    for name in names:
        part = name.partition("_")[0]
        look = {"color": COLORS[part], "label": NAMES[name].split()[0], "drawstyle": "steps-post"}
        lines.append(draw_curve(axes, view.iterations, values_of(view, name)[:, 0], log_time=scale == "log", **look))
    least = min(float(np.nanmin(values_of(view, name), initial=1.0)) for name in names)
    set_value_axis(axes, [least, *ACCURACIES], "accuracy", log=False)
    set_time_axis(axes, view.iterations, scale)
    place_legend(axes, lines, "below")


def _draw_losses(axes: Axes, *, view: View, scale: TimeScale) -> None:
    """Draw the loss on held-out data beside the training loss."""
    held_out, steps = values_of(view, "test_loss")[:, 0], view.iterations
    losses, at = np.asarray(view.run.losses, dtype=np.float64), np.asarray(view.run.loss_iterations)
    together = np.concatenate([held_out, losses])
    log = set_value_axis(axes, together, r"loss $L(\theta^t)$", log=value_scale(together, view.log) == "log")
    lines = []
    for x, y, part in ((at, losses, "train"), (steps, held_out, "test")):
        label = "training" if part == "train" else "held-out"
        if len(x):
            curve = visible(y, log=log)
            lines.append(draw_curve(axes, x, curve, log_time=scale == "log", color=COLORS[part], label=label))
    set_time_axis(axes, steps, scale)
    place_legend(axes, lines, "below")


def _draw_other(axes: Axes, *, view: View, name: str, scale: TimeScale) -> None:
    """Draw a measure of one or several numbers a state."""
    (steps, values), line = measured(view.run, name), bound_of(view.run, name)
    reach = values if line is None else np.append(values, line[1])
    log = set_value_axis(axes, reach, called(name), log=value_scale(values, view.log) == "log")
    columns = columns_of(view.run, name)
    named = [] if columns[0] == "1" else columns  # numbers: shades tell them apart
    colors: Sequence[Any] = SERIES[: len(named)] or SERIES[:1]
    if len(named) > len(SERIES):
        colors = list(colormaps["viridis"](np.linspace(0, 0.95, len(named))))
    handles = draw_columns(axes, steps, values, colors, log=log, scale=scale)
    for handle, column in zip(handles, named, strict=False):
        handle.set_label(column)
    handles = handles[: len(named)]
    if line is not None:
        handles.append(axes.axhline(line[1], color="black", ls="--", lw=0.8, label=line[0]))
    place_legend(axes, handles, "below", columns=3)
    set_time_axis(axes, view.iterations, scale)
    note_cut(axes, len(columns))
    if not np.isfinite(values).any():
        axes.text(0.5, 0.5, NOT_FINITE, ha="center", va="center", transform=axes.transAxes)


def called(name: str) -> str:
    """Return the name of a measure in pictures."""
    return NAMES.get(name, name.replace("_", " "))


def note_cut(axes: Axes, count: int) -> None:
    """Say under a panel that not all of `count` curves are drawn."""
    if count > MANY_CURVES:
        note(axes, f"{MANY_CURVES} of {count} numbers")


def draw_columns(
    axes: Axes, steps: Ints | Floats, values: Floats, colors: Sequence[Any], *, log: bool, scale: TimeScale, **look: Any
) -> list[Line2D]:
    """Draw the columns of values (k, c) over steps (k,), in a color each, or in ever paler shades of the only one."""
    lines = []
    columns = visible(values, log=log).T[:MANY_CURVES]
    for k, column in enumerate(columns):
        fade = 1.0 if len(colors) > 1 else 1.0 - 0.7 * k / max(1, len(columns) - 1)  # the first is the darkest
        own = {"color": colors[k % len(colors)], "alpha": fade, **look}
        lines.append(draw_curve(axes, steps, column, log_time=scale == "log", **own))
    return lines


def bound_of(run: Run, name: str) -> tuple[str, float] | None:
    """Return the line that a measure of the config has beside its curve."""
    return recorded(run.config, name, lambda one: one.bound(dict(run.config)))


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
