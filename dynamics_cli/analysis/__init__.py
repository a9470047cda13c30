"""From a run to pictures.

The panels that a run offers, predictions beside it, pictures of several runs, and animation.

`dyn plot` and pages call it; all that it returns is drawn by `plotting`. Begin with `panels.py`.
"""

from dynamics_cli.analysis.animation import animate_run
from dynamics_cli.analysis.panels import Panel, check_panel, draw_panel, panels_of, states_of
from dynamics_cli.analysis.theories import Prediction, prediction_charts, predictions

__all__ = [
    "Panel",
    "Prediction",
    "animate_run",
    "check_panel",
    "draw_panel",
    "panels_of",
    "prediction_charts",
    "predictions",
    "states_of",
]
