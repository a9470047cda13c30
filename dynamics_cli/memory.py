"""Refusing what this machine has no memory for, before anything is allocated."""

from __future__ import annotations

from dynamics_cli.errors import InputError

GIB = 2**30


def refuse_beyond_memory(needed: int, what: str, remedy: str = "", *, available: int | None = None) -> None:
    """Refuse what takes more bytes than are `available`, by default all that this machine has.

    Raises:
        InputError: `what` (such as "the run needs about"), both numbers, and the `remedy`.
    """
    import psutil

    available = psutil.virtual_memory().total if available is None else available
    if needed > available:
        there = f"this machine has {available / GIB:.1f} GiB"
        raise InputError(f"{what} {needed / GIB:.1f} GiB of memory, {there}{remedy}")
