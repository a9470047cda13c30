"""The panels that a run offers: which there are, their needs, and how they become figures.

A panel makes charts (`curves`) or a scene (`scenes`) of a `View`, which figures, animations and
pages draw alike. A new one is such a function and a row of `_PANELS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from dynamics_cli.analysis import curves, scenes
from dynamics_cli.analysis.states import story
from dynamics_cli.analysis.view import (
    PRINT,
    Detail,
    View,
    no_data,
    no_layers,
    no_network,
    no_neurons,
    no_states,
)
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.chart import ROW_WIDTH, Chart, draw_charts, relabelled
from dynamics_cli.plotting.labels import figure_legend, format_number
from dynamics_cli.plotting.scene import Scene, draw_scene
from dynamics_cli.plotting.style import COLUMN_WIDTH, new_figure, styled
from dynamics_cli.plotting.time_axis import LogAxes
from dynamics_cli.runs.marks import marks_of
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.titles import called

ToCharts = Callable[[View, int | None], list[Chart]]
"""Makes charts of a `View`, of a state near an iteration where each state has its own chart."""
ToScene = Callable[[View, Sequence[int], Detail], Scene]
"""Describes, of a `View`, any state on axes that suit the states with these indices."""
Need = Callable[[View], str | None]
"""Says why a run does not offer a panel, or None when it has all that the panel needs."""


@dataclass(frozen=True)
class Panel:
    """A picture of a run: name, subject, needs of the run in order, and charts or a scene."""

    name: str
    description: str
    needs: tuple[Need, ...]
    charts: ToCharts | None = None
    scene: ToScene | None = None
    names: Callable[[View], list[str]] | None = None
    """Says which quantities it draws over iterations, where it is a picture of them."""

    def charts_of(self, view: View, at: int | None = None) -> list[Chart]:
        """Return the charts of a view; those over training mark changes and notes.

        `at` is an iteration, where each state has charts of its own.
        """
        assert self.charts is not None
        return [marked(chart, view.run) for chart in self.charts(view, at)]

    def missing(self, view: View) -> str | None:
        """Return why the run does not offer this panel, or None when it does."""
        return next((reason for need in self.needs if (reason := need(view)) is not None), None)


def marked(chart: Chart, run: Run) -> Chart:
    """Return a chart with the marks of a run, at iterations or at their times."""
    marks = marks_of(run)
    if chart.xlabel == "time" and run.times is not None:
        at = np.interp([mark.at for mark in marks], run.loss_iterations, run.times)
        marks = [mark._replace(at=time) for mark, time in zip(marks, at.tolist(), strict=True)]
    elif chart.xlabel != "iteration":
        return chart
    return replace(chart, marks=marks)


_PANELS = (
    Panel(
        "loss",
        "losses over iterations (and time), with plateaus",
        (curves.no_losses,),
        curves.losses,
        names=curves.loss_names,
    ),
    Panel(
        "measures",
        "accuracies and what else was measured",
        (curves.no_measures,),
        curves.measures,
        names=curves.measure_names,
    ),
    Panel(
        "positions",
        "losses, accuracies and distances to predictors at each position of a sequence",
        (curves.no_positions,),
        curves.positions,
    ),
    Panel(
        "spectral_density",
        "density of the eigenvalues of the Hessian",
        (curves.no_density,),
        curves.density,
    ),
    Panel(
        "function",
        "learned function with the data, neurons as stars",
        (no_data, scenes.not_one_input, no_network),
        scene=scenes.function_scene,
    ),
    Panel(
        "regions",
        "output or class over two inputs, with the boundary of two classes",
        (no_data, scenes.not_two_inputs, no_network),
        scene=scenes.regions_scene,
    ),
    Panel(
        "rays",
        "neurons in the plane as rays, on the scale of each state",
        (no_neurons, scenes.no_plane, no_states),
        scene=scenes.rays_of_run,
    ),
    Panel(
        "coefficients",
        "coefficients of a linear predictor over training",
        (curves.no_predictor, no_data, no_network),
        curves.coefficients,
    ),
    Panel(
        "norms",
        "norms of neurons or layers over training",
        (no_layers, no_states),
        curves.norms_over_training,
    ),
    Panel(
        "directions",
        "directions of neurons over training",
        (no_neurons, no_states),
        curves.directions_of_neurons,
    ),
    Panel(
        "spectrum",
        "singular values and stable rank of weights",
        (no_layers, no_states),
        curves.spectra,
    ),
)
PANELS = {panel.name: panel for panel in _PANELS}
"""name -> panel, in the order in which they are listed and drawn"""


def panels_of(run: Run) -> list[Panel]:
    """Return the panels that `run` offers, in the order of `PANELS`."""
    view = View(run)
    return [panel for panel in PANELS.values() if panel.missing(view) is None]


def check_panel(run: Run, name: str, log: LogAxes | None = None) -> None:
    """Raise UsageError when `run` has no panel `name`, or that has no such logarithmic axes."""
    if _offered(View(run), name).charts is None and log not in (None, "none"):
        able = ", ".join(panel.name for panel in panels_of(run) if panel.charts)
        raise UsageError(
            f"the panel {name!r} has no axes {log!r} that could be logarithmic; these have: {able}"
        )


@styled
def draw_panel(
    run: Run,
    name: str,
    iteration: int | None = None,
    log: LogAxes | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Figure:
    """Draw a panel of `run`: the state nearest to `iteration`, without it four states.

    Charts over training mark the iteration. `log` says which axes of charts are logarithmic, by
    default those that this suits. `labels` has texts for measures, `loss`, `iteration` and `time`.
    The figure has no file and no pyplot state.

    Raises UsageError: the panel does not exist, or this run does not offer it.
    """
    view = View(run, log)
    panel = _offered(view, name)
    if panel.charts is None:
        return _draw_states(view, panel, iteration)
    shown = {called(key): text for key, text in labels.items()}
    charts = [relabelled(chart, shown) for chart in panel.charts_of(view, iteration)]
    if iteration is not None:
        iteration = min(iteration, run.iterations)
    return draw_charts(charts, iteration)


def _offered(view: View, name: str) -> Panel:
    measures = view.run.measures
    panel = PANELS.get(name)
    if panel is None and name in measures:
        return replace(PANELS["measures"], name=name, charts=partial(curves.measures, names=[name]))
    if panel is not None and (reason := panel.missing(view)) is None:
        return panel
    known = ", ".join(panel.name for panel in panels_of(view.run)) or "none"
    if panel is not None:
        raise UsageError(f"this run has no panel {name!r}: {reason}; it offers {known}")
    if measures:
        known += f", and its measures {', '.join(measures)}"
    close = did_you_mean(name, [*PANELS, *measures])
    raise UsageError(f"no panel {name!r}{close}; this run offers {known}")


def _draw_states(view: View, panel: Panel, iteration: int | None) -> Figure:
    """Return a figure of states in a row with one legend, on a common window or on their own."""
    assert panel.scene is not None
    states = story(view) if iteration is None else [view.run.index_of(iteration)]
    scene = panel.scene(view, states, PRINT)
    count = len(states)
    width = ROW_WIDTH * count / 4
    aspect = 1.05
    if count == 1:
        width = COLUMN_WIDTH
        aspect = 1.0 if scene.square else 0.72
    figure, panels = new_figure(count, width=width, aspect=aspect, extra_height=0.28)
    handles: list[Artist] = []
    for axes, state in zip(panels, states, strict=True):
        drawn = draw_scene(axes, scene, state, fitted=True)
        axes.set_title(f"iteration {format_number(int(view.iterations[state]))}")
        handles += drawn.handles
        if count == 1:
            continue
        axes.set_xlabel(axes.get_xlabel().replace("  (", "\n("))  # the panels of a row are narrow
        if scene.window_of is not None:
            axes.locator_params(nbins=3)
        elif axes is not panels[0]:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)
        if drawn.right is not None and axes is not panels[-1]:
            drawn.right.set_ylabel("")
            drawn.right.tick_params(labelright=False)
    order = []
    for layer in scene.layers:
        order += [layer.name, *(role.name for role in layer.roles)]
    handles.sort(key=lambda handle: order.index(str(handle.get_label())))
    figure_legend(figure, handles, columns=5)
    return figure


def states_of(
    run: Run, iterations: Sequence[int], messages: Callable[[str], object] | None
) -> list[int | None]:
    """Return the iterations asked for, one for each recorded state.

    `messages` is told of one that was not recorded.
    """
    # recorded iteration -> the first one asked for that it is nearest to
    states: dict[int, int | None] = {}
    for wanted in iterations:
        nearest = int(run.snapshot_iterations[run.index_of(wanted)])
        if nearest != wanted and messages is not None:
            messages(
                f"no state was recorded at iteration {wanted}; the nearest, {nearest}, is shown"
            )
        states.setdefault(nearest, wanted)
    return list(states.values())
