"""Slurm: a job array whose jobs are shards of a sweep. Requeued or preempted, a shard goes on where it was saved."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.runs.store import files
from dynamics_cli.runs.store.sealed import read_sealed, seal
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.sweeps.sweep import claim, placed
from dynamics_cli.sweeps.table import Results

PARTS = 50
"""Parts of a sweep that a job array has, if it has so many tasks."""
SUBMITTED = "slurm.json"
SCRIPT = "slurm.sh"
_AGAIN = "delete it, and the same command submits what is not done"


class JobArray:
    """The job array of a sweep: its script, and where it stands in the queue."""

    def __init__(
        self, planned: PlannedSweep, command: Sequence[str], *, out: Path | None = None, parts: int | None = None,
        at_once: int | None = None, workers: int = 1, limits: Mapping[str, str | None] | None = None,
    ) -> None:  # fmt: skip
        """Cut a sweep into parts.

        Args:
            planned: the sweep.
            command: the command that trains a part of it, without `--shard` and `--out`.
            out: its directory; by default named after it, below `outputs/sweeps`.
            parts: into how many parts it is cut; by default 50, or a part for each task if there are fewer.
            at_once: how many of them may run at the same time.
            workers: CPUs of each.
            limits: `partition`, `time` and `mem` of each, as `sbatch` takes them.

        Raises:
            UsageError: the directory holds another sweep, or a limit would be more than one word of the script.
        """
        for name, value in (limits or {}).items():
            if value and (not value.isprintable() or " " in value):  # a new line would be a command of the script
                raise UsageError(f"--{name} {value!r} holds a space or a control character")
        self.planned = planned
        directory, self.described, self.tasks = placed(planned, out)
        self.directory = directory.absolute()
        self.parts = min(parts or PARTS, max(1, len(self.tasks)))
        self._command = [*command, "--out", str(self.directory), "--workers", str(workers), "--quiet"]
        self._at_once, self._workers, self._limits = at_once, workers, limits or {}

    def script(self, parts: Sequence[int] | None = None) -> str:
        """Return the script of the array, of all parts or of some."""
        which = f"1-{self.parts}" if parts is None else ",".join(map(str, parts))
        kept = {name: os.environ[name] for name in ("DYN_OUTPUTS", "DYN_WITH") if os.environ.get(name)}
        command = shlex.join([sys.executable, "-m", "dynamics_cli", *self._command])
        return "\n".join([
            "#!/bin/bash",
            f"#SBATCH --job-name={self.described['name']}-{self.described['hash'][:10]}",
            f"#SBATCH --array={which}" + (f"%{self._at_once}" if self._at_once else ""),
            *(f"#SBATCH --{name}={value}" for name, value in self._limits.items() if value),
            f"#SBATCH --cpus-per-task={self._workers}",
            "#SBATCH --requeue",
            "#SBATCH --signal=B:TERM@60",
            f"# {len(self.planned)} jobs; then the same `dyn sweep` again writes the table",
            f"cd {shlex.quote(str(Path.cwd()))} || exit 1",
            *(f"export {name}={shlex.quote(value)}" for name, value in kept.items()),
            f'exec {command} --shard "$SLURM_ARRAY_TASK_ID/{self.parts}"',
        ])  # fmt: skip

    def left(self) -> list[int]:
        """Return the parts that hold tasks which are not done."""
        results = Results(self.planned, self.tasks, self.directory)
        todo = [k for k in range(len(self.tasks)) if not results.read(self.tasks[k])]
        return sorted({k % self.parts + 1 for k in todo})

    def queue(self) -> Counter[str]:
        """Return how many jobs of the array that was submitted last are in the queue, by their state.

        Raises:
            RunError: Slurm does not answer.
        """
        path = self.directory / SUBMITTED
        if not files.exists(path):
            return Counter()
        number = str(read_sealed(path, 1, _AGAIN)["job"])
        asked = _ask(["squeue", "--noheader", "--array", "--format=%T", "--jobs", number], unknown="Invalid job id")
        return Counter(asked.split())

    def submit(self, parts: Sequence[int]) -> str:
        """Give parts of the sweep to Slurm; return the number of the job.

        Raises:
            RunError: Slurm does not take it, or does not answer.
        """
        claim(self.directory, self.described, self.planned)
        files.save(self.directory / SCRIPT, (self.script(parts) + "\n").encode())
        number = _ask(["sbatch", "--parsable", f"--output={self.directory}/slurm-%a.log", str(self.directory / SCRIPT)])
        number = number.strip().partition(";")[0]
        submitted: dict[str, Any] = {"format": 1, "job": number, "parts": list(parts), "of": self.parts}
        files.save(self.directory / SUBMITTED, seal(submitted))
        return number


def _ask(command: Sequence[str], unknown: str = "\0") -> str:
    """Return the output of a command of Slurm; "" if it complains that a job is `unknown`, since it is over."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"{command[0]}: {error}; is Slurm there? --script-only prints the job array") from error
    if done.returncode and unknown not in done.stderr:
        raise RunError(f"{command[0]}: {done.stderr.strip() or f'it ended with {done.returncode}'}")
    return "" if done.returncode else done.stdout
