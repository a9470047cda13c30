"""The panels that a run offers. A new one is a function that draws it, with `@panel` and its needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from matplotlib.figure import Figure

from dynamics_cli.analysis.view import View
from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.plotting.scene import Scene
from dynamics_cli.plotting.style import styled
from dynamics_cli.plotting.time_axis import LogAxes
from dynamics_cli.runs import Run

Draw = Callable[..., Figure]
"""Draws, of a `View`, the state nearest to an iteration or several states; over training, the iteration is marked."""


class Detail(NamedTuple):
    """How finely a scene is computed."""

    points: int
    """Inputs at which functions of one input are drawn."""
    side: int
    """Pixels of a side of a map over two inputs."""
    pieces: int
    """Linear pieces that an exact boundary may cross."""
    neurons: int
    """Neurons that are drawn at most."""


PRINT = Detail(512, 384, 200_000, 10**9)
"""For pictures on paper."""
DescribeScene = Callable[[View, Sequence[int], Detail], Scene]
"""Describes, of a `View`, any state on axes that suit the states with these indices."""
Need = Callable[[View], str | None]
"""Says why a run does not offer a panel, or None when it has all that the panel needs."""


@dataclass(frozen=True)
class Panel:
    """A picture of a run: its name, its subject, its needs of the run (in this order), and how it is drawn."""

    name: str
    description: str
    needs: tuple[Need, ...]
    draw: Draw
    log: str = ""
    """Its axes that may be logarithmic."""
    scene: DescribeScene | None = None
    """Describes a picture of the same for the slider of a page."""

    def missing(self, view: View) -> str | None:
        """Return why the run does not offer this panel, or None when it does."""
        return next((reason for need in self.needs if (reason := need(view)) is not None), None)


PANELS: dict[str, Panel] = {}
"""name -> panel, in the order in which they are listed and drawn"""


def panel(
    name: str,
    description: str,
    *needs: Need,
    log: str = "",
    scene: DescribeScene | None = None,
) -> Callable[[Draw], Draw]:
    """Register the decorated function as the drawer of a panel; see `Panel`."""

    def register(draw: Draw) -> Draw:
        PANELS[name] = Panel(name, description, needs, draw, log, scene)
        return draw

    return register


def panels_of(run: Run) -> list[Panel]:
    """Return the panels that `run` offers, in the order of `PANELS`."""
    view = View(run)
    return [panel for panel in PANELS.values() if panel.missing(view) is None]


def check_panel(run: Run, name: str, log: LogAxes | None = None) -> None:
    """Raise UsageError when there is no panel `name`, `run` does not offer it, or it has no such logarithmic axes."""
    found = _offered(View(run), name)
    if log not in (None, "none") and not set(log or "") <= set(found.log):
        able = ", ".join(f"{one.name} ({one.log})" for one in panels_of(run) if one.log)
        raise UsageError(f"the panel {name!r} has no axes {log!r} that could be logarithmic; these have: {able}")


@styled
def draw_panel(run: Run, name: str, iteration: int | None = None, log: LogAxes | None = None) -> Figure:
    """Draw a panel of `run`: a state at the recorded iteration nearest to `iteration`, without it four states.

    Panels over training mark the iteration. `log` says which axes of curves are logarithmic, by default those that this
    suits. The figure has no file and no pyplot state. Raises UsageError for a panel that does not exist or that this
    run does not offer.
    """
    view = View(run, log)
    return _offered(view, name).draw(view, iteration)


def _offered(view: View, name: str) -> Panel:
    reason = PANELS[name].missing(view) if name in PANELS else None
    if name in PANELS and reason is None:
        return PANELS[name]
    measures = view.run.measures
    if name not in PANELS and name in measures:
        every = PANELS["measures"]
        return replace(every, name=name, draw=partial(every.draw, names=[name]))
    known = ", ".join(panel.name for panel in panels_of(view.run)) or "none"
    if reason is None:
        more = f", and its measures {', '.join(measures)}" if measures else ""
        raise UsageError(f"no panel {name!r}{did_you_mean(name, [*PANELS, *measures])}; this run offers {known}{more}")
    raise UsageError(f"this run has no panel {name!r}: {reason}; it offers {known}")


def states_of(run: Run, iterations: Sequence[int], messages: Callable[[str], object] | None) -> list[int | None]:
    """Return the iterations asked for, one for each recorded state; `messages` is told of one that was not recorded."""
    states: dict[int, int | None] = {}  # recorded iteration -> the first one asked for that it is nearest to
    for wanted in iterations:
        nearest = int(run.snapshot_iterations[run.index_of(wanted)])
        if nearest != wanted and messages is not None:
            messages(f"no state was recorded at iteration {wanted}; the nearest, {nearest}, is shown")
        states.setdefault(nearest, wanted)
    return list(states.values())
