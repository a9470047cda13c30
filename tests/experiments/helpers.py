"""What the suites of all papers need: evidence, claims and verdicts of a figure, and what a drawing shows."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure as Drawing

from dynamics_cli.plotting.style import style
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


def verdicts(claims: dict[str, Claim] | Sequence[Claim]) -> dict[str, str]:
    """Return id -> verdict of what is a claim or theory, not a finding."""
    claims = list(claims.values()) if isinstance(claims, dict) else claims
    return {one.id: one.verdict for one in claims if one.kind != "finding"}


def drawing(figure: Figure, evidence: Evidence) -> Drawing:
    """Return what a figure draws, in dyn's style."""
    with style():
        return figure.draw(evidence)


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
