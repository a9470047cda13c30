"""The plan of a run, its needs and its obstacles, without training: `dyn train --dry-run`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from dynamics_cli.errors import DataMissingError
from dynamics_cli.kinds import Descent, RunConfig
from dynamics_cli.kinds.base import kinds_in
from dynamics_cli.kinds.tracing import obstacle
from dynamics_cli.runs.store.locks import is_locked
from dynamics_cli.runs.writer import check_space
from dynamics_cli.training.estimate import recorded_parameters
from dynamics_cli.training.measuring import chosen_measures
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.session import Plan, begun_run, obstacle_of


@dataclass(frozen=True)
class Prospect:
    """A plan, and the action of training it now."""

    plan: Plan
    status: str | None
    """Status of the run that is there; None without one."""
    action: str
    """In words."""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON of `--json`: the run, the action, and the needs (see `Estimate`)."""
        plan = self.plan
        run = {"path": plan.directory, "hash": plan.hash, "status": self.status, "action": self.action}
        return {**run, **asdict(plan.choice), **asdict(plan.needs)}


def prospect(plan: Plan, *, resume: bool = False, force: bool = False) -> Prospect:
    """Return the action of training a plan with these options.

    Raises:
        RunError: the disk has less room than the run needs, or the run that is there is damaged.
    """
    check_space(plan.directory, plan.needs.disk_bytes, force=force)
    run = begun_run(plan)
    if run is None:
        return Prospect(plan, None, "train from iteration 0")
    if is_locked(plan.directory):
        action = "wait for another process that holds the directory"
    elif force:
        action = f"delete the {run.status} run that is there and train from iteration 0"
    elif obstacle := obstacle_of(plan, run, resume=resume):
        action = f"refuse: {obstacle}"
    elif run.ended:
        action = f"reuse the {run.status} run that is there"
    else:
        action = "continue the unfinished run that is there from its last checkpoint"
    return Prospect(plan, run.status, action)


def check_problem(config: RunConfig) -> None:
    """Check the weights and the measures that a config names, and its data; missing data files are no mistake.

    Raises:
        InputError: the parts of the config do not fit together.
    """
    with suppress(DataMissingError):
        problem = build_problem(config)
        config.architecture.refuse_unknown_weights(problem.shapes)
        if isinstance(config.optimizer, Descent):
            problem.step_factors()
        chosen_measures(problem)
        recorded_parameters(problem)


def not_formulas(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield activations, losses and updates of a config that no stepper but autograd can train, and why."""
    for _, kind in kinds_in(plan.config):
        if why := obstacle(kind):
            yield f"{kind.section}.kind", f"{kind.kind}: {why}"
