"""Units: compiled functions of pointers, records and numbers.

Units and Python call them by address.

A unit is one body of machine code for all its callers. Its arguments are pointers, numbers and
records: numba takes a fifth of the time that it takes for arrays, and each caller would compile its
own copy for arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import llvmlite.binding
import numba.core.cgutils
import numba.core.codegen
import numba.core.compiler_lock
import numba.core.typing.templates
import numba.extending
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from dynamics_cli.formulas import compiling  # noqa: F401 - decides where compiled code is kept

_numba: Any = numba  # which is typed in parts
types = _numba.types
typeof = _numba.typeof
extending = _numba.extending
cgutils = _numba.core.cgutils

counted_loop = cgutils.for_range
slot = cgutils.alloca_once
intrinsic: Callable[[Callable[..., Any]], Any] = extending.intrinsic
piece: Callable[[Callable[..., Any]], Any] = _numba.njit(
    inline="always", error_model="numpy", _nrt=False
)
"""Decorator of a part of units: numba writes it into each unit that calls it."""
function: Callable[[Callable[..., Any]], Any] = _numba.njit(
    error_model="numpy", fastmath=False, forceinline=True
)
"""Decorator of a function of numbers, which LLVM writes into each unit that calls it; its
options are its own.
"""

Real: TypeAlias = Any
"""Annotation of an argument of a unit: a number in the unit's precision. `int` is int64, `float`
float64.
"""
Reals: TypeAlias = Any
"""Pointer to numbers in the unit's precision."""
Ints: TypeAlias = Any
Floats: TypeAlias = Any
"""Pointers to numbers of int64 and float64."""
Address: TypeAlias = int
"""The address of a unit."""
_INT = types.int64
_FLOAT = types.float64
_C: dict[Any, Any] = {
    _INT: ctypes.c_int64,
    _FLOAT: ctypes.c_double,
    types.float32: ctypes.c_float,
    types.void: None,
}


def features_compiled_for() -> frozenset[str]:
    """Return the instruction sets that numba compiles for, by LLVM's names.

    They describe this processor, or are `NUMBA_CPU_FEATURES`.
    """
    given = _numba.core.codegen.get_host_cpu_features()
    if _numba.config.CPU_FEATURES is not None:
        given = _numba.config.CPU_FEATURES
    return frozenset(feature[1:] for feature in given.split(",") if feature.startswith("+"))


# -- records


class Structure:
    """A C structure whose fields are named once, for units and for Python.

    Units read fields as attributes, Python writes them by name.

    Fields are (name, type, meaning); a type is an argument type of units, `Address` (of a unit) or
    a record.
    """

    known: dict[str, Structure] = {}  # noqa: RUF012
    """All records, by the name that annotations call them by."""

    def __init__(self, name: str, fields: Sequence[tuple[str, str, str]]) -> None:
        self.name = name
        self.types = {field: kind for field, kind, _ in fields}
        of_c = {"int": ctypes.c_int64, "float": ctypes.c_double, "Address": ctypes.c_int64}
        given = [(field, of_c.get(kind, ctypes.c_void_p)) for field, kind in self.types.items()]
        self.structure: Any = type(name, (ctypes.Structure,), {"_fields_": given})
        Structure.known[name] = self

    def __call__(self, **values: Any) -> Any:
        """Return a structure with values for all fields.

        Arrays and structures are written as addresses, and kept.
        """
        if values.keys() != self.types.keys():
            raise TypeError(
                f"{self.name}: wrong or missing fields {sorted(values.keys() ^ self.types.keys())}"
            )
        structure = self.structure(**{field: _written(value) for field, value in values.items()})
        structure.kept = values
        return structure


def _written(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return address_of(value)
    if isinstance(value, ctypes.Structure | ctypes.Array):
        return ctypes.addressof(value)
    return value


class RecordType(numba.types.Type):
    """The type of a pointer to a record in units of a precision."""

    def __init__(self, record: Structure, dtype: np.dtype[Any]) -> None:
        self.fields = {field: numba_type(kind, dtype) for field, kind in record.types.items()}
        self.offsets = {field: getattr(record.structure, field).offset for field in self.fields}
        self.size = ctypes.sizeof(record.structure)
        super().__init__(
            f"{record.name}({', '.join(f'{field}: {kind}' for field, kind in self.fields.items())})"
        )


extending.register_model(RecordType)(extending.models.OpaqueModel)  # a pointer to bytes


@extending.infer_getattr
class _RecordFields(numba.core.typing.templates.AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind: RecordType, field: str) -> Any:  # type: ignore[override] # a placeholder of numba
        return kind.fields.get(field)


def _read(context: Any, builder: Any, kind: RecordType, record: Any, field: str) -> Any:
    at = builder.gep(record, [ir.Constant(ir.IntType(64), kind.offsets[field])])
    return builder.load(
        builder.bitcast(at, context.get_value_type(kind.fields[field]).as_pointer())
    )


extending.lower_getattr_generic(RecordType)(_read)


def numba_type(name: str, dtype: np.dtype[Any]) -> Any:
    """Return the type that an annotation names, in units of a precision."""
    if name in Structure.known:
        return RecordType(Structure.known[name], dtype)
    real = getattr(types, dtype.name)
    simple = {"int": _INT, "Address": _INT, "float": _FLOAT, "Real": real, "None": types.void}
    if name in simple:
        return simple[name]
    pointed = {"Ints": _INT, "Floats": _FLOAT, "Reals": real}
    return types.CPointer(pointed[name])


# -- units


class Native:
    """A unit in a precision."""

    def __init__(self, function: Callable[..., Any], dtype: np.dtype[Any], **options: Any) -> None:
        *given, result = (numba_type(kind, dtype) for kind in function.__annotations__.values())
        options = {"cache": True, "error_model": "numpy", "_nrt": False} | options
        self._code = _numba.cfunc(result(*given), **options)(function)
        self.address = int(self._code.address or 0)
        """Where it is."""
        self.call = ctypes.CFUNCTYPE(
            _C[result], *(_C.get(kind, ctypes.c_void_p) for kind in given)
        )(self.address)
        """Calls it, free of Python's lock, with numbers and addresses."""


def unit(function: Callable[..., Any]) -> Callable[[np.dtype[Any]], Native]:
    """Return the compiler of a function for a precision.

    Annotations say the types of its arguments.
    """
    return cache(lambda dtype: Native(function, np.dtype(dtype)))


@contextmanager
def vectors_at_once(count: int) -> Iterator[None]:
    """Compile loops that work on `count` vectors side by side; 0 leaves it to LLVM.

    The operations on a number, and so its bits, stay as they are. LLVM takes one vector after
    another where the values at hand would fill the registers, but then a processor, which holds
    some tens of operations that wait, sees those of a few vectors alone, each waiting for the one
    before.
    """
    option = "-force-vector-interleave"
    with _numba.core.compiler_lock.global_compiler_lock:  # the option is one of the whole process
        llvmlite.binding.set_option("", f"{option}={count}")
        try:
            yield
        finally:
            llvmlite.binding.set_option("", f"{option}=0")


_NOTHING = ctypes.c_char * 0


def address_of(array: np.ndarray[Any, Any]) -> int:
    """Return the address of a writable contiguous array, ten times faster than NumPy."""
    return ctypes.addressof(_NOTHING.from_buffer(array))  # type: ignore[arg-type] # an array is a buffer


def blocks(dtype: np.dtype[Any], *counts: int) -> list[NDArray[np.floating]]:
    """Return arrays of zeros, each aligned to a cache line.

    Products of unaligned arrays take up to 1.3 times as long.
    """
    line = 64 // dtype.itemsize  # of 64 bytes
    starts = np.cumsum([0, *(-(-count // line) * line for count in counts)]).tolist()
    raw = np.zeros(starts[-1] + line, dtype)
    first = -address_of(raw) // dtype.itemsize % line
    return [
        raw[first + start : first + start + count]
        for start, count in zip(starts, counts, strict=False)
    ]


# -- inside units


@intrinsic
def offset(context: Any, pointer: Any, count: Any) -> Any:
    """Return the pointer to the number, or the record, `count` entries after a pointer."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at, count = arguments
        if isinstance(signature.args[0], RecordType):
            count = builder.mul(count, ir.Constant(count.type, signature.args[0].size))
        return builder.gep(at, [count])

    return pointer(pointer, _INT), written


@intrinsic
def cast_like(context: Any, number: Any, like: Any) -> Any:
    """Return a number in the type of another."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return like(number, like), written


@intrinsic
def multiply_add(context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return `a b + c`, rounded once where the processor can."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return fused(builder, context.get_value_type(signature.return_type), arguments)

    return a(a, a, a), written


def fused(builder: Any, kind: Any, arguments: Any) -> Any:
    """Write `a b + c` of numbers or vectors."""
    count = ""
    element = kind
    if isinstance(kind, ir.VectorType):
        count = f"v{kind.count}"
        element = kind.element
    bits = {ir.DoubleType(): 64, ir.FloatType(): 32}[element]
    return external_call(builder, f"llvm.fmuladd.{count}f{bits}", kind, arguments)


def external_call(builder: Any, name: str, result: Any, arguments: Any) -> Any:
    """Write the call of a function of LLVM, given the type of its result."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _caller(result: Any) -> Any:
    @intrinsic
    def call(context: Any, address: Any, arguments: Any) -> Any:
        """Call the unit at an address with a tuple of arguments."""

        def written(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            given = cgutils.unpack_tuple(builder, values[1])
            nothing = result == types.void
            returned = ir.VoidType() if nothing else context.get_value_type(result)
            kind = ir.FunctionType(returned, [argument.type for argument in given])
            value = builder.call(builder.inttoptr(values[0], kind.as_pointer()), given)
            return context.get_dummy_value() if nothing else value

        return result(address, arguments), written

    return call


call = _caller(types.void)
call_number = _caller(types.float64)
"""Call the unit at an address with a tuple of arguments; `call_number` returns its float64."""
