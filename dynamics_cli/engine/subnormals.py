"""Subnormal numbers, those below the smallest normal one, are 0 in training.

A product that is subnormal costs a core of some processors a hundred cycles, and nothing is learned from it. The
control word of floating point belongs to a thread: every kernel sets it in the threads that it runs on and puts it
back, so that what measures between two calls sees all numbers.
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


def _word(builder: Any) -> Any:
    """Write the reading of the control word of the thread: MXCSR of x86, FPCR of ARM; 0 elsewhere."""
    if _ARM:
        return called(builder, "llvm.aarch64.get.fpcr", ir.FunctionType(_I64, []), [])
    at = slot(builder, _I32)
    builder.store(ir.Constant(_I32, 0), at)
    if _X86:
        called(builder, "llvm.x86.sse.stmxcsr", ir.FunctionType(_VOID, [at.type]), [at])
    return builder.zext(builder.load(at), _I64)


def _put(builder: Any, word: Any) -> Any:
    """Write the setting of the control word of the thread."""
    if _ARM:
        called(builder, "llvm.aarch64.set.fpcr", ir.FunctionType(_VOID, [_I64]), [word])
    elif _X86:
        at = slot(builder, _I32)
        builder.store(builder.trunc(word, _I32), at)
        called(builder, "llvm.x86.sse.ldmxcsr", ir.FunctionType(_VOID, [at.type]), [at])


@intrinsic
def flush(context: Any) -> Any:
    """Take subnormal numbers as 0 in this thread from here on; return the former control word, to be put back."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        former = _word(builder)
        _put(builder, builder.or_(former, ir.Constant(_I64, FLUSHES)))
        return former

    return types.int64(), written


@intrinsic
def put_back(context: Any, word: Any) -> Any:
    """Set the control word of this thread."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _put(builder, arguments[0])
        return context.get_dummy_value()

    return types.void(types.int64), written


@unit
def _read() -> int:
    former = flush()
    put_back(former)
    return int(former)


@unit
def _write(word: Ints) -> None:
    put_back(word[0])


def control_word() -> int:
    """Return the control word of the calling thread."""
    return int(_read(np.dtype(np.float64)).call())


@contextmanager
def flushed(*, everywhere: bool = False) -> Iterator[None]:
    """Take subnormal numbers as 0 in the calling thread and, where asked, in the threads that torch computes on.

    `torch.set_flush_denormal` is for the calling thread alone.
    """
    former = control_word()
    try:
        _set(former | FLUSHES, everywhere=everywhere)
        yield
    finally:
        _set(former, everywhere=everywhere)


def _set(word: int, *, everywhere: bool) -> None:
    write, kept = _write(np.dtype(np.float64)), ctypes.c_int64(word)
    torch: Any = sys.modules.get("torch") if everywhere and sys.platform == "linux" else None
    parallel: Any = torch and getattr(ctypes.CDLL(None), "GOMP_parallel", None)  # unless torch has another OpenMP
    if parallel and (count := torch.get_num_threads()) > 1:
        parallel(ctypes.c_void_p(write.address), ctypes.byref(kept), count, 0)  # the calling thread is one of them
    write.call(ctypes.byref(kept))
