"""The panels that a run offers. A new one is a function that draws it, with `@panel` and what it needs of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from dynamics_cli.analysis.view import View
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.style import styled
from dynamics_cli.runs import Run

Draw = Callable[[View, int | None], Figure]
"""Draws the state nearest to an iteration or several states; over training, the iteration is marked."""
Need = Callable[[View], str | None]
"""Says why a run does not offer a panel, or None when it has what the panel needs."""


@dataclass(frozen=True)
class Panel:
    """A picture of a run: its name, what it shows, what it needs of the run (in this order), and how it is drawn."""

    name: str
    description: str
    needs: tuple[Need, ...]
    draw: Draw

    def missing(self, view: View) -> str | None:
        """Return why the run does not offer this panel, or None when it does."""
        return next((reason for need in self.needs if (reason := need(view)) is not None), None)


PANELS: dict[str, Panel] = {}
"""name -> panel, in the order in which they are listed and drawn"""


def panel(name: str, description: str, *needs: Need) -> Callable[[Draw], Draw]:
    """Register the decorated function as the drawer of a panel."""

    def register(draw: Draw) -> Draw:
        PANELS[name] = Panel(name, description, needs, draw)
        return draw

    return register


def panels_of(run: Run) -> list[Panel]:
    """Return the panels that `run` offers, in the order of `PANELS`."""
    view = View(run)
    return [panel for panel in PANELS.values() if panel.missing(view) is None]


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
    reason = PANELS[name].missing(view) if name in PANELS else None
    if name in PANELS and reason is None:
        return PANELS[name]
    known = ", ".join(panel.name for panel in panels_of(view.run)) or "none"
    if reason is None:
        raise UsageError(f"no panel {name!r}{did_you_mean(name, PANELS)}; this run offers {known}")
    raise UsageError(f"this run has no panel {name!r}: {reason}; it offers {known}")
