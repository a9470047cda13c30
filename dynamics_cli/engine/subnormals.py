"""Subnormal numbers, those below the smallest normal one, are 0 in training.

A product that is subnormal costs a core of some processors a hundred cycles, and nothing is learned from it. The
control word of floating point belongs to a thread: steppers set it in the threads that they train in and put it back,
so that what measures between two calls sees all numbers.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir

from dynamics_cli.engine.native import Ints, called, intrinsic, slot, types, unit

_ARM = platform.machine().lower() in ("arm64", "aarch64")
_X86 = platform.machine().lower() in ("x86_64", "amd64")
FLUSHES = 1 << 24 if _ARM else 1 << 15 | 1 << 6 if _X86 else 0
"""Bits of the control word: results and arguments that are subnormal are taken as 0. 0 on unknown processors."""
_I32, _I64, _VOID = ir.IntType(32), ir.IntType(64), ir.VoidType()


@intrinsic
def exchange(context: Any, word: Any) -> Any:
    """Set the control word (MXCSR of x86, FPCR of ARM) of this thread, unless it is negative; return the former one."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        former, at = ir.Constant(_I64, 0), slot(builder, _I32)
        if _ARM:
            former = called(builder, "llvm.aarch64.get.fpcr", _I64, [])
        elif _X86:
            called(builder, "llvm.x86.sse.stmxcsr", _VOID, [at])
            former = builder.zext(builder.load(at), _I64)
        stays = builder.icmp_signed("<", arguments[0], ir.Constant(_I64, 0))
        word = builder.select(stays, former, arguments[0])
        if _ARM:
            called(builder, "llvm.aarch64.set.fpcr", _VOID, [word])
        elif _X86:
            builder.store(builder.trunc(word, _I32), at)
            called(builder, "llvm.x86.sse.ldmxcsr", _VOID, [at])
        return former

    return types.int64(types.int64), written


@unit
def _exchange(word: Ints) -> int:
    return int(exchange(word[0]))


def _exchanged(word: int, threads: int = 1) -> int:
    """Set the control word of the calling thread, or of so many threads of GNU's OpenMP; return the former one."""
    swap, at = _exchange(np.dtype(np.float64)), ctypes.byref(ctypes.c_int64(word))
    former = int(swap.call(at))
    if threads > 1:
        openmp = ctypes.CDLL(None)
        openmp.GOMP_parallel(ctypes.c_void_p(swap.address), at, threads, 0)  # the calling thread takes part
    return former


def control_word() -> int:
    """Return the control word of the calling thread."""
    return _exchanged(-1)


@contextmanager
def flushed(*, everywhere: bool = False) -> Iterator[None]:
    """Take subnormal numbers as 0 in the calling thread and, where asked, in the threads that torch computes on.

    `torch.set_flush_denormal` is for the calling thread alone.
    """
    torch: Any = sys.modules.get("torch") if everywhere and sys.platform == "linux" else None
    gnu = torch is not None and hasattr(ctypes.CDLL(None), "GOMP_parallel")  # else torch has another OpenMP
    threads, former = torch.get_num_threads() if gnu else 1, control_word()
    try:
        _exchanged(former | FLUSHES, threads)
        yield
    finally:
        _exchanged(former, threads)
