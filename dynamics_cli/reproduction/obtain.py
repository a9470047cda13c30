"""The runs that a figure needs: reused where they are finished, continued where interrupted, trained otherwise."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.errors import DynError, InputError, RunError
from dynamics_cli.reproduction.figure import Wanted
from dynamics_cli.runs import Run
from dynamics_cli.runs.replica import ReplicaRun, replicas_of
from dynamics_cli.sweeps.workers import run_in_processes, train_alone
from dynamics_cli.text import duration
from dynamics_cli.training.loop import Progress
from dynamics_cli.training.prospect import found_run
from dynamics_cli.training.replicas import belong_together, build_problems, divide
from dynamics_cli.training.session import Obtained, Plan, obtain_run, plan_problems, plan_run

LONG_SECONDS = 2.0
"""A run is worth a process of its own from this predicted time on: starting one takes as long."""
KEPT_BYTES = 2**28
"""Inputs of planned runs that are kept at most until their figures ask for them."""
Messages = Callable[[str], None]
"""Called with messages for the user, a sentence each."""


class ProgressDisplay(Protocol):
    """Shows the progress of successive training runs."""

    def __call__(self, name: str, total: int) -> AbstractContextManager[Progress | None]:
        """Return a context of a run of `total` iterations; its function is called as training goes on.

        It is never called for a run that is reused.
        """


@dataclass(frozen=True)
class ObtainedRun:
    """A run of a figure, and how it was obtained."""

    role: str
    wanted: Wanted
    seed: int
    run: Run
    reused: bool
    """Whether it was finished already."""
    seconds: float
    """Wall time that obtaining it took now."""

    def as_dict(self) -> dict[str, Any]:
        """Return the run's entry in the JSON output; `config` is below `configs/`, `path` absolute."""
        return {
            "role": self.role, "config": self.wanted.config, "overrides": list(self.wanted.overrides),
            "replicas": self.wanted.replicas, "seed": self.seed, "path": str(self.run.path.absolute()),
            **({"replica": self.run.replica} if isinstance(self.run, ReplicaRun) else {}),
            "reused": self.reused, "seconds": self.seconds, "hash": self.run.hash,
            "device": self.run.info.get("device"), "backend": self.run.info.get("backend"),
        }  # fmt: skip


@dataclass
class RunSource:
    """Gives runs to figures; a source of several figures trains no run twice, not even when forced."""

    device: str | None = None
    """Replaces the device of the configs."""
    force: bool = False
    """Train finished runs again."""
    progress: ProgressDisplay | None = None
    messages: Messages | None = None
    _made: set[Path] = field(default_factory=set)
    _ahead: set[Path] = field(default_factory=set)
    """Trained by `prepare` and not asked for since then."""
    _planned: dict[tuple[str, ...], Plan] = field(default_factory=dict)
    """Config with its overrides -> what `prepare` planned, data read, and nobody has asked for since then."""

    def prepare(self, figures: Iterable[Mapping[str, Wanted]], overrides: Sequence[str] = ()) -> None:
        """Train the long runs of figures ahead, each on a core of its own.

        Nothing happens where this gains nothing: on a single core or a GPU, for a single long run, or with `force`.
        A run that cannot be planned, or fails, says so when it is asked for.

        Args:
            figures: role -> run, one mapping a figure.
            overrides: as `obtain` takes them.

        Raises Interrupted: SIGINT or SIGTERM came; the same call goes on from there.
        """
        if self.force or os.cpu_count() == 1:
            return
        long: dict[Path, Plan] = {}
        kept = 0
        single = (one for wanted in figures for one in wanted.values() if one.replicas == 1)
        for key, one in {(one.config, *one.overrides, *overrides): one for one in single}.items():
            with suppress(DynError):
                plan = plan_run(self._config(one, overrides, 0))
                kept += plan.problem.dataset.x.nbytes
                if kept <= KEPT_BYTES:
                    self._planned[key] = plan
                if plan.choice.device == "cpu" and plan.needs.seconds > LONG_SECONDS and not _is_finished(plan):
                    long[plan.directory] = plan
        if len(long) < 2:
            return
        plans = sorted(long.values(), key=lambda plan: -plan.needs.seconds)  # the longest would end alone
        with self.progress("long runs", len(plans)) if self.progress else nullcontext() as progress:
            for done, _ in enumerate(_trained_apart(plans), start=1):
                if progress is not None:
                    progress(done, math.nan)
        self._ahead |= set(long)

    def cost(self, wanted: Mapping[str, Wanted], overrides: Sequence[str] = ()) -> tuple[int, float, bool]:
        """Return how many networks are still to be trained, predicted seconds of a core, and if some stop by loss.

        Of replicas the first is planned alone, and stands for all; a run that cannot be planned is left out.
        """
        count, seconds, stops = 0, 0.0, False
        for one in wanted.values():
            with suppress(DynError):
                plan = plan_run(self._config(one, overrides, 0))
                if one.replicas > 1 or self._forced(plan) or not _is_finished(plan):
                    count, seconds = count + one.replicas, seconds + one.replicas * plan.needs.seconds
                    stops = stops or plan.config.optimizer.stop_below is not None
        return count, seconds, stops

    def cost_in_words(
        self, figures: Iterable[Mapping[str, Wanted]], overrides: Sequence[str] = (), seeds: int = 1
    ) -> str:
        """Return how many networks are still to be trained for so many seeds of figures, and how long that may take."""
        costs = [self.cost(wanted, overrides) for wanted in figures]
        count, seconds = (seeds * sum(one[k] for one in costs) for k in (0, 1))
        roughly = "at most" if any(stops for *_, stops in costs) else "roughly"
        return f"{count} networks to train, {roughly} {duration(seconds)} of one core"

    def obtain(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str] = (), *, seed_offset: int = 0
    ) -> list[ObtainedRun]:
        """Return a finished run for every role.

        Args:
            wanted: role -> the run.
            overrides: changes to every config, after those of the figure.
            seed_offset: added to the seed of every config, times the number of seeds that the roles span.

        Raises:
            ConfigError: a config with the changes is not valid.
            RunError: a run diverged or cannot go on.
            Interrupted: SIGINT or SIGTERM came; the state is saved, and the next call goes on from there.
        """
        offset = seed_offset * self._span(wanted, overrides) if seed_offset else 0
        configs = {role: self._config(one, overrides, offset) for role, one in wanted.items()}  # before any work
        obtained = []
        for role, one in wanted.items():
            alone = one.replicas == 1 and not seed_offset
            plan = self._planned.pop((one.config, *one.overrides, *overrides), None) if alone else None
            obtained.append(self._obtain(role, one, configs[role], plan))
        return obtained

    def obtain_seeds(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str], offsets: Sequence[int]
    ) -> list[list[ObtainedRun]]:
        """Return, for every seed offset, a finished run for every role; all are trained together.

        Raises as `obtain` does.
        """
        single = [role for role, one in wanted.items() if one.replicas == 1]
        asked = [(offset, role) for offset in offsets for role in single]
        span = self._span(wanted, overrides)
        configs = [self._config(wanted[role], overrides, offset * span) for offset, role in asked]
        obtained = self._obtain_together(configs)
        runs: dict[int, list[ObtainedRun]] = {offset: [] for offset in offsets}
        for (offset, role), config, one in zip(asked, configs, obtained, strict=True):
            runs[offset].append(_for_role(role, wanted[role], config, one))
        for offset, role in ((offset, role) for offset in offsets for role in wanted if wanted[role].replicas > 1):
            config = self._config(wanted[role], overrides, offset * span)
            runs[offset].append(self._obtain(role, wanted[role], config, None))
        return [runs[offset] for offset in offsets]

    def _config(self, wanted: Wanted, overrides: Sequence[str], seed_offset: int) -> RunConfig:
        path, changes = config_path(wanted.config), [*wanted.overrides, *overrides]
        config = load_config(path, changes, device=self.device)
        seed = config.seed + seed_offset
        return load_config(path, changes, device=self.device, seed=seed) if seed_offset else config

    def _span(self, wanted: Mapping[str, Wanted], overrides: Sequence[str]) -> int:
        """Return the number of seeds from the first to the last of a figure: offsets by it share none."""
        first = {role: self._config(one, overrides, 0).seed for role, one in wanted.items()}
        return max((first[role] + wanted[role].replicas for role in wanted), default=1) - min(first.values(), default=0)

    def _obtain(self, role: str, wanted: Wanted, config: RunConfig, plan: Plan | None) -> ObtainedRun:
        if plan is None:
            plan = plan_run(config) if wanted.replicas == 1 else _plan_replicas(config, wanted.replicas)
        return _for_role(role, wanted, config, self._finished(plan))

    def _obtain_together(self, configs: Sequence[RunConfig]) -> list[Obtained]:
        """Return a run for every config: as replicas where shapes allow it, long others in processes of their own."""
        division = divide(configs)
        obtained: dict[int, Obtained] = {}
        alone = list(division.singles)
        for batch in division.batches:
            problems = build_problems([configs[k] for k in batch])
            if not belong_together(problems):  # a seed made another shape
                alone += batch
                continue
            together = self._finished(plan_problems(problems))
            for k, run in zip(batch, replicas_of(together.run), strict=True):
                obtained[k] = Obtained(run, together.reused, together.seconds / len(batch))
        # a problem that cannot be built is refused with its own message when it is planned
        plans = {k: plan_run(configs[k]) for k in (*alone, *(k for some, _ in division.refused for k in some))}
        missing = [k for k, plan in plans.items() if self._forced(plan) or not _is_finished(plan)]
        long = [plans[k] for k in missing if plans[k].needs.seconds > LONG_SECONDS]
        if len(long) > 1 and not self.force:
            for _ in _trained_apart(long):
                pass  # a failure shows itself below, where the run is asked for again
        for k, plan in plans.items():
            one = self._finished(plan)
            obtained[k] = replace(one, reused=one.reused and k not in missing)
        return [obtained[k] for k in range(len(configs))]

    def _finished(self, plan: Plan) -> Obtained:
        """Train, continue or reuse the run of a plan, and show its progress."""
        name, count = plan.config.name, len(plan.problems)
        label = name if count == 1 else f"{name} x {count}"
        with self.progress(label, plan.needs.iterations) if self.progress else nullcontext() as progress:
            obtained = obtain_run(plan, resume=True, force=self._forced(plan), progress=progress, on_wait=self.messages)
        self._made.add(plan.directory)
        if plan.directory in self._ahead:
            self._ahead.remove(plan.directory)
            return replace(obtained, reused=False, seconds=obtained.run.info.get("seconds", 0.0))
        return obtained

    def _forced(self, plan: Plan) -> bool:
        return self.force and plan.directory not in self._made


def _trained_apart(plans: Sequence[Plan]) -> Iterator[tuple[int, str]]:
    """Train runs each in a process with a core of its own; yield the place of each as it ends, and why it failed."""
    return run_in_processes([(plan.problem.config, plan.directory) for plan in plans], call=train_alone)


def _plan_replicas(config: RunConfig, count: int) -> Plan:
    """Plan networks with the config's seed and the seeds after it as a single run, its arrays `(K, R, ...)`.

    Raises InputError: they cannot be trained together, or not at all.
    """
    configs = [config.model_copy(update={"seed": config.seed + k}) for k in range(count)]
    division = divide(configs)
    if division.refused:
        raise InputError(division.refused[0][1])
    if len(division.batches) != 1 or division.singles:
        raise InputError(f"{config.name}: {count} networks of this config cannot be trained together")
    return plan_problems(build_problems(configs))


def _is_finished(plan: Plan) -> bool:
    run = found_run(plan)
    return run is not None and run.status in ("complete", "diverged")


def _for_role(role: str, wanted: Wanted, config: RunConfig, obtained: Obtained) -> ObtainedRun:
    """Return a run for its role; raise `RunError` where it did not complete, or was damaged since then."""
    run = obtained.run
    if run.status != "complete":
        raise RunError(f"{run.path} {run.status}: {' '.join(run.info.get('messages', []))}".rstrip(": "))
    if obtained.reused:
        run.check_all("no figure is drawn from it; --force trains the run again")
    return ObtainedRun(role, wanted, config.seed, run, obtained.reused, obtained.seconds)


def by_role(runs: Iterable[ObtainedRun]) -> dict[str, Run]:
    """Return obtained runs as the evidence of a figure takes them."""
    return {one.role: one.run for one in runs}


def config_path(config: str) -> Path:
    """Return the file of a config named below `configs/` or by an absolute path."""
    return CONFIGS / config
