"""Memory: refusal of work that does not fit into this machine, and samples taken at once.

One operation of torch or NumPy cannot be broken off: on very many samples it would keep a signal
waiting, and its results, with all that autograd holds for the way back, would not fit. Almost every
problem is one block.
"""

from __future__ import annotations

from dynamics_cli.errors import InputError

GIB = 2**30
MULTIPLY_ADDS = 2**32
"""Multiply-adds in a block: a tenth of a second on two CPU cores."""
NUMBERS = 2**24
"""Numbers that the layers give in a block: 128 MiB of float64."""
ON_GPU = 32
"""How many times more a GPU takes at once, to be kept busy; a guess, since none was measured."""


def refuse_beyond_memory(
    needed: int, what: str, remedy: str = "", *, available: int | None = None
) -> None:
    """Refuse work that takes more bytes than `available`, by default those free here.

    Raises:
        InputError: `what` (such as "the run needs about"), both numbers, and the `remedy`.
    """
    import psutil

    if available is None:
        available = psutil.virtual_memory().available
    if needed > available:
        free = f"this machine has {available / GIB:.1f} GiB free"
        raise InputError(f"{what} {needed / GIB:.1f} GiB of memory, {free}{remedy}")


def block_samples(multiply_adds: int, numbers: int, device: str = "cpu") -> int:
    """Return how many samples are taken at once, at least 1.

    Args:
        multiply_adds: of the network for a sample.
        numbers: how many all its layers give for a sample.
        device: `cpu` or `cuda`.

    """
    times = ON_GPU if device == "cuda" else 1
    by_work = times * MULTIPLY_ADDS // max(1, multiply_adds)
    by_memory = times * NUMBERS // max(1, numbers)
    return max(1, min(by_work, by_memory))
