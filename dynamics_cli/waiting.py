"""Words on stderr about calculations that take long: an estimate first, then how far they are."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import pairwise
from statistics import median

from dynamics_cli.errors import InputError
from dynamics_cli.text import duration

TRIED_SECONDS = 0.5
TRIED_STEPS = 3
"""Least time and number of steps from which the time of all is estimated; the first step does not
count, since it loads libraries and compiles.
"""
PATIENCE_SECONDS = 10.0
"""Estimated time up to which nothing is said, and time between two words."""
SILENT = "DYN_SILENT"
"""Environment variable of processes whose stderr nobody reads, such as the workers of a sweep."""
_HUSHED = ContextVar("hushed", default=False)


@contextmanager
def hushed() -> Iterator[None]:
    """Say nothing meanwhile."""
    before = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(before)


def tell(text: str) -> None:
    """Print a line on stderr, above the progress bars that are there."""
    if _HUSHED.get() or os.environ.get(SILENT):
        return
    from tqdm import tqdm

    with suppress(OSError):  # stderr may have gone away; the work goes on
        tqdm.write(text, file=sys.stderr)


class Wait:
    """Steps of a calculation that tells how long it takes.

    What takes longer than some seconds is estimated first, then told again and again.
    """

    def __init__(
        self,
        label: str,
        total: int,
        *,
        remedy: str,
        unit: str = "steps",
        limit: float | None = None,
    ) -> None:
        """Begin with the first of `total` steps.

        Args:
            label: opens each line.
            total: number of steps; it may be raised later.
            remedy: how the calculation is made shorter.
            unit: of the steps.
            limit: seconds beyond which the calculation is refused.
        """
        self.label = label
        self.total = total
        self.done = 0
        self._remedy = remedy
        self._unit = unit
        self._limit = limit
        self._ended: list[float] = []
        """Times at which steps ended, until the estimate."""
        self._told: float | None = None

    def step(self) -> None:
        """Note that a step is done.

        Raises:
            InputError: all steps would take longer than the limit.
        """
        self.done += 1
        now = time.monotonic()
        ended = self._ended
        if self._told is None:
            ended.append(now)
            if self.done <= TRIED_STEPS or now - ended[0] < TRIED_SECONDS:
                return
            self._told = now
            self._estimate(median(after - before for before, after in pairwise(ended)))
            del ended[1:]
        elif now - self._told > PATIENCE_SECONDS and self.done < self.total:
            self._told = now
            left = (now - ended[0]) / (self.done - 1) * (self.total - self.done)
            tell(f"{self.label}: {self.done} of {self.total} {self._unit}, {duration(left)} left")

    def _estimate(self, each: float) -> None:
        """Tell the time of all steps of `each` seconds; a median, as single steps may stall."""
        whole = each * self.total
        told = f"{self.label}: about {duration(whole)} for {self.total} {self._unit}"
        if self._limit is not None and whole > self._limit:
            raise InputError(
                f"{told}, the limit is {duration(self._limit)}: {self._remedy}, or raise the limit"
            )
        if each * (self.total - self.done) > PATIENCE_SECONDS:
            tell(f"{told} of {each:.2g} s; {self._remedy} to shorten it")

    def over(self, steps: Iterable[int]) -> Iterator[int]:
        """Yield the steps, each noted once it is done."""
        for step in steps:
            yield step
            self.step()
