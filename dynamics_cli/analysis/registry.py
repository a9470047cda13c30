"""The panels: a new one is a module with two functions, why a run does not offer it and how it is drawn, and a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from matplotlib.figure import Figure

from dynamics_cli.analysis.panels.directions import directions_figure, directions_missing
from dynamics_cli.analysis.panels.explained_variance import explained_variance_figure, explained_variance_missing
from dynamics_cli.analysis.panels.function import function_figure, function_missing
from dynamics_cli.analysis.panels.loss import loss_figure, loss_missing
from dynamics_cli.analysis.panels.measures import measures_figure, measures_missing
from dynamics_cli.analysis.panels.norms import norms_figure, weights_missing
from dynamics_cli.analysis.panels.polar import polar_figure, polar_missing
from dynamics_cli.analysis.panels.rays import rays_figure, rays_missing
from dynamics_cli.analysis.panels.regions import regions_figure, regions_missing
from dynamics_cli.analysis.panels.samples import samples_figure, samples_missing
from dynamics_cli.analysis.panels.spectrum import spectrum_figure
from dynamics_cli.analysis.view import View
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.style import styled
from dynamics_cli.runs import Run


class PanelSpec(NamedTuple):
    """A panel that a run offers."""

    name: str
    description: str


class Panel(NamedTuple):
    """How a panel comes about."""

    description: str
    missing: Callable[[View], str | None]
    """Why a run does not offer it, or None when it does."""
    draw: Callable[[View, int | None], Figure]
    """Draws it: the state nearest to an iteration or several states; over training, the iteration is marked."""


PANELS: dict[str, Panel] = {
    "loss": Panel("training loss over iterations (and time), with its plateaus", loss_missing, loss_figure),
    "measures": Panel("accuracies, held-out loss and what else was measured", measures_missing, measures_figure),
    "function": Panel("learned function with the data, neurons as stars", function_missing, function_figure),
    "regions": Panel("exact decision regions of a classifier of two inputs", regions_missing, regions_figure),
    "samples": Panel("samples of a generator in the plane, over the data", samples_missing, samples_figure),
    "rays": Panel("neurons in the plane as rays, on the scale of each state", rays_missing, rays_figure),
    "polar": Panel("neurons by angle and norm, on one scale", polar_missing, polar_figure),
    "norms": Panel("norms of neurons or layers over training", weights_missing, norms_figure),
    "directions": Panel("directions of neurons over training", directions_missing, directions_figure),
    "spectrum": Panel("singular values and stable rank of weights over training", weights_missing, spectrum_figure),
    "explained_variance": Panel(
        "explained variance of the hidden weights", explained_variance_missing, explained_variance_figure
    ),
}
"""name -> panel, in the order in which they are listed and drawn"""


def panels_of(run: Run) -> list[PanelSpec]:
    """Return the panels that `run` offers, in the order of `PANELS`."""
    view = View(run)
    return [PanelSpec(name, panel.description) for name, panel in PANELS.items() if panel.missing(view) is None]


def check_panel(run: Run, name: str) -> None:
    """Raise UsageError when there is no panel `name`, or when `run` does not offer it; the message says why."""
    _offered(View(run), name)


@styled
def draw_panel(run: Run, name: str, iteration: int | None = None) -> Figure:
    """Draw a panel of `run`: a state at the recorded iteration nearest to `iteration`, without it four states.

    Panels over training mark the iteration. The figure has no file and no pyplot state. Raises UsageError for a panel
    that does not exist or that this run does not offer.
    """
    view = View(run)
    return _offered(view, name).draw(view, iteration)


def _offered(view: View, name: str) -> Panel:
    if name not in PANELS:
        known = ", ".join(spec.name for spec in panels_of(view.run)) or "none"
        raise UsageError(f"no panel {name!r}{did_you_mean(name, PANELS)}; this run offers {known}")
    reason = PANELS[name].missing(view)
    if reason is not None:
        known = ", ".join(spec.name for spec in panels_of(view.run)) or "none"
        raise UsageError(f"this run has no panel {name!r}: {reason}; it offers {known}")
    return PANELS[name]
