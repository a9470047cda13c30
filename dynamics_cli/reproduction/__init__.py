"""Figures of papers as programs: the runs they need, the claims they check, the picture they draw.

Names are imported when they are asked for: listing figures loads neither torch nor matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics_cli.reproduction.catalogue import Listed, figures, load_figure, papers
    from dynamics_cli.reproduction.claims import Claim, claims_table
    from dynamics_cli.reproduction.entries import FigureEntry, PaperEntry
    from dynamics_cli.reproduction.figure import Figure, Variant, Wanted
    from dynamics_cli.reproduction.reproduce import FigureResult, reproduce_figure, reproduce_figures

_HOME = {
    "Claim": "claims", "Figure": "figure", "FigureEntry": "entries", "FigureResult": "reproduce",
    "Listed": "catalogue", "PaperEntry": "entries", "Variant": "figure", "Wanted": "figure", "claims_table": "claims",
    "figures": "catalogue", "load_figure": "catalogue", "papers": "catalogue", "reproduce_figure": "reproduce",
    "reproduce_figures": "reproduce",
}  # fmt: skip

__all__ = [
    "Claim", "Figure", "FigureEntry", "FigureResult", "Listed", "PaperEntry", "Variant", "Wanted", "claims_table",
    "figures", "load_figure", "papers", "reproduce_figure", "reproduce_figures",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
