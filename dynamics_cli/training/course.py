"""The course of a run: a stepper trains each leg from the state in which the last one left it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from dynamics_cli.runs.store.checkpoints import Checkpoint
from dynamics_cli.runs.writer import RunWriter
from dynamics_cli.training.backends import Choice, build_stepper
from dynamics_cli.training.legs import Leg, changed_weights, clock_of
from dynamics_cli.training.loop import Progress, RecordBuffer, TrainingLoop
from dynamics_cli.training.repeatable import holding
from dynamics_cli.training.steppers.base import StateDict

_START = "start/"
"""In a checkpoint: the weights with which a leg after a change began."""


class Course:
    """Trains the legs of a run one after the other, and records them as one run.

    A checkpoint says in which leg it was written. Of one after a change it has the weights with
    which the leg began, from which the stepper is made again.

    Attributes:
        loop: the loop of the leg at work; None before the first.
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
        loop = self._begun(k, resumed)
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
            loop = self._begun(k, None, before=loop)

    def _begun(
        self, k: int, resumed: Checkpoint | None, *, before: TrainingLoop | None = None
    ) -> TrainingLoop:
        """Return the loop of leg k, which goes on from a checkpoint or from the loop before it."""
        leg = self._legs[k]
        start: StateDict = {}
        if before is not None:
            assert leg.change is not None
            start = changed_weights(leg.change, before.stepper.exact_parameters())
        elif resumed is not None:
            own: StateDict = {}
            for name, array in resumed.arrays.items():
                held = start if name.startswith(_START) else own
                held[name.removeprefix(_START)] = array
            resumed = resumed.model_copy(update={"arrays": own})

        problems = leg.problems
        if k:
            alone = len(problems) == 1
            problems = [
                replace(problem, start={name: w if alone else w[r] for name, w in start.items()})
                for r, problem in enumerate(problems)
            ]
        with self._holding():
            stepper = build_stepper(problems, self._choice)
        clock = clock_of(self._legs, k, self._writer.last_time)
        recorder = RecordBuffer(self._writer, problems, clock)
        loop = TrainingLoop(
            stepper,
            recorder,
            leg.last,
            leg.recorded_states,
            self._progress,
            resumed=resumed,
            carried={f"{_START}{name}": array for name, array in start.items()},
            about={"leg": k} if k else {},
            kept=leg.kept_states,
            holding=self._holding,
        )
        if before is not None:
            begun = stepper.follow(before.stepper)
            if begun:
                kind = leg.problem.config.optimizer.kind
                self._writer.tell(
                    f"changes[{k - 1}]: the memory of {kind} ({', '.join(begun)}) begins at 0 at"
                    f" iteration {leg.first}"
                )
            recorder.measuring.load_state_dict(before.recorder.measuring.state_dict())
            recorder.last_loss = before.recorder.last_loss
            loop.spent = before.seconds()
        return loop
