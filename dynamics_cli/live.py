"""Curves of a run while it is recorded: `live=True` of `dyn.train` and `dyn.Recorder`.

A notebook draws them: `live.js`, in a widget of anywidget whose traits hold some points of each
curve. Elsewhere nothing is drawn.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import RunConfig
from dynamics_cli.notebook import COLORS, CURVES, spans_decades
from dynamics_cli.runs.run import columns_in
from dynamics_cli.runs.writer import LOSS, Listener
from dynamics_cli.waiting import tell

POINTS = 600
"""Points of a curve that are kept at most."""
SECONDS = 0.4
"""Time between two updates by losses, and between two by measures."""
_STRIDE = 3
"""Odd, so that a curve that alternates from one iteration to the next does not look smooth."""


@contextmanager
def live_curves(
    name: str, config: RunConfig, *, live: bool, hidden: Collection[str] = ()
) -> Iterator[Listener | None]:
    """Give the listener that draws a run in the notebook at work; None where nothing draws.

    The last points are drawn when the block ends.

    Args:
        name: title of the curves.
        config: config of the run, for the names of the columns of measures.
        live: whether anything is drawn.
        hidden: measures that are not drawn.
    """
    curves = None
    if live and (display := _display()) is not None:
        curves = _curves(name, config, hidden, display)
    try:
        yield curves
    finally:
        if curves is not None:
            curves.show()


def _display() -> Callable[[Any], Any] | None:
    """Return the function that shows a widget in the notebook at work; None outside of one."""
    if "marimo" in sys.modules:
        import marimo

        if marimo.running_in_notebook():
            append: Callable[[Any], Any] = marimo.output.append
            return append
    if "IPython" in sys.modules:
        import IPython

        # a terminal has no kernel
        if hasattr(IPython.get_ipython(), "kernel"):
            display: Callable[[Any], Any] = IPython.display.display
            return display
    return None


def _curves(
    name: str, config: RunConfig, hidden: Collection[str], display: Callable[[Any], Any]
) -> Curves | None:
    """Return the curves of a run; say what is missing where the extra is."""
    try:
        widget = _widget_class()(name=name)
    except ImportError:
        tell('live curves need anywidget: pip install "dynamics-cli[notebook]"')
        return None
    return Curves(widget, config, hidden, display)


@cache
def _widget_class() -> Any:
    """Return the class of the widget.

    Its `charts` are `{"title", "log", "x", "curves": [{"label", "y"}]}`, where None stands for a
    number that is not finite.

    Raises ImportError: anywidget is not installed.
    """
    import anywidget
    import traitlets

    class LiveCurves(anywidget.AnyWidget):  # type: ignore[misc]
        """The widget that `live.js` draws."""

        _esm = Path(__file__).with_name("live.js").read_text(encoding="utf-8")
        name = traitlets.Unicode().tag(sync=True)
        colors = traitlets.List(COLORS).tag(sync=True)
        charts = traitlets.List().tag(sync=True)

    return LiveCurves


class Curves:
    """A listener that draws the losses and measures of a run in a widget."""

    def __init__(
        self,
        widget: Any,
        config: RunConfig,
        hidden: Collection[str],
        display: Callable[[Any], Any],
    ) -> None:
        self._widget = widget
        self._config = config
        self._hidden = hidden
        self._display = display
        self._points: dict[str, Points] = {}
        self._labels: dict[str, list[str]] = {}
        self._shown: dict[str, float] = {}

    def __call__(self, steps: NDArray[np.int64], values: Mapping[str, NDArray[Any]]) -> None:
        """Take a block of rows, and draw it unless the last one has just been drawn."""
        drawn = {name: numbers for name, numbers in values.items() if name not in self._hidden}
        for name, numbers in drawn.items():
            if name not in self._points:
                columns = columns_in(self._config, name, numbers.shape[1:])
                self._labels[name] = [column.label for column in columns[:CURVES]]
                self._points[name] = Points(len(self._labels[name]))
            self._points[name].extend(steps, numbers.reshape(len(steps), -1)[:, :CURVES])

        # losses and measures come in blocks of their own, one after the other
        first = next(iter(drawn), "")
        now = time.monotonic()
        if now - self._shown.get(first, -math.inf) > SECONDS:
            self._shown[first] = now
            self.show()

    def show(self) -> None:
        """Draw all points that are kept."""
        names = sorted(self._points, key=lambda name: name != LOSS)
        charts = [self._chart(name) for name in names if self._points[name].count]
        if not charts:
            return
        began = bool(self._widget.charts)
        self._widget.charts = charts
        if not began:
            self._display(self._widget)

    def _chart(self, name: str) -> dict[str, Any]:
        steps, values = self._points[name].kept()
        finite = values[np.isfinite(values)]
        log = len(finite) > 0 and spans_decades(finite.min(), finite.max())
        curves = [
            {"label": label, "y": [_finite(y) for y in column]}
            for label, column in zip(self._labels[name], values.T.tolist(), strict=True)
        ]
        title = name.replace("_", " ")
        return {"title": title, "log": bool(log), "x": steps.tolist(), "curves": curves}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


class Points:
    """Some points of curves that grow: evenly spread, the first and the last among them.

    Attributes:
        count: the points so far, without those at which nothing was measured.
    """

    def __init__(self, curves: int) -> None:
        self.count = 0
        self._stride = 1
        self._steps = np.empty(0, np.int64)
        self._values = np.empty((0, curves))
        self._last_step = self._steps
        self._last_values = self._values

    def extend(self, steps: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Add points: `steps` (k,), and `values` (k, c) of c curves."""
        due = ~np.isnan(values).all(axis=1)  # a measure may have times of its own
        steps = steps[due]
        values = values[due]
        if len(steps) == 0:
            return
        first = -self.count % self._stride
        self._steps = np.concatenate([self._steps, steps[first :: self._stride]])
        self._values = np.concatenate([self._values, values[first :: self._stride]])
        self.count += len(steps)
        while len(self._steps) > POINTS:
            self._stride *= _STRIDE
            self._steps = self._steps[::_STRIDE]
            self._values = self._values[::_STRIDE]
        self._last_step = steps[-1:]
        self._last_values = values[-1:]

    def kept(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return the steps (k,) and values (k, c) of at most `POINTS` + 1 points."""
        if (self._last_step == self._steps[-1:]).all():
            return self._steps, self._values
        steps = np.concatenate([self._steps, self._last_step])
        return steps, np.concatenate([self._values, self._last_values])
