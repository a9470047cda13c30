"""The course of a run: a stepper trains each leg from the state in which the last one left it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.legs import Leg, changed_weights, clock_of
from dynamics_cli.training.loop import Progress, RecordBuffer, TrainingLoop
from dynamics_cli.training.repeatable import holding
from dynamics_cli.training.steppers.base import StateDict, Stepper

_START = "start/"
"""In a checkpoint: the weights with which a leg after a change began."""


class Course:
    """Trains the legs of a run one after the other, and records them as one run.

    A checkpoint says in which leg it was written. Of one after a change it has the weights with
    which the leg began, from which the stepper is made again.

    Attributes:
        loop: that of the leg at work; None before the first.
        leg: the leg at work.
    """

    def __init__(
        self,
        legs: Sequence[Leg],
        choice: Choice,
        writer: RunWriter,
        progress: Progress | None = None,
    ) -> None:
        self._legs = legs
        self._choice = choice
        self._writer = writer
        self._progress = progress
        self._holding = holding(legs[0].problem.config)
        self.loop: TrainingLoop | None = None
        self.leg = legs[0]

    def run(self) -> Literal["complete", "diverged", "interrupted"]:
        """Train to the end, from the writer's checkpoint where it has one; return how it ended."""
        resumed = self._writer.resumed
        k = 0
        if resumed is not None:
            k = int(resumed.meta.get("leg", 0))
        loop = self._resumed_loop(k, resumed)
        while True:
            self.loop = loop
            self.leg = self._legs[k]
            status = loop.run()
            if status != "complete" or loop.stepper.halted or k == len(self._legs) - 1:
                return status
            if loop.watch.received is not None:
                loop.checkpoint()
                return "interrupted"
            k += 1
            loop = self._following_loop(k, loop)

    def _resumed_loop(self, k: int, resumed: Checkpoint | None) -> TrainingLoop:
        """Return the loop of the leg in which a run begins or goes on."""
        carried: StateDict = {}
        begin = 0.0
        if resumed is not None:
            begin = float(resumed.meta.get("leg_time", 0.0))
            carried = {name: a for name, a in resumed.arrays.items() if name.startswith(_START)}
            own = {name: a for name, a in resumed.arrays.items() if name not in carried}
            resumed = replace(resumed, arrays=own)
        start = {name.removeprefix(_START): array for name, array in carried.items()}
        leg = self._started(k, start)
        recorder = RecordBuffer(self._writer, leg.problems, clock_of(self._legs, k, begin))
        with self._holding():
            stepper = build_stepper(leg.problems, self._choice)
        return self._loop(k, stepper, recorder, carried, begin, resumed=resumed)

    def _following_loop(self, k: int, before: TrainingLoop) -> TrainingLoop:
        """Return the loop of leg k, which goes on where another has come to its end."""
        change = self._legs[k].change
        assert change is not None
        start = changed_weights(change, before.stepper.exact_parameters())
        leg = self._started(k, start)
        with self._holding():
            stepper = build_stepper(leg.problems, self._choice)
        begun = stepper.follow(before.stepper)
        if begun:
            kind = leg.problem.config.optimizer.kind
            self._writer.tell(
                f"changes[{k - 1}]: the memory of {kind} ({', '.join(begun)}) begins at 0 at"
                f" iteration {leg.first}"
            )
        begin = self._writer.last_time
        recorder = RecordBuffer(self._writer, leg.problems, clock_of(self._legs, k, begin))
        recorder.measuring.load_state_dict(before.recorder.measuring.state_dict())
        recorder.last_loss = before.recorder.last_loss
        carried: StateDict = {f"{_START}{name}": array for name, array in start.items()}
        loop = self._loop(k, stepper, recorder, carried, begin)
        loop.spent = before.seconds()
        return loop

    def _started(self, k: int, start: dict[str, Any]) -> Leg:
        """Return leg k, which begins with these weights."""
        leg = self._legs[k]
        if k == 0:
            return leg
        problems = []
        for r, problem in enumerate(leg.problems):
            weights = start
            if len(leg.problems) > 1:
                weights = {name: array[r] for name, array in start.items()}
            problems.append(replace(problem, start=weights))
        return replace(leg, problems=problems)

    def _loop(
        self,
        k: int,
        stepper: Stepper,
        recorder: RecordBuffer,
        carried: StateDict,
        begin: float,
        *,
        resumed: Checkpoint | None = None,
    ) -> TrainingLoop:
        leg = self._legs[k]
        about: dict[str, Any] = {}
        if k:
            about = {"leg": k, "leg_time": begin if math.isfinite(begin) else 0.0}
        return TrainingLoop(
            stepper,
            recorder,
            leg.last,
            np.asarray(leg.recorded_states),
            self._progress,
            resumed=resumed,
            carried=carried,
            about=about,
            kept=leg.kept_states,
            holding=self._holding,
        )
