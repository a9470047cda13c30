"""The runs that a figure needs: reused where they are finished, continued where interrupted, trained otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.errors import RunError
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.reproduction.together import obtain_as_one, obtain_together
from dynamics_cli.runs import CorruptRunError, Run
from dynamics_cli.runs.replica import ReplicaRun
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.session import Obtained, obtain_run, plan_run

Messages = Callable[[str], None]
"""Told in one sentence each what a user may want to know."""


class Watch(Protocol):
    """Shows the progress of one training run after the other."""

    def __call__(self, name: str, total: int) -> AbstractContextManager[Progress | None]:
        """Return a context of one run of `total` iterations; what it gives is called as training goes on.

        It is never called for a run that is reused.
        """


@dataclass(frozen=True)
class ObtainedRun:
    """A run of a figure, and how it was come by."""

    role: str
    wanted: Wanted
    seed: int
    run: Run
    reused: bool
    """Whether it was finished already."""
    seconds: float
    """Wall time that obtaining it took now."""

    def as_dict(self) -> dict[str, Any]:
        """Return what the JSON output says of the run; `config` is below `configs/`, `path` absolute."""
        return {
            "role": self.role,
            "config": self.wanted.config,
            "overrides": list(self.wanted.overrides),
            "replicas": self.wanted.replicas,
            "seed": self.seed,
            "path": str(self.run.path.absolute()),
            **({"replica": self.run.replica} if isinstance(self.run, ReplicaRun) else {}),
            "reused": self.reused,
            "seconds": self.seconds,
            "hash": self.run.hash,
            "device": self.run.info.get("device"),
            "backend": self.run.info.get("backend"),
        }


@dataclass
class RunSource:
    """Gives runs to figures; one source for several figures trains no run twice, not even when forced."""

    device: str | None = None
    """Replaces the device of the configs."""
    force: bool = False
    """Train again what is finished."""
    progress: Watch | None = None
    messages: Messages | None = None
    _made: set[Path] = field(default_factory=set)

    def obtain(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str] = (), *, seed_offset: int = 0
    ) -> list[ObtainedRun]:
        """Return a finished run for every role.

        Args:
            wanted: role -> the run.
            overrides: changes to every config, after those of the figure.
            seed_offset: added to the seed of every config; for replicas, times their number.

        Raises:
            ConfigError: a config with the changes is not valid.
            RunError: a run diverged or cannot go on.
            Interrupted: SIGINT or SIGTERM came; the state is saved, and the next call goes on from there.
        """
        configs = {
            role: self._config(one, overrides, seed_offset) for role, one in wanted.items()
        }  # all before any work
        return [self._obtain(role, wanted[role], config) for role, config in configs.items()]

    def obtain_seeds(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str], offsets: Sequence[int]
    ) -> list[list[ObtainedRun]]:
        """Return, for every seed offset, a finished run for every role; all are trained together.

        Raises as `obtain` does.
        """
        single = [role for role, one in wanted.items() if one.replicas == 1]
        asked = [(offset, role) for offset in offsets for role in single]
        configs = [self._config(wanted[role], overrides, offset) for offset, role in asked]
        got = obtain_together(configs, force=self.force, progress=self.progress)
        runs: dict[int, list[ObtainedRun]] = {offset: [] for offset in offsets}
        for (offset, role), config, one in zip(asked, configs, got, strict=True):
            _refuse(one)
            runs[offset].append(ObtainedRun(role, wanted[role], config.seed, one.run, one.reused, one.seconds))
        many = {role: one for role, one in wanted.items() if one.replicas > 1}
        for offset in offsets:
            runs[offset] += self.obtain(many, overrides, seed_offset=offset)
        return [runs[offset] for offset in offsets]

    def _config(self, wanted: Wanted, overrides: Sequence[str], seed_offset: int) -> RunConfig:
        path, changes = config_path(wanted.config), [*wanted.overrides, *overrides]
        config = load_config(path, changes, device=self.device)
        seed = config.seed + seed_offset * wanted.replicas
        return load_config(path, changes, device=self.device, seed=seed) if seed_offset else config

    def _obtain(self, role: str, wanted: Wanted, config: RunConfig) -> ObtainedRun:
        if wanted.replicas > 1:
            got = obtain_as_one(config, wanted.replicas, force=self.force, progress=self.progress)
            _refuse(got)
            return ObtainedRun(role, wanted, config.seed, got.run, got.reused, got.seconds)
        plan = plan_run(config)
        force = self.force and plan.directory not in self._made
        watch = self.progress(config.name, plan.needs.iterations) if self.progress else nullcontext()
        with watch as tell:
            got = obtain_run(plan, resume=True, force=force, progress=tell, on_wait=self.messages)
        self._made.add(plan.directory)
        _refuse(got)
        return ObtainedRun(role, wanted, config.seed, got.run, got.reused, got.seconds)


def _refuse(got: Obtained) -> None:
    """Raise `RunError` for a run that no figure may be drawn from: unfinished, or damaged since it was written."""
    run = got.run
    if run.status != "complete":
        raise RunError(f"{run.path} {run.status}: {' '.join(run.info.get('messages', []))}".rstrip(": "))
    if got.reused:
        try:
            run.check_all()
        except CorruptRunError as error:
            again = "no figure is drawn from it; --force trains the run again"
            raise CorruptRunError(error.file, error.problem, again) from error


def config_path(config: str) -> Path:
    """Return the file of a config named below `configs/` or by an absolute path."""
    return CONFIGS / config
