"""Functions of pointers: the form of all compiled pieces of the engine, called by address, from each other and Python.

A unit is one body of machine code for all its callers, and its arguments are pointers and numbers: numba takes a fifth
of the time that arrays take in arguments, of which each caller would compile a copy of its own. `int64*` arguments
are records: sizes, and addresses of further arrays and units.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, extending, types
from numba.core import cgutils

from dynamics_cli import compiling  # noqa: F401 - decides where compiled code is kept

intrinsic: Any = extending.intrinsic


class Native:
    """A unit in a precision."""

    def __init__(self, function: Callable[..., Any], result: str, arguments: str, dtype: np.dtype[Any]) -> None:
        options: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
        kinds = [one.replace("real", dtype.name) for one in arguments.split()]
        of_numba = [
            types.CPointer(getattr(types, kind[:-1])) if kind.endswith("*") else getattr(types, kind)  # type: ignore[no-untyped-call]
            for kind in kinds
        ]
        self._code = cfunc(getattr(types, result)(*of_numba), **options)(function)
        self.address = int(self._code.address or 0)
        """Where it is."""
        of_c: dict[str, Any] = {
            "int64": ctypes.c_int64,
            "float64": ctypes.c_double,
            "float32": ctypes.c_float,
            "void": None,
        }
        given = [ctypes.c_void_p if kind.endswith("*") else of_c[kind] for kind in kinds]
        self.call = ctypes.CFUNCTYPE(of_c[result], *given)(self.address)
        """Calls it, free of Python's lock, with numbers and addresses."""


def unit(result: str, arguments: str) -> Callable[[Callable[..., Any]], Callable[[np.dtype[Any]], Native]]:
    """Return a decorator: the function becomes its compiler for a precision, `real` among the types of arguments."""

    def decorator(function: Callable[..., Any]) -> Callable[[np.dtype[Any]], Native]:
        return cache(lambda dtype: Native(function, result, arguments, np.dtype(dtype)))

    return decorator


_NOTHING = ctypes.c_char * 0


def place(array: np.ndarray[Any, Any] | bytearray) -> int:
    """Return the address of a contiguous array that can be written to, in a tenth of NumPy's time."""
    return ctypes.addressof(_NOTHING.from_buffer(array))  # type: ignore[arg-type]


@cache
def packer(count: int) -> Callable[..., bytes]:
    """Return a function that packs so many numbers into a record, which can be the argument of a call."""
    return struct.Struct(f"{count}q").pack


# -- inside units


@intrinsic
def numbers_at(context, address, like):  # type: ignore[no-untyped-def]
    """Return a pointer, to numbers of the type of `like`, from an address."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(address, like), written  # type: ignore[no-untyped-call]


@intrinsic
def moved(context, pointer, count):  # type: ignore[no-untyped-def]
    """Return the pointer to the number that stands so many after that of a pointer."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), written


@intrinsic
def like(context, number, other):  # type: ignore[no-untyped-def]
    """Return a number in the type of another."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return other(number, other), written


@intrinsic
def multiply_add(context, a, b, c):  # type: ignore[no-untyped-def]
    """Return `a b + c`, rounded once where the processor can."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return fused(builder, context.get_value_type(signature.return_type), arguments)

    return a(a, a, a), written


def fused(builder: Any, kind: Any, arguments: Any) -> Any:
    """Write `a b + c` of numbers or vectors."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    name = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    name += "f64" if isinstance(element, ir.DoubleType) else "f32"
    return called(builder, f"llvm.fmuladd.{name}", ir.FunctionType(kind, [kind] * 3), arguments)


def called(builder: Any, name: str, kind: Any, arguments: Any) -> Any:
    """Write the call of a function of LLVM."""
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)  # type: ignore[no-untyped-call]


def slot(builder: Any, kind: Any) -> Any:
    """Make room for a value of an LLVM type on the stack; return its address."""
    return cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]


@intrinsic
def call(context, unit, arguments):  # type: ignore[no-untyped-def]
    """Call the unit at an address."""
    return _call(types.void, unit, arguments)


@intrinsic
def call_number(context, unit, arguments):  # type: ignore[no-untyped-def]
    """Call the unit at an address and return its float64."""
    return _call(types.float64, unit, arguments)


def _call(result: Any, unit: Any, arguments: Any) -> Any:
    def written(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        unit, packed = values
        given = [builder.extract_value(packed, k) for k in range(len(signature.args[1].types))]
        returned = ir.VoidType() if result == types.void else context.get_value_type(result)
        function = builder.inttoptr(unit, ir.FunctionType(returned, [one.type for one in given]).as_pointer())
        found = builder.call(function, given)
        return context.get_dummy_value() if result == types.void else found

    return result(unit, arguments), written
