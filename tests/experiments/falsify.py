"""Claims that can fail: for every claim of a figure a change of the figure's own runs under which it must fail.

A suite lists its figures' changes and calls `check_changes`; `check_complete` says which claims nobody made fail. A
change under which the networks still fit their data tells most: then it is not training itself that the claim tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dynamics_cli.reproduction.catalogue import load_figure
from dynamics_cli.reproduction.claims import Claim
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.reproduction.obtain import RunSource
from dynamics_cli.runs import Run
from dynamics_cli.runs.replica import ReplicaRun, replicas_of

from .helpers import by_id, evidence_of


@dataclass(frozen=True)
class Change:
    """A change of the runs of a figure, and the claims that must fail under it."""

    name: str
    """In words: `random labels`, `the lazy scale`, `a step of 1e-9`."""
    overrides: tuple[str, ...]
    """As after `--set`, for every run."""
    fail: tuple[str, ...]
    """Ids of the claims that are not reproduced then."""
    roles: tuple[str, ...] = ()
    """The runs that change; by default all."""
    untrained: str = ""
    """Where the networks do not fit their data any more: why no change was found after which they do."""


def claims_under(figure_id: str, change: Change) -> tuple[dict[str, Claim], dict[str, Run]]:
    """Return the claims of a figure by id, and its runs by role, under a change."""
    figure = load_figure(figure_id)
    wanted = figure.wanted()
    for role in change.roles or wanted:
        one = wanted[role]
        wanted[role] = Wanted(one.config, (*one.overrides, *change.overrides), one.replicas)
    runs = {one.role: one.run for one in RunSource().obtain(wanted)}
    return by_id(figure.claims(figure.evidence(runs))), runs


def fits(run: Run) -> bool:
    """Return whether a network fits its training data: every sign or class right, or the loss a tenth of the first.

    Of replicas each does.
    """
    if "replicas" in run.info and not isinstance(run, ReplicaRun):  # a replica has the info of all of them
        return all(fits(one) for one in replicas_of(run))
    loss, samples = run.config.loss, run.dataset()
    if loss.labels == "real":
        return bool(run.final_loss < 0.1 * run.losses[0])
    return bool((loss.predictions(run.network(-1)(samples.x)) == samples.y).all())


def check_changes(figure: str, changes: Sequence[Change]) -> None:
    """Check that each change makes fail what it names, and whether its networks fit their data as it says."""
    for change in changes:
        claims, runs = claims_under(figure, change)
        unknown = [id for id in change.fail if claims[id].kind != "claim"]
        assert not unknown, f"{figure}: {unknown} are no claims"
        held = {id: claims[id].measured for id in change.fail if claims[id].verdict != "not reproduced"}
        assert not held, f"{figure}: reproduced in spite of {change.name}: {held}"
        changed = [runs[role] for role in change.roles or runs]
        assert all(fits(run) for run in changed) != bool(change.untrained), f"{figure}: {change.name}"


def check_complete(figure: str, changes: Sequence[Change]) -> None:
    """Check that every claim of a figure that comes out fails under one of the changes."""
    claims = by_id(load_figure(figure).claims(evidence_of(figure)))
    stated = {id for id, one in claims.items() if one.kind == "claim" and one.verdict == "reproduced"}
    failing = {id for change in changes for id in change.fail}
    assert stated <= failing, f"{figure}: nothing makes {sorted(stated - failing)} fail"
