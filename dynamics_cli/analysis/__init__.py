"""From a run to pictures: the panels that a run offers, and its animation."""

# panels register when their modules are loaded: these first, in the order in which they are listed
# isort: off
from dynamics_cli.analysis.panels import training, inputs, neurons, spectrum, landscape  # noqa: F401

# isort: on
from dynamics_cli.analysis.animation import animate_run
from dynamics_cli.analysis.registry import Panel, check_panel, draw_panel, panels_of

__all__ = ["Panel", "animate_run", "check_panel", "draw_panel", "panels_of"]
