"""From a run to pictures: the panels that a run offers, and its animation. Names are loaded when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics_cli.analysis.animation import animate_run
    from dynamics_cli.analysis.registry import PanelSpec, check_panel, draw_panel, panels_of

_HOMES = {
    "PanelSpec": "registry",
    "animate_run": "animation",
    "check_panel": "registry",
    "draw_panel": "registry",
    "panels_of": "registry",
}
"""name -> module of this package"""

__all__ = ["PanelSpec", "animate_run", "check_panel", "draw_panel", "panels_of"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
