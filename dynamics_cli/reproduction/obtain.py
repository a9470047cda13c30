"""The runs that a figure needs: reused, continued, or trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dynamics_cli._bundled import CONFIGS
from dynamics_cli.config import RunConfig, load_config
from dynamics_cli.errors import DynError, RunError
from dynamics_cli.process import one_blas_thread
from dynamics_cli.reproduction.figure import Figure, Wanted
from dynamics_cli.reproduction.settings import named
from dynamics_cli.runs.replica import ReplicaRun, replicas_of
from dynamics_cli.runs.run import Run
from dynamics_cli.training.many.replicas import divide
from dynamics_cli.training.many.train import ProgressDisplay, Task, train_all
from dynamics_cli.training.session import Obtained

Messages = Callable[[str], None]
"""Called with messages for the user, a sentence each."""


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

    @property
    def diverged(self) -> bool:
        """Whether the loss was no longer finite; only later seeds give such a run."""
        return self.run.status == "diverged"

    def as_dict(self) -> dict[str, Any]:
        """Return the entry in the JSON output; `config` is as `named` says, `path` absolute."""
        place: dict[str, Any] = {"path": str(self.run.path.absolute())}
        if isinstance(self.run, ReplicaRun):
            place["replica"] = self.run.replica
        return {
            "role": self.role,
            "config": named(self.wanted.config),
            "overrides": list(self.wanted.overrides),
            "replicas": self.wanted.replicas,
            "seed": self.seed,
            **place,
            "reused": self.reused,
            "seconds": self.seconds,
            "hash": self.run.hash,
            "device": self.run.info.get("device"),
            "backend": self.run.info.get("backend"),
        }


@dataclass
class RunSource:
    """Gives runs to figures.

    A source of several figures trains no run twice, not even when forced.
    """

    device: str | None = None
    """Replaces the device of the configs."""
    force: bool = False
    """Train finished runs again."""
    progress: ProgressDisplay | None = None
    messages: Messages | None = None
    _ended: dict[tuple[str, ...], Obtained | DynError] = field(default_factory=dict)
    """The folder and the configs of a run as texts -> how it ended."""

    def train(self, figures: Iterable[Mapping[str, Wanted]], overrides: Sequence[str] = ()) -> None:
        """Train the runs of several figures; a run that fails says so when it is asked for.

        Args:
            figures: role -> run, one mapping a figure.
            overrides: as `obtain` takes them.

        Raises Interrupted: SIGINT or SIGTERM came; the same call goes on from there.
        """
        tasks = []
        for wanted in figures:
            for run in wanted.values():
                with suppress(DynError):
                    tasks.append(Task(self._configs(run, overrides), root=run.root))
        self._train(tasks)

    def obtain(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str] = ()
    ) -> list[ObtainedRun]:
        """Return a finished run for every role.

        Args:
            wanted: role -> the run.
            overrides: changes to every config, after the figure's.

        Raises:
            ConfigError: a config with the changes is not valid.
            RunError: a run diverged or cannot go on.
            Interrupted: SIGINT or SIGTERM came; the state is saved, and the next call goes on from
                there.
        """
        configs = [self._configs(run, overrides) for run in wanted.values()]  # before any work
        return self._obtain([*wanted.items()], configs)

    def obtain_seeds(
        self, wanted: Mapping[str, Wanted], overrides: Sequence[str], offsets: Sequence[int]
    ) -> list[list[ObtainedRun]]:
        """Return, for every offset of the seeds, a finished or diverged run for every role.

        An offset counts sets of seeds: it is added to the seeds times the number of seeds that the
        roles span. Alike networks are trained together.

        Raises as `obtain` does, but for a run that diverged.
        """
        if not (wanted and offsets):
            return []
        roles = [*wanted.items()]
        seeds = []
        for run in wanted.values():
            seeds += [config.seed for config in self._configs(run, overrides)]
        span = max(seeds) - min(seeds) + 1
        configs: list[list[RunConfig]] = []
        for offset in offsets:
            configs += [self._configs(run, overrides, offset * span) for run in wanted.values()]

        single = [k for k, of_run in enumerate(configs) if len(of_run) == 1]
        alike = divide([configs[k][0] for k in single])
        together = [[single[place] for place in batch] for batch in alike]
        runs = self._obtain(
            roles * len(offsets), configs, together, allowed=("complete", "diverged")
        )
        count = len(roles)
        return [runs[k * count : (k + 1) * count] for k in range(len(offsets))]

    def _obtain(
        self,
        roles: Sequence[tuple[str, Wanted]],
        configs: Sequence[Sequence[RunConfig]],
        together: Sequence[Sequence[int]] = (),
        allowed: Sequence[str] = ("complete",),
    ) -> list[ObtainedRun]:
        """Return a run for each role, given the configs of its networks.

        `together` has the places of single networks that are trained as replicas of one run.

        Raises RunError: a run failed, or its status is not among those `allowed`.
        """
        alone = sorted({*range(len(configs))}.difference(*together))
        groups = [*together, *([k] for k in alone)]
        tasks = []
        for group in groups:
            of_group = [config for k in group for config in configs[k]]
            tasks.append(Task(of_group, root=roles[group[0]][1].root))
        self._train(tasks)

        obtained: dict[int, ObtainedRun] = {}
        for group, task in zip(groups, tasks, strict=True):
            key = _key(task)
            ended = self._ended[key]
            if isinstance(ended, DynError):
                raise ended
            # when it is asked for again
            self._ended[key] = replace(ended, reused=True, seconds=0.0)
            runs = [ended.run] if len(group) == 1 else replicas_of(ended.run)
            seconds = ended.seconds / len(group)
            for k, run in zip(group, runs, strict=True):
                if run.status not in allowed:
                    messages = " ".join(run.info.get("messages", []))
                    raise RunError(f"{run.path} {run.status}: {messages}".rstrip(": "))
                role, wanted = roles[k]
                seed = configs[k][0].seed
                obtained[k] = ObtainedRun(role, wanted, seed, run, ended.reused, seconds)
        return [obtained[k] for k in range(len(configs))]

    def _configs(
        self, wanted: Wanted, overrides: Sequence[str], seed_offset: int = 0
    ) -> list[RunConfig]:
        """Return the configs of the networks of a run, whose seeds follow one another."""
        path = CONFIGS / wanted.config
        changes = [*wanted.overrides, *overrides]
        config = load_config(path, changes, device=self.device)
        if seed_offset:
            config = load_config(path, changes, device=self.device, seed=config.seed + seed_offset)
        return [config.model_copy(update={"seed": config.seed + k}) for k in range(wanted.replicas)]

    def _train(self, tasks: Sequence[Task]) -> None:
        """Train the tasks that this source has not trained yet."""
        keys = [_key(task) for task in tasks]
        new = {key: task for key, task in zip(keys, tasks, strict=True) if key not in self._ended}
        trained = train_all(
            [*new.values()], force=self.force, progress=self.progress, messages=self.messages
        )
        places = list(new)
        self._ended |= {places[place]: ended for place, ended in trained}


def _key(task: Task) -> tuple[str, ...]:
    return (str(task.root), *(config.model_dump_json() for config in task.configs))


def evidence_of(figure: Figure, runs: Iterable[ObtainedRun]) -> Any:
    """Return the evidence of a figure, whose numbers do not depend on the number of cores."""
    with one_blas_thread():
        return figure.evidence({run.role: run.run for run in runs})
