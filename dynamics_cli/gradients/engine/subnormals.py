"""Subnormal numbers, those below the smallest normal one, are 0 in training.

A product that is subnormal costs a core of some processors a hundred cycles, and nothing is learned
from it. The control word of floating point belongs to a thread: steppers set it in the threads that
they train in and put it back, so that what measures between two calls sees all numbers.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_X86 = 1 << 15 | 1 << 6
_ARM = 1 << 24
WORD, FLUSHES = {
    ("linux", "x86_64"): (7, _X86),
    ("linux", "aarch64"): (0, _ARM),
    ("darwin", "x86_64"): (1, _X86),
    ("darwin", "arm64"): (2, _ARM),
}.get((sys.platform, platform.machine()), (0, 0))
"""Place of the control word (MXCSR, FPCR) among the words of `fenv_t`, and its bits that flush;
0 where unknown.
"""
_LIBRARY: Any = ctypes.CDLL(None) if FLUSHES else None
ENVIRONMENT: int = ctypes.cast(_LIBRARY.fesetenv, ctypes.c_void_p).value or 0 if FLUSHES else 0
"""Address of `fesetenv`; 0 where nothing is flushed."""


def environment() -> Any:
    """Return the floating-point environment of the calling thread, an array of words."""
    words = (ctypes.c_uint32 * 16)()
    _LIBRARY.fegetenv(words)
    return words


def flushing() -> Any:
    """Return the environment of the calling thread with subnormal numbers as 0."""
    words = environment()
    words[WORD] |= FLUSHES
    return words


@contextmanager
def flushed(*, everywhere: bool = False) -> Iterator[None]:
    """Flush subnormal numbers to 0 in the calling thread and, if asked, in torch's threads.

    `torch.set_flush_denormal` is for the calling thread alone.
    """
    if not FLUSHES:
        yield
        return
    torch: Any = sys.modules.get("torch") if everywhere and sys.platform == "linux" else None
    gnu = torch is not None and hasattr(_LIBRARY, "GOMP_parallel")  # else torch has another OpenMP
    threads = torch.get_num_threads() if gnu else 1
    former = environment()
    changed = flushing()

    def set_words(words: Any) -> None:
        if threads > 1:  # the calling thread takes part
            _LIBRARY.GOMP_parallel(_LIBRARY.fesetenv, words, threads, 0)
        else:
            _LIBRARY.fesetenv(words)

    try:
        set_words(changed)
        yield
    finally:
        set_words(former)
