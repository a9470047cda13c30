"""What `dyn train --dry-run` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamics_cli.cli import output

if TYPE_CHECKING:
    from dynamics_cli.training.session import Plan


def show_plan(plan: Plan, *, resume: bool, force: bool, as_json: bool) -> None:
    """Print what a plan would do and need.

    Raises:
        RunError: the disk has less room than the run needs.

    """
    from dynamics_cli.runs import check_space

    check_space(plan.directory, plan.needs.disk_bytes)
    status, action = _prospect(plan, resume=resume, force=force)
    needs, choice = plan.needs, plan.choice
    if as_json:
        names = {"path": plan.directory, "hash": plan.hash, "status": status, "action": action}
        output.emit_json({**names, "device": choice.device, "backend": choice.backend, **needs.as_dict()})
        return
    output.emit(
        output.pairs(
            {
                "run": str(plan.directory),
                "would": action,
                "device": choice.device,
                "backend": choice.backend,
                "parameters": str(needs.parameters),
                "iterations": str(needs.iterations),
                "snapshots": str(needs.snapshots),
                "memory": f"about {output.size(needs.memory_bytes)}, besides the libraries",
                "disk": f"about {output.size(needs.disk_bytes)}",
                "time": f"about {output.duration(needs.seconds)}, within a factor of a few",
            }
        )
    )


def _prospect(plan: Plan, *, resume: bool, force: bool) -> tuple[str | None, str]:
    """Return the status of the run that is there, if any, and what training would do now."""
    from dynamics_cli.runs import is_locked, is_run, load_run

    if not is_run(plan.directory):
        return None, "train from iteration 0"
    run = load_run(plan.directory, verify=False)
    if is_locked(plan.directory):
        action = "wait for another process that holds the directory"
    elif force:
        action = f"delete the {run.status} run that is there and train from iteration 0"
    elif run.hash != plan.hash:
        action = "refuse: the directory holds a run of another config (--force would replace it)"
    elif run.status in ("complete", "diverged"):
        action = f"reuse the {run.status} run that is there"
    elif resume:
        action = "continue the unfinished run that is there from its last checkpoint"
    else:
        action = "refuse: the run that is there is unfinished (--resume continues it, --force starts over)"
    return run.status, action
