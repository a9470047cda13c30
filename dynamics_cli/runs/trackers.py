"""The losses and measures of runs in the files of other tools: TensorBoard, W&B, Trackio."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynamics_cli.config.dump import to_plain
from dynamics_cli.errors import UsageError, needing
from dynamics_cli.process import alone
from dynamics_cli.runs.run import Run, columns_of, measured
from dynamics_cli.runs.store import files

PROJECT = "dyn"
"""The project of W&B and Trackio to which runs are written."""


def export_to(runs: Mapping[str, Run], tool: str, folder: Path) -> Path:
    """Write the losses and measures of runs for a tool, into a folder that is not there yet.

    Of several runs each has a folder of its name inside; Trackio keeps all of them in one.

    Each finite number is logged at its iteration, by the name of its curve, a setting of the config
    beside them where the tool keeps settings. Nothing leaves this machine.

    Raises:
        UsageError: the tool is not known or not installed, or the folder is there.
        RunError: the folder cannot be written.
    """
    if tool not in TOOLS:
        raise UsageError(f"no tool {tool!r}; there are {', '.join(TOOLS)}")
    if files.exists(folder):
        raise UsageError(f"{folder} is there already")
    with needing(f"the export to {tool}", f'"dynamics-cli[{tool}]"'):
        for name, run in runs.items():
            inside = len(runs) > 1 and tool != "trackio"
            TOOLS[tool](run, name, folder / name if inside else folder)
    return folder


def curves(run: Run) -> dict[int, dict[str, float]]:
    """Return the finite numbers of a run by iteration, each by the name of its curve."""
    rows: dict[int, dict[str, float]] = {}

    def add(name: str, steps: Any, values: Any) -> None:
        for step, value in zip(np.asarray(steps).tolist(), values.tolist(), strict=True):
            if np.isfinite(value):
                rows.setdefault(step, {})[name] = value

    losses = np.asarray(run.losses)
    add("loss", run.loss_iterations, losses)
    for measure in run.measures:
        steps, values = measured(run, measure)
        for column, numbers in zip(columns_of(run, measure), values.T, strict=True):
            add(column.name, steps, numbers)
    return dict(sorted(rows.items()))


def _began(run: Run) -> float:
    """Return the time at which a run was started, in seconds since 1970."""
    started = run.info.get("provenance", {}).get("started")
    if started is None:
        return 0.0
    return datetime.fromisoformat(started).timestamp()


def _to_tensorboard(run: Run, _name: str, folder: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    began = _began(run)
    with files.os_errors_as_run_errors(folder, advice=""):
        writer = EventFileWriter(str(folder))
        try:
            for step, numbers in curves(run).items():
                values = [
                    Summary.Value(tag=name, simple_value=value) for name, value in numbers.items()
                ]
                event = Event(step=step, wall_time=began, summary=Summary(value=values))
                writer.add_event(event)
        finally:
            writer.close()


def _to_wandb(run: Run, name: str, folder: Path) -> None:
    import wandb

    with files.os_errors_as_run_errors(folder, advice=""):
        folder.mkdir(parents=True)
        settings = wandb.Settings(
            mode="offline", silent=True, console="off", x_disable_stats=True, save_code=False
        )
        written = wandb.init(
            project=PROJECT,
            name=name,
            dir=str(folder),
            config=to_plain(run.config),
            settings=settings,
        )
        for step, numbers in curves(run).items():
            written.log(dict(numbers), step=step)
        written.finish()


def _to_trackio(run: Run, name: str, folder: Path) -> None:
    with _environment({"TRACKIO_DIR": str(folder)}):
        from trackio import utils
        from trackio.sqlite_storage import SQLiteStorage

        # trackio reads the variable once, when it is imported
        if Path(utils.TRACKIO_DIR) != folder:
            raise UsageError("trackio was imported with another folder: export in a new process")
        rows = curves(run)
        began = datetime.fromtimestamp(_began(run), UTC).isoformat()
        with files.os_errors_as_run_errors(folder, advice=""):
            # its `init` starts a server, and its `import_csv` drops characters of names
            SQLiteStorage.bulk_log(
                project=PROJECT,
                run=name,
                metrics_list=[*rows.values()],
                steps=[*rows],
                timestamps=[began] * len(rows),
                config=to_plain(run.config),
            )


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while, in one thread at a time."""
    with alone():
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


TOOLS: Mapping[str, Callable[[Run, str, Path], None]] = {
    "tensorboard": _to_tensorboard,
    "wandb": _to_wandb,
    "trackio": _to_trackio,
}
"""The tools by name, each with what writes its files."""
