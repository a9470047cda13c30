"""What the suites of all papers need: runs, evidence, claims and verdicts of a figure."""

import tempfile
from pathlib import Path

import pytest

from dynamics_cli.plotting.style import style
from dynamics_cli.reproduction.audit import MUST_FAIL
from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.reproduction.obtain import RunSource


def one_run(config, *overrides):
    """Return a finished run of a config below `configs/`."""
    return RunSource().obtain({"run": Wanted(config, overrides)})[0].run


_KNOWN = {}


def evidence_of(figure, overrides=()):
    """Return the evidence of a figure, or of the one with this id, on finished runs.

    Computed once a process: nothing may change it.
    """
    figure = load_figure(figure) if isinstance(figure, str) else figure
    key = (figure.id, *overrides)
    if key not in _KNOWN:
        runs = RunSource().obtain(figure.wanted(), overrides)
        _KNOWN[key] = figure.evidence({one.role: one.run for one in runs})
    return _KNOWN[key]


def by_id(claims):
    """Return claims by their ids, which are all different."""
    found = {one.id: one for one in claims}
    assert len(found) == len(claims)
    return found


def verdicts(claims):
    """Return id -> verdict."""
    return {one.id: one.verdict for one in claims}


def check_pure(figure, evidence):
    """Check that claims and drawing come from evidence alone and write nothing."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DYN_OUTPUTS", folder)
        patch.chdir(folder)
        claims = figure.claims(evidence)
        with style():
            drawn = figure.draw(evidence)
            layout = drawn.get_layout_engine()
            if layout is not None:
                layout.execute(drawn)  # warns of panels that do not fit
        assert figure.claims(evidence) == claims
        assert list(Path(folder).iterdir()) == []


def unfalsified(audit):
    """Return the ids of claims that break the rule for claims.

    A claim fails under each null of `MUST_FAIL` and under a null beside `untrained`, or says why it
    must hold.
    """
    further = [
        outcome.held for outcome in audit.nulls if outcome.null != "untrained" and outcome.held
    ]
    asked = [
        claim.id for claim in audit.claims if not claim.always and claim.verdict == "reproduced"
    ]
    never = [key for key in asked if all(held[key] for held in further)]
    return {*never, *(key for null in MUST_FAIL for key in audit.survivors(null))}
