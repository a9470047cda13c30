"""From a run to pictures: the panels that a run offers, and its animation."""

# panels register when their modules are loaded: these first, in the order in which they are listed
# isort: off
from dynamics_cli.analysis.panels import training, inputs, neurons  # noqa: F401

# isort: on
from dynamics_cli.analysis.animation import animate_run
from dynamics_cli.analysis.registry import Panel, check_panel, draw_panel, panels_of, states_of
from dynamics_cli.analysis.theories import Prediction, draw_prediction, predictions

__all__ = [
    "Panel", "Prediction", "animate_run", "check_panel", "draw_panel", "draw_prediction", "panels_of", "predictions",
    "states_of",
]  # fmt: skip
