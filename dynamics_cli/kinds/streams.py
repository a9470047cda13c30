"""Independent random streams of one seed.

A change in the use of one stream leaves the others as they were.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_STREAMS = {"data": 0, "initialization": 1, "batches": 2, "noise": 3}
_MANY = 10**6
"""Normal numbers from which compiled code, which takes some 50 ms to load, draws them."""


class _Generator(np.random.Generator):
    """NumPy's generator; it draws many normal numbers in half the time, with the same bits."""

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return standard normal numbers, as NumPy's generator does."""
        plain = size is not None and dtype is np.float64 and out is None
        if not plain or math.prod(np.atleast_1d(size)) < _MANY:
            return super().standard_normal(size, dtype, out)
        from dynamics_cli.formulas.normal import fill

        numbers = np.empty(size)
        fill(self, numbers.reshape(-1))
        return numbers


def stream(seed: int, name: str, *position: int) -> np.random.Generator:
    """Return the generator of the stream `name` of `seed`, at `position` (for batches: the epoch).

    A generator depends on (seed, name, position) alone, never on earlier draws.
    """
    # any name is a stream of its own
    number = _STREAMS.get(name, zlib.crc32(name.encode()) | 2**32)
    return _Generator(np.random.Philox(np.random.SeedSequence([seed, number, *position])))


@dataclass(frozen=True)
class Streams:
    """The streams of a seed."""

    seed: int

    def rng(self, name: str, *position: int) -> np.random.Generator:
        """Return the generator of a stream at its beginning, or at `position`."""
        return stream(self.seed, name, *position)

    def by(self, generator: str | None) -> Streams:
        """Return the streams that a key `generator` asks for: PyTorch's for `torch`, else these."""
        if generator == "torch" and not isinstance(self, TorchStreams):
            return TorchStreams(self.seed)
        return self


@dataclass(frozen=True)
class TeacherStreams(Streams):
    """The streams of a teacher.

    Its weights are drawn from the stream `teacher`, apart from its student's.
    """

    def rng(self, name: str, *position: int) -> np.random.Generator:
        """Return the generator of the stream `teacher`."""
        return super().rng("teacher", *position)


@dataclass(frozen=True)
class FreshStreams(Streams):
    """The streams of a block of fresh samples.

    It has inputs and noise of its own; the teacher is the run's.
    """

    block: int

    def rng(self, name: str, *position: int) -> np.random.Generator:
        """Return the generator of a stream; samples have a fast one."""
        if name not in ("data", "label noise", "labels"):
            return super().rng(name, *position)
        number = zlib.crc32(f"fresh {name}".encode()) | 2**32
        sequence = np.random.SeedSequence([self.seed, number, self.block, *position])
        return _Generator(np.random.SFC64(sequence))


@dataclass(frozen=True)
class TorchStreams(Streams):
    """PyTorch's generator of the seed under all names, drawn from in turn, as a script does.

    Numbers are float32 whatever the precision of the run and PyTorch's default, so that runs of
    `float32` and `float64` begin at the same weights.
    """

    @cached_property
    def _generator(self) -> Any:
        import torch

        return torch.Generator().manual_seed(self.seed)

    def rng(self, name: str, *position: int) -> Any:
        """Return a generator with NumPy's methods for weights and inputs, wherever it draws."""
        return self

    def uniform(self, low: float, high: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return numbers of this shape, uniform from `low` to `high`."""
        import torch

        drawn = torch.empty(shape, dtype=torch.float32)
        return drawn.uniform_(low, high, generator=self._generator).double().numpy()

    def standard_normal(self, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return standard Gaussians of this shape."""
        import torch

        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float32)
        return drawn.double().numpy()
