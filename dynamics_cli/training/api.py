"""Training from Python: what `dyn train` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.runs.run import Run
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.session import obtain_run, plan_run


def train(
    config: RunConfig | str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    wait: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Train a config, or return its run when it is finished already.

    Args:
        config: a loaded config, the path of a YAML file, or the same as a mapping.
        overrides: as `--set` takes them, e.g. `["optimizer.lr=0.01"]`.
        out: the run directory itself; by default one named after the config below `outputs/runs`.
        resume: continue an interrupted run.
        force: train again even when the run is there.
        wait: wait for another process that trains the same run, or raise `RunError`.
        progress: called now and then with the iteration reached and the last loss.

    Raises:
        ConfigError: the config is not valid; all problems at once.
        DynError: anything else a user can mend; the subclass says what.

    """
    if not isinstance(config, RunConfig) or overrides:
        config = load_config(config if not isinstance(config, RunConfig) else config.model_dump(), overrides)
    plan = plan_run(config, None if out is None else Path(out))
    return obtain_run(plan, resume=resume, force=force, wait=wait, progress=progress).run
