"""Many updates per launch: updates recorded once as CUDA graphs and replayed.

A GPU does the dozen small products of an update faster than Python asks for them. A CUDA graph holds the kernels of
many updates with the memory they work on, and one launch does them all. `-m gpu` runs it on a device; without one the
tests record the same updates with a stand-in that repeats their operations on the same memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

LENGTHS = (64, 8, 1)
"""Updates per launch, of the graphs that are recorded; every number of updates is a sum of these."""
_WARM_UP = 3

Record = Callable[[Callable[[], None]], Callable[[], None]]
"""Records what a function does to tensors; returns what does it again on the same memory.

The function may be called, any number of times, while it is recorded.
"""


def record_cuda_graph(body: Callable[[], None]) -> Callable[[], None]:
    """Return the replay of a CUDA graph of `body`, whose kernels work on the memory that they work on now.

    Raises:
        RuntimeError: `body` waits for the device, or the driver has no graphs.

    """
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries set themselves up at their first call, which no graph may hold
        for _ in range(_WARM_UP):
            body()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    return graph.replay


class Replay:
    """Does an update over and over, by graphs of `LENGTHS` updates; where none can be recorded, one by one."""

    def __init__(
        self, update: Callable[[], Tensor], weights: Sequence[Tensor], record: Record = record_cuda_graph
    ) -> None:
        """Remember what to do; nothing is recorded before the first call of `run`.

        Args:
            update: does one update of `weights` in place and returns the losses (R,) before it. It must not wait for
                the device, and must do the same operations every time.
            weights: all that `update` changes and reads again, at the place where it stays.
            record: makes a replay of a function.

        """
        self._update, self._weights, self._record = update, list(weights), record
        self._graphs: dict[int, tuple[Callable[[], None], Tensor]] | None = None

    def run(self, losses: Tensor) -> None:
        """Do n updates and write the losses (R,) of the states before them into `losses` (n, R)."""
        if self._graphs is None:
            self._graphs = self._recorded(losses)
        done = 0
        for length, (replay, written) in self._graphs.items():
            while len(losses) - done >= length:
                replay()
                losses[done : done + length].copy_(written)
                done += length
        for k in range(done, len(losses)):  # all of them, where nothing could be recorded
            losses[k] = self._update()

    def _recorded(self, like: Tensor) -> dict[int, tuple[Callable[[], None], Tensor]]:
        """Record a graph of every length, and leave the weights as they are."""
        before = [weight.clone() for weight in self._weights]
        try:
            return {length: self._graph(length, like) for length in LENGTHS}
        except RuntimeError as error:
            warnings.warn(f"no CUDA graph can be recorded, updates are launched one by one: {error}", stacklevel=2)
            return {}
        finally:
            for weight, value in zip(self._weights, before, strict=True):
                weight.copy_(value)

    def _graph(self, length: int, like: Tensor) -> tuple[Callable[[], None], Tensor]:
        written = torch.empty((length, *like.shape[1:]), dtype=like.dtype, device=like.device)

        def updates() -> None:
            for k in range(length):
                written[k] = self._update()

        return self._record(updates), written
