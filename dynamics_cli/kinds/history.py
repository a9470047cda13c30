"""The weights of the last states before one that is recorded, for measures of updates."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

W = TypeVar("W")


class History(Generic[W]):
    """The weights of at most `count` states, in whatever form they are given."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._held: deque[tuple[int, W]] = deque(maxlen=count)

    def wants(self, iteration: int, due: int) -> bool:
        """Return whether the weights of a state will be asked for at the state `due`."""
        return due - self.count <= iteration < due

    def next_stop(self, iteration: int, due: int) -> int:
        """Return the first state after `iteration`, up to `due`, that is wanted or due."""
        return max(min(due, iteration + 1), due - self.count)

    def keep(self, iteration: int, weights: W) -> None:
        """Keep the weights of a state, which nobody changes any more."""
        if iteration not in dict(self._held):
            self._held.append((iteration, weights))

    def before(self, iteration: int) -> list[W]:
        """Return the weights one update before a state, two updates before, ..., as far as kept."""
        known = dict(self._held)
        found: list[W] = []
        while (former := iteration - 1 - len(found)) in known:
            found.append(known[former])
        return found[: self.count]

    def __iter__(self) -> Iterator[tuple[int, W]]:
        return iter(self._held)
