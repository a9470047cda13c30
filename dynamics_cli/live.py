"""Curves of a run while it is recorded: `live=True` of `dyn.train` and `dyn.Recorder`.

A notebook shows a page of them: `live.js`, in a widget of anywidget. In Jupyter the last page takes
the widget's place, so that the notebook keeps it. Elsewhere nothing is drawn.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics_cli.config import RunConfig
from dynamics_cli.runs.run import columns_in, of_measure
from dynamics_cli.runs.writer import LOSS, Listener
from dynamics_cli.waiting import tell

if TYPE_CHECKING:
    from dynamics_cli.pages.document import Page
    from dynamics_cli.plotting.chart import Chart

COLUMNS = 200
"""Pixel columns of a curve: the points that can be seen in them are kept."""
CURVES = 20
"""Curves of a measure that are drawn at most."""
SECONDS = 0.4
"""Time between two updates by losses, and between two by measures."""


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
            curves.end()


def _display() -> Callable[[Any], Any] | None:
    """Return the function that shows a widget in the notebook at work; None outside of one.

    Where the function returns a handle, the handle shows something else in the widget's place.
    """
    if "marimo" in sys.modules:
        import marimo

        if marimo.running_in_notebook():
            append: Callable[[Any], Any] = marimo.output.append
            return append
    if "IPython" in sys.modules:
        import IPython

        # a terminal has no kernel
        if hasattr(IPython.get_ipython(), "kernel"):
            return partial(IPython.display.display, display_id=True)
    return None


def _curves(
    name: str, config: RunConfig, hidden: Collection[str], display: Callable[[Any], Any]
) -> Curves | None:
    """Return the curves of a run; say what is missing where the extra is."""
    try:
        widget = _widget_class()()
    except ImportError:
        tell('live curves need anywidget: pip install "dynamics-cli[notebook]"')
        return None
    return Curves(name, widget, config, hidden, display)


@cache
def _widget_class() -> Any:
    """Return the class of the widget, which shows a page and sends later numbers to it.

    Raises ImportError: anywidget is not installed.
    """
    import anywidget
    import traitlets

    class LiveCurves(anywidget.AnyWidget):  # type: ignore[misc]
        """The widget that `live.js` draws."""

        _esm = Path(__file__).with_name("live.js").read_text(encoding="utf-8")
        page = traitlets.Unicode().tag(sync=True)
        described = traitlets.Dict().tag(sync=True)

    return LiveCurves


class Curves:
    """A listener that draws the losses and measures of a run in a widget."""

    def __init__(
        self,
        name: str,
        widget: Any,
        config: RunConfig,
        hidden: Collection[str],
        display: Callable[[Any], Any],
    ) -> None:
        self._name = name
        self._widget = widget
        self._config = config
        self._hidden = hidden
        self._display = display
        self._handle: Any = None
        self._new: dict[str, list[tuple[NDArray[np.int64], NDArray[Any]]]] = {}
        self._kept: dict[str, list[tuple[NDArray[Any], NDArray[Any]]]] = {}
        self._labels: dict[str, list[str]] = {}
        self._shown: dict[str, float] = {}

    def __call__(self, steps: NDArray[np.int64], values: Mapping[str, NDArray[Any]]) -> None:
        """Take a block of rows, and draw it unless the last one has just been drawn."""
        drawn = {name: numbers for name, numbers in values.items() if name not in self._hidden}
        for name, numbers in drawn.items():
            if name not in self._labels:
                columns = columns_in(self._config, name, numbers.shape[1:])
                self._labels[name] = [column.label for column in columns[:CURVES]]
            rows = numbers.reshape(len(steps), -1)[:, :CURVES]
            self._new.setdefault(name, []).append((steps, rows))

        # losses and measures come in blocks of their own, one after the other
        first = next(iter(drawn), "")
        now = time.monotonic()
        if now - self._shown.get(first, -math.inf) > SECONDS:
            self._shown[first] = now
            self.show()

    def show(self) -> Page | None:
        """Draw all rows, and return the page; nothing without any."""
        from dynamics_cli.pages.document import Page, tag
        from dynamics_cli.pages.drawn import add_chart

        names = sorted(self._labels, key=lambda name: name != LOSS)
        charts = [chart for name in names if (chart := self._chart(name)).lines]
        if not charts:
            return None
        page = Page(self._name, self._name)
        page.body.append(tag("div", *(add_chart(page, chart) for chart in charts), class_="panels"))
        described = page.described()
        before = self._widget.described
        self._widget.described = described
        if len(before.get("panels", ())) != len(page.panels) or not before:
            self._widget.page = page._repr_html_()
        if not before:
            self._handle = self._display(self._widget)
        return page

    def end(self) -> None:
        """Draw all rows, in the widget's place where the notebook can keep the page."""
        page = self.show()
        if self._handle is not None:
            self._handle.update(page)
            self._widget.close()

    def _chart(self, name: str) -> Chart:
        """Return the chart of a measure or the loss; it has no lines before the first row."""
        from dynamics_cli.plotting.chart import Chart, Line, look
        from dynamics_cli.runs.titles import called

        labelled = zip(self._labels[name], self._points(name), strict=True)
        lines = [
            Line(x=x, y=y, name=label, **look(k))
            for k, (label, (x, y)) in enumerate(labelled)
            if len(x)
        ]
        linear = bool(of_measure(self._config, name, lambda measure: measure.linear))
        return Chart(lines=lines, ylabel=called(name), linear=linear)

    def _points(self, name: str) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """Return x (k,) and y (k,) of each curve, of many points those that can be seen."""
        from dynamics_cli.plotting.time_axis import decimate

        kept = self._kept.get(name) or [(np.empty(0), np.empty(0))] * len(self._labels[name])
        if name in self._new:
            steps, values = map(np.concatenate, zip(*self._new.pop(name), strict=True))
            due = ~np.isnan(values).all(axis=1)  # a measure may have times of its own
            if due.any():
                kept = [
                    decimate(np.append(x, steps[due]), np.append(y, column), columns=COLUMNS)
                    for (x, y), column in zip(kept, values[due].T, strict=True)
                ]
            self._kept[name] = kept
        return kept
