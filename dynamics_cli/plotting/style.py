"""The one style of all figures, and how a figure becomes files.

Sizes are final sizes: a figure is as wide as it is printed (text width 5.5 inches), so that its
fonts of 7 to 9 points arrive on paper as 7 to 9 points. Colours are Okabe and Ito's (2008) where
they suffice, each with a named role. Nothing here depends on the user's `matplotlibrc`, and nothing
touches `pyplot`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from io import BytesIO
from typing import Any, ParamSpec, TypeVar, cast

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray

from dynamics_cli.errors import UsageError, did_you_mean
from dynamics_cli.process import alone

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
P = ParamSpec("P")
R = TypeVar("R")

TEXT_WIDTH = 5.5
"""Width of the text block of a conference paper, in inches."""
COLUMN_WIDTH = 3.4
"""Width of a figure with a single panel, in inches."""
REACH = 1.3
"""A label that is so many times as long as its axis is broken into lines."""
SMALL = 7.0
"""Size of notes and in-panel labels, in points."""


SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222")
"""Colours for several curves without a role of their own, in this order."""
MARKER = "o"
"""The marker of data and of measured points, in figures and on pages."""


@dataclass(frozen=True)
class Palette:
    """Colours by role; pairs that meet in one panel differ in lightness too, for grey prints."""

    data: str = "#00614A"
    function: str = "#009E73"
    neurons: str = "#0072B2"
    positive: str = "#5B2A8C"
    negative: str = "#CC3311"
    unsigned: str = "#6B6B6B"
    theory: str = "#222222"
    measured: str = "#0072B2"
    rank: str = "#A34A00"
    highlight: str = "#E69F00"
    muted: str = "#8A8A8A"
    faint: str = "#E4E4E4"
    ground: str = "#FFFFFF"
    raised: str = "#F5F5F5"
    link: str = "#005A96"
    series: tuple[str, ...] = SERIES

    def sign(self, s: float) -> str:
        """Return the colour of a neuron whose output weight has the sign of `s` (0: none)."""
        if s > 0:
            return self.positive
        if s < 0:
            return self.negative
        return self.unsigned

    def color(self, role: str) -> str:
        """Return the colour of a role; `series-9` colours the tenth of several curves."""
        name, _, number = role.partition("-")
        if number:
            return self.series[int(number) % len(self.series)]
        return str(getattr(self, name))


PALETTE = Palette()
DARK = Palette(
    data="#4FD1A8",
    function="#2FC492",
    neurons="#5CB3EA",
    positive="#B48BE0",
    negative="#FF7A5C",
    unsigned="#A0A0A0",
    theory="#E8E8E8",
    measured="#5CB3EA",
    rank="#FF8C3A",
    highlight="#F2B93B",
    muted="#808080",
    faint="#33373C",
    ground="#16181B",
    raised="#202327",
    link="#7CC0F0",
    series=("#5CB3EA", "#FF8C3A", "#33C79C", "#E39CC4", "#F2B93B", "#8FD0F5", "#E8E8E8"),
)
"""The colours of the same roles on a dark page."""

_SETTINGS: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 8.5,
    "axes.titlepad": 4,
    "axes.labelsize": 8.5,
    "axes.labelpad": 2.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "axes.prop_cycle": cycler(color=list(SERIES)),
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.minor.width": 0.5,
    "ytick.minor.width": 0.5,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "xtick.minor.size": 1.6,
    "ytick.minor.size": 1.6,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.2,
    "legend.labelspacing": 0.3,
    "legend.borderpad": 0.2,
    "figure.dpi": 100,
    "figure.constrained_layout.w_pad": 0.04,
    "figure.constrained_layout.h_pad": 0.04,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
    "svg.hashsalt": "dyn",
    "path.simplify": True,
}

MADE_BY = "dynamics-cli"
"""The program named in the metadata of a picture and in the head of a page."""
FORMATS: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": MADE_BY},
    "png": {"Software": MADE_BY},
    "svg": {"Date": None, "Creator": MADE_BY},
}
"""The formats of pictures, with the mark of `dyn`, and nothing that changes with day or version."""


_IN_STYLE = ContextVar("_IN_STYLE", default=False)


@contextmanager
def style() -> Iterator[None]:
    """Draw in dyn's style inside the context; the user's Matplotlib settings come back after it."""
    if _IN_STYLE.get():  # setting all parameters again takes as long as drawing a curve
        yield
        return
    token = _IN_STYLE.set(True)
    try:
        with alone(), mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(cast(Any, _SETTINGS))
            yield
    finally:
        _IN_STYLE.reset(token)


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Make a function draw inside `style()`, so that a panel looks the same everywhere."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with style():
            return draw(*args, **kwargs)

    return wrapper


class Drawing(Figure):
    """A figure that a notebook shows."""

    def _repr_png_(self) -> bytes:
        settle(self)
        contents = BytesIO()
        with style():
            self.savefig(contents, format="png", metadata=FORMATS["png"])
        return contents.getvalue()


@styled
def new_figure(
    columns: int = 1,
    rows: int = 1,
    *,
    width: float | None = None,
    aspect: float = 0.72,
    extra_height: float = 0.0,
) -> tuple[Drawing, list[Axes]]:
    """Return a figure of `rows` x `columns` panels and its axes in reading order.

    `width` is in inches (default: one column of a paper for a single panel, the text width for
    more), `aspect` the height of a panel divided by its width, labels included; `extra_height`
    (inches) makes room for a common legend.
    """
    if columns < 1 or rows < 1:
        raise ValueError(f"a figure needs at least one panel, not {rows} x {columns}")
    if width is None:
        width = COLUMN_WIDTH if columns == 1 else TEXT_WIDTH
    figure = Drawing(
        figsize=(width, rows * aspect * width / columns + extra_height), layout="constrained"
    )
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(rows, columns, 1 + k) for k in range(rows * columns)]


@styled
def settle(figure: Figure) -> list[Bbox]:
    """Work out the layout of `figure` and fix it; return the boxes of its axes, in fractions.

    Matplotlib's layout needs a few rounds where panels are square or legends hang below. Fixed, it
    is the same for every format and every time the figure is saved. Labels that would be cut off
    are broken into lines.
    """
    boxes = [axes.get_position(original=True) for axes in figure.axes]
    layout = figure.get_layout_engine()
    if layout is None:
        return boxes
    _break_legends(figure)
    for turn in range(7):
        before = boxes
        layout.execute(figure)
        boxes = [axes.get_position(original=True) for axes in figure.axes]
        moves = [
            np.abs(np.subtract(new.extents, old.extents)).max()
            for new, old in zip(boxes, before, strict=True)
        ]
        if not (turn < 3 and _break_labels(figure)) and max(moves, default=0.0) < 1e-4:
            break
    figure.set_layout_engine(None)
    return boxes


def _break_legends(figure: Figure) -> None:
    """Break the labels of legends that are wider than the figure, which grows by their lines."""
    renderer = cast(Any, figure.canvas).get_renderer()
    for legend in [*figure.legends, *filter(None, (axes.get_legend() for axes in figure.axes))]:
        before = legend.get_window_extent(renderer)
        if before.width > figure.bbox.width:
            longest = max(len(text.get_text()) for text in legend.get_texts())
            for text in legend.get_texts():
                _fit(text, int(0.85 * longest * figure.bbox.width / before.width))
            more = legend.get_window_extent(renderer).height - before.height
            figure.set_figheight(figure.get_figheight() + more / figure.dpi)


def _break_labels(figure: Figure) -> bool:
    """Break labels that reach far beyond their axis; return whether there were any."""
    renderer = cast(Any, figure.canvas).get_renderer()
    broken = False
    for axes in figure.axes:
        for label, room in zip((axes.xaxis.label, axes.yaxis.label), axes.bbox.size, strict=True):
            length = max(label.get_window_extent(renderer).size)
            if length > REACH * room:
                broken |= _fit(
                    label, int(len(label.get_text().split("\n")[0]) * 0.9 * room / length)
                )
    return broken


def _fit(text: Text, characters: int) -> bool:
    """Break a text into lines of `characters`, but no formula; return whether it has changed."""
    words = text.get_text()
    if "$" not in words:
        text.set_text(textwrap.fill(words.replace("\n", " "), max(8, characters)))
    return text.get_text() != words


def check_formats(formats: Sequence[str]) -> None:
    """Raise UsageError for a format of pictures other than pdf, png and svg."""
    for name in formats:
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise UsageError(
                f"no picture format {name!r}: choose from {known}{did_you_mean(name, FORMATS)}"
            )


def rendered(figure: Figure, stem: str, formats: Sequence[str]) -> dict[str, bytes]:
    """Return `figure` as files `<stem>.<format>`, by name, for every format.

    The layout is fixed first. The same figure gives the same bytes, today and tomorrow.

    Raises UsageError: a format other than pdf, png and svg.
    """
    check_formats(formats)
    settle(figure)
    pictures = {}
    with style():
        for name in formats:
            contents = BytesIO()
            figure.savefig(contents, format=name, metadata=FORMATS[name])
            pictures[f"{stem}.{name}"] = contents.getvalue()
    return pictures
