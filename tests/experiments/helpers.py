"""What the suites of all papers need: evidence, claims and verdicts of a figure, and what a drawing shows."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import ArrayLike

from dynamics_cli.plotting.style import FORMATS, style
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Figure, Wanted
from dynamics_cli.reproduction.obtain import RunSource
from dynamics_cli.runs import Run

Evidence = Any
"""Every figure has an evidence class of its own."""


def one_run(config: str, *overrides: str) -> Run:
    """Return a finished run of a config below `configs/`."""
    return RunSource().obtain({"run": Wanted(config, overrides)})[0].run


_KNOWN: dict[tuple[object, ...], Evidence] = {}


def evidence_of(
    figure: Figure | str, overrides: Sequence[str] = (), seed_offset: int = 0, only: Collection[str] = ()
) -> Evidence:
    """Return the evidence of a figure, or of the one with this id, on finished runs, of the roles in `only` or of all.

    Computed once a process: nothing may change it.
    """
    figure = load_figure(figure) if isinstance(figure, str) else figure
    key = (figure.id, figure.evidence, *overrides, seed_offset, *only)
    if key not in _KNOWN:
        wanted = figure.wanted(first_seed=not seed_offset)
        wanted = {role: one for role, one in wanted.items() if not only or role in only}
        runs = RunSource().obtain(wanted, overrides, seed_offset=seed_offset)
        _KNOWN[key] = figure.evidence({one.role: one.run for one in runs})
    return _KNOWN[key]


def by_id(claims: Sequence[Claim]) -> dict[str, Claim]:
    """Return claims by their ids, which are all different."""
    found = {one.id: one for one in claims}
    assert len(found) == len(claims)
    return found


def claims_of(figure: Figure | str, overrides: Sequence[str] = (), seed_offset: int = 0) -> dict[str, Claim]:
    """Return the claims of a figure by id; each has a statement, a source and a measured number."""
    figure = load_figure(figure) if isinstance(figure, str) else figure
    claims = by_id(figure.claims(evidence_of(figure, overrides, seed_offset)))
    assert all(one.source and one.statement and one.measured is not None for one in claims.values())
    return claims


def verdicts(claims: dict[str, Claim] | Sequence[Claim]) -> dict[str, str]:
    """Return id -> verdict of what is a claim or theory, not a finding."""
    claims = list(claims.values()) if isinstance(claims, dict) else claims
    return {one.id: one.verdict for one in claims if one.kind != "finding"}


def drawing(figure: Figure, evidence: Evidence) -> Drawing:
    """Return what a figure draws, in dyn's style."""
    with style():
        return figure.draw(evidence)


def shown(figure_id: str, overrides: Sequence[str] = ()) -> tuple[Evidence, Drawing]:
    """Return the evidence of a figure on finished runs, and what the figure draws of it."""
    figure = load_figure(figure_id)
    evidence = evidence_of(figure, overrides)
    return evidence, drawing(figure, evidence)


def png(drawn: Drawing) -> bytes:
    """Return a drawing as a file: equal bytes are equal pictures."""
    stream = io.BytesIO()
    with style():
        drawn.savefig(stream, format="png", dpi=60, metadata=FORMATS["png"])
    return stream.getvalue()


def check_pure(figure: Figure, evidence: Evidence) -> Drawing:
    """Check that claims and drawing come from evidence alone and write nothing; return the drawing."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYN_OUTPUTS", folder)
        patch.chdir(folder)
        claims, drawn = figure.claims(evidence), drawing(figure, evidence)
        layout = drawn.get_layout_engine()
        if layout is not None:
            with style():
                layout.execute(drawn)  # warns of panels that do not fit
        assert figure.claims(evidence) == claims
        assert list(Path(folder).iterdir()) == []
    return drawn


def titles(drawn: Drawing) -> list[str]:
    """Return the titles of the panels, left or middle, in the order of the axes; "" for none."""
    return [axes.get_title(loc="left") or axes.get_title() for axes in drawn.axes]


def labels(drawn: Drawing) -> list[tuple[str, str]]:
    """Return what the x and y axes of all panels are called."""
    return [(axes.get_xlabel(), axes.get_ylabel()) for axes in drawn.axes]


def legend(shown: Drawing | Axes) -> list[str]:
    """Return the entries of all legends of a drawing, those of its panels included, or of one panel."""
    if isinstance(shown, Axes):
        one = shown.get_legend()
        return [text.get_text() for text in one.get_texts()] if one is not None else []
    common = [text.get_text() for one in shown.legends for text in one.get_texts()]
    return common + [entry for axes in shown.axes for entry in legend(axes)]


def lines(axes: Axes) -> list[np.ndarray]:
    """Return the points (2, k) of all lines of a panel, in the order in which they were drawn."""
    return [np.array(line.get_data(), dtype=float) for line in axes.lines]


def has_line(axes: Axes, x: ArrayLike, y: ArrayLike) -> bool:
    """Return whether a line goes through exactly these points, NaN included."""
    wanted = np.array([x, y], dtype=float)
    return any(np.array_equal(points, wanted, equal_nan=True) for points in lines(axes))


def points(axes: Axes) -> list[np.ndarray]:
    """Return the points (k, 2) of all scatters of a panel, in the order in which they were drawn."""
    return [np.array(one.get_offsets(), dtype=float) for one in axes.collections]
