"""Products of small matrices and calls of units by address, as kernels need them: on flat arrays, without BLAS.

Products are made of tiles: some rows by some vectors of the processor, which stay in its registers while the inner
dimension runs. Every number of a product is one sum in the order of the inner dimension, each term by one fused
multiply-add where the processor has it: the bits depend neither on the tiles nor on how samples are cut into chunks.
For the sizes of networks (tens to hundreds of columns) this is two to three times as fast as a call of BLAS, which
packs its arguments first (`benchmarks/products.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import carray, cfunc, extending, types  # type: ignore[attr-defined]
from numba.core import cgutils

from dynamics_cli.compiling import OPTIONS, STRICT

intrinsic: Any = extending.intrinsic
ZERO, ONE = np.int64(0), np.int64(1)
"""Arguments of pieces: for each literal 0 and 1 numba would compile a piece once more."""
PIECE: dict[str, Any] = {**STRICT, "cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of the pieces of kernels."""


def _shape_of_tiles() -> tuple[int, int, int]:
    """Return rows, vectors and bytes of a vector of a tile: what fills the registers of this processor."""
    features = dict(llvm.get_host_cpu_features())
    if features.get("avx512f"):
        return 6, 4, 64
    if features.get("avx"):
        return 6, 2, 32
    return (6, 4, 16) if features.get("neon") else (4, 2, 16)


_ROWS, _VECTORS, _BYTES = _shape_of_tiles()


def _element(context: Any, array: Any) -> Any:
    return context.get_data_type(array.dtype)


def _data(context: Any, builder: Any, kind: Any, value: Any, offset: Any) -> Any:
    """Return a pointer to an element of a flat array."""
    return builder.gep(context.make_array(kind)(context, builder, value).data, [offset])


def _of_each(builder: Any, vector: Any, number: Any) -> Any:
    """Return a vector of one number."""
    if not isinstance(vector, ir.VectorType):
        return number
    none = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, none, zeros)


def _multiply_add(builder: Any, kind: Any, size: int) -> Any:
    name = f"v{kind.count}" if isinstance(kind, ir.VectorType) else ""
    function = ir.FunctionType(kind, [kind, kind, kind])
    return cgutils.get_or_insert_function(builder.module, function, f"llvm.fmuladd.{name}f{8 * size}")  # type: ignore[no-untyped-call]


def _loop(builder: Any, count: Any, starts: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """Write `for k in range(count)`, which carries values; return what they are at the end."""
    before = builder.block
    head, inner, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    k = builder.phi(count.type)
    k.add_incoming(ir.Constant(count.type, 0), before)
    carried = [builder.phi(one.type) for one in starts]
    for one, start in zip(carried, starts, strict=True):
        one.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", k, count), inner, after)
    builder.position_at_end(inner)
    for one, new in zip(carried, body(k, carried), strict=True):
        one.add_incoming(new, builder.block)
    k.add_incoming(builder.add(k, ir.Constant(count.type, 1)), builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return carried


def _tile(rows: int, vectors: int, share: int) -> Any:
    """Return `tile(A, a, ar, ak, B, b, bk, C, c, cr, K, I, i, ir, begins)`, of vectors of `1/share` of the widest.

    It sets `rows` by `vectors` vectors of C, at `c` with rows `cr` apart, to A B, `K` numbers of A at `a`, in steps of
    `ar` by row and `ak` by column, and of B at `b`, rows `bk` apart; with `begins`, plus those of I at `i`, `ir` apart.
    """

    @intrinsic
    def tile(context, A, a, ar, ak, B, b, bk, C, c, cr, K, I, i, ir_, begins):  # type: ignore[no-untyped-def] # noqa: E741
        n = types.intp
        signature = types.void(A, n, n, n, B, n, n, C, n, n, n, I, n, n, types.boolean)

        def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            A, a, ar, ak, B, b, bk, C, c, cr, K, I, i, ir_, begins = arguments  # noqa: E741
            kinds = signature.args
            number = _element(context, kinds[0])
            size = 8 if isinstance(number, ir.DoubleType) else 4
            width = max(1, _BYTES // size // share)
            vector = ir.VectorType(number, width) if width > 1 else number
            add = _multiply_add(builder, vector, size)

            def rows_of(kind: Any, array: Any, offset: Any, apart: Any) -> list[Any]:
                found = [_data(context, builder, kind, array, offset)]
                for _ in range(rows - 1):
                    found.append(builder.gep(found[-1], [apart]))
                return found

            def vectors_at(pointer: Any) -> list[Any]:
                places = [builder.gep(pointer, [ir.Constant(ir.IntType(64), v * width)]) for v in range(vectors)]
                return [builder.bitcast(place, vector.as_pointer()) for place in places]

            def loaded(place: Any) -> Any:
                value = builder.load(place)
                value.align = size
                return value

            of_a, of_c = rows_of(kinds[0], A, a, ar), rows_of(kinds[7], C, c, cr)
            of_b = _data(context, builder, kinds[4], B, b)
            zero = ir.Constant(vector, None if width > 1 else 0.0)
            starts = []
            for row in rows_of(kinds[11], I, i, ir_):
                # where nothing is to be added this is C itself, which can be read
                starts += [builder.select(begins, loaded(place), zero) for place in vectors_at(row)]

            def step(k: Any, sums: list[Any]) -> list[Any]:
                right = [loaded(place) for place in vectors_at(builder.gep(of_b, [builder.mul(k, bk)]))]
                along = builder.mul(k, ak)
                found = []
                for r, row in enumerate(of_a):
                    left = _of_each(builder, vector, builder.load(builder.gep(row, [along])))
                    found += [builder.call(add, [left, one, sums[r * vectors + v]]) for v, one in enumerate(right)]
                return found

            sums = _loop(builder, K, starts, step)
            for r, row in enumerate(of_c):
                for v, place in enumerate(vectors_at(row)):
                    builder.store(sums[r * vectors + v], place).align = size
            return context.get_dummy_value()

        return signature, written

    return tile


_many_wide, _one_wide = _tile(_ROWS, _VECTORS, 1), _tile(1, _VECTORS, 1)
_many_1, _one_1 = _tile(_ROWS, 1, 1), _tile(1, 1, 1)
_many_2, _one_2 = _tile(_ROWS, 1, 2), _tile(1, 1, 2)
_many_4, _one_4 = _tile(_ROWS, 1, 4), _tile(1, 1, 4)
_many_last, _one_last = _tile(_ROWS, 1, 64), _tile(1, 1, 64)
_BLOCK = 96
"""Rows of A that go through all columns of B before the next: they stay in the cache."""


@numba.njit(**PIECE)
def _product(A, a, ar, ak, B, b, bk, C, c, cr, n, K, m, I, i, ir, begins):  # type: ignore[no-untyped-def] # noqa: E741
    """Set C (n, m) to A B, plus I with `begins`; see `_tile`."""
    w = _BYTES // A.itemsize
    for first in range(0, n, _BLOCK):
        last = min(n, first + _BLOCK)
        whole = first + (last - first) // _ROWS * _ROWS
        j = 0
        while j + _VECTORS * w <= m:
            for k in range(first, whole, _ROWS):
                _many_wide(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            for k in range(whole, last):
                _one_wide(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            j += _VECTORS * w
        while j + w <= m:
            for k in range(first, whole, _ROWS):
                _many_1(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            for k in range(whole, last):
                _one_1(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            j += w
        if w >= 4 and j + w // 2 <= m:
            for k in range(first, whole, _ROWS):
                _many_2(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            for k in range(whole, last):
                _one_2(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            j += w // 2
        if w >= 8 and j + w // 4 <= m:
            for k in range(first, whole, _ROWS):
                _many_4(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            for k in range(whole, last):
                _one_4(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            j += w // 4
        while j < m:
            for k in range(first, whole, _ROWS):
                _many_last(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            for k in range(whole, last):
                _one_last(A, a + k * ar, ar, ak, B, b + j, bk, C, c + k * cr + j, cr, K, I, i + k * ir + j, ir, begins)
            j += 1


@intrinsic
def _dots(context, A, a, ar, b, at, K, C, c):  # type: ignore[no-untyped-def]
    """Set `_ROWS` numbers of C to the dot products of rows of A with `b`; each in partial sums by vector lanes."""
    n = types.intp
    signature = types.void(A, n, n, b, n, n, C, n)

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        A, a, ar, b, at, K, C, c = arguments
        kinds = signature.args
        number = _element(context, kinds[0])
        size = 8 if isinstance(number, ir.DoubleType) else 4
        width = _BYTES // size
        vector = ir.VectorType(number, width)
        add, add_one = _multiply_add(builder, vector, size), _multiply_add(builder, number, size)
        i64 = ir.IntType(64)
        rows = [_data(context, builder, kinds[0], A, a)]
        for _ in range(_ROWS - 1):
            rows.append(builder.gep(rows[-1], [ar]))
        right = _data(context, builder, kinds[3], b, at)
        whole = builder.sdiv(K, ir.Constant(i64, width))

        def at_vector(pointer: Any, k: Any) -> Any:
            place = builder.gep(pointer, [builder.mul(k, ir.Constant(i64, width))])
            value = builder.load(builder.bitcast(place, vector.as_pointer()))
            value.align = size
            return value

        def step(k: Any, sums: list[Any]) -> list[Any]:
            one = at_vector(right, k)
            return [builder.call(add, [at_vector(row, k), one, s]) for row, s in zip(rows, sums, strict=True)]

        sums = _loop(builder, whole, [ir.Constant(vector, None)] * _ROWS, step)
        totals = []
        for one in sums:
            parts, length = one, width
            while length > 1:
                length //= 2
                halves = [
                    ir.Constant(ir.VectorType(ir.IntType(32), length), list(range(first, first + length)))
                    for first in (0, length)
                ]
                none = ir.Constant(parts.type, ir.Undefined)
                low, high = (builder.shuffle_vector(parts, none, half) for half in halves)
                parts = builder.fadd(low, high)
            totals.append(builder.extract_element(parts, ir.Constant(ir.IntType(32), 0)))
        done = builder.mul(whole, ir.Constant(i64, width))

        def last(k: Any, sums: list[Any]) -> list[Any]:
            at_k = builder.add(done, k)
            one = builder.load(builder.gep(right, [at_k]))
            return [
                builder.call(add_one, [builder.load(builder.gep(row, [at_k])), one, s])
                for row, s in zip(rows, sums, strict=True)
            ]

        for r, total in enumerate(_loop(builder, builder.sub(K, done), totals, last)):
            place = builder.gep(_data(context, builder, kinds[6], C, c), [ir.Constant(i64, r)])
            builder.store(total, place)
        return context.get_dummy_value()

    return signature, written


@numba.njit(**PIECE)
def _dot_products(A, a, b, at, n, K, C, c):  # type: ignore[no-untyped-def]
    """Set C (n,) to the dot products of the rows of A (n, K) with `b` (K,); the last blocks of rows may overlap."""
    if n < _ROWS or _BYTES // A.itemsize > K:
        for k in range(n):
            s = A.dtype.type(0)
            for i in range(K):
                s = multiply_add(A[a + k * K + i], b[at + i], s)
            C[c + k] = s
        return
    for k in range(0, n - _ROWS + 1, _ROWS):
        _dots(A, a + k * K, K, b, at, K, C, c + k)
    if n % _ROWS:
        _dots(A, a + (n - _ROWS) * K, K, b, at, K, C, c + n - _ROWS)


@cache
def product_units(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the addresses of `product` and `dots` in a precision; see the functions of these names."""
    real = types.float32 if dtype == np.float32 else types.float64
    n, p = types.intp, types.CPointer(real)  # type: ignore[no-untyped-call]
    options = {"cache": OPTIONS["cache"], "error_model": "numpy"}

    def compiled(function: Any, *arguments: Any) -> int:
        unit = cfunc(types.void(*arguments), **options)(function)
        _ALIVE.append(unit)
        return int(unit.address or 0)

    return compiled(_product_unit, p, n, n, p, n, p, n, n, n, n, p, n, types.int64), compiled(_dots_unit, p, p, n, n, p)


_ALIVE: list[Any] = []


def _product_unit(A, ar, ak, B, bk, C, cr, n, K, m, I, ir, begins):  # type: ignore[no-untyped-def] # noqa: E741
    a, b, c, i = carray(A, 1), carray(B, 1), carray(C, 1), carray(I, 1)
    _product(a, ZERO, ar, ak, b, ZERO, bk, c, ZERO, cr, n, K, m, i, ZERO, ir, begins != 0)


def _dots_unit(A, b, n, K, C):  # type: ignore[no-untyped-def]
    _dot_products(carray(A, 1), ZERO, carray(b, 1), ZERO, n, K, carray(C, 1), ZERO)


@intrinsic
def multiply_add(context, a, b, c):  # type: ignore[no-untyped-def]
    """Return `a b + c`, rounded as in tiles."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        number = context.get_value_type(signature.args[0])
        function = _multiply_add(builder, number, 8 if isinstance(number, ir.DoubleType) else 4)
        return builder.call(function, arguments)

    return a(a, a, a), written


@intrinsic
def _at(context, place, index, like):  # type: ignore[no-untyped-def]
    """Return a number, of the type of `like`, that stands `index` numbers after an address."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place, index, like = arguments
        return builder.load(builder.gep(builder.inttoptr(place, like.type.as_pointer()), [index]))

    return like(place, index, like), written


@intrinsic
def _put(context, place, index, value):  # type: ignore[no-untyped-def]
    """Set the number that stands `index` numbers after an address."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place, index, value = arguments
        builder.store(value, builder.gep(builder.inttoptr(place, value.type.as_pointer()), [index]))
        return context.get_dummy_value()

    return types.void(place, index, value), written


_TINY = 32
"""Multiply-adds of a product up to which a call costs more than the product."""


@numba.njit(**PIECE)
def _tiny(zero, A, ar, ak, B, bk, C, cr, n, K, m, I, ir, begins):  # type: ignore[no-untyped-def] # noqa: E741
    for k in range(n):
        for j in range(m):
            s = _at(I, k * ir + j, zero) if begins != 0 else zero
            for q in range(K):
                s = multiply_add(_at(A, k * ar + q * ak, zero), _at(B, q * bk + j, zero), s)
            _put(C, k * cr + j, s)


@intrinsic
def borrowed(context, array):  # type: ignore[no-untyped-def]
    """Return an array whose references nobody counts, for the time of a call that holds it.

    Counting is atomic: it would be half of the time of an iteration of a tiny network.
    """

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        copy = context.make_array(signature.args[0])(context, builder, arguments[0])
        copy.meminfo = context.get_constant_null(types.MemInfoPointer(types.voidptr))  # type: ignore[no-untyped-call]
        return copy._getvalue()

    return array(array), written


@intrinsic
def address(context, array, offset):  # type: ignore[no-untyped-def]
    """Return where a number of a flat array stands: unlike an array in a tuple, it counts no references."""

    def written(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.ptrtoint(_data(context, builder, signature.args[0], *arguments), ir.IntType(64))

    return types.int64(array, offset), written


@intrinsic
def call(context, unit, arguments):  # type: ignore[no-untyped-def]
    """Call the unit at an address with numbers, of which some are addresses."""
    return _call(types.void, unit, arguments)


@intrinsic
def call_number(context, unit, arguments):  # type: ignore[no-untyped-def]
    """Call the unit at an address and return its float64; see `call`."""
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


@numba.njit(**PIECE)
def product(unit, zero, A, ar, ak, B, bk, C, cr, n, K, m):  # type: ignore[no-untyped-def]
    """Set C (n, m), rows `cr` apart, to A B; matrices are addresses of their first numbers, of the type of `zero`.

    Rows of A (n, K) are `ar`, its columns `ak` apart: (1, n) for the transposed of a matrix (K, n). Rows of B (K, m)
    are `bk` apart. `unit` is the first of `product_units`.
    """
    if n * K * m <= _TINY:
        _tiny(zero, A, ar, ak, B, bk, C, cr, n, K, m, C, cr, ZERO)
    else:
        call(unit, (A, ar, ak, B, bk, C, cr, n, K, m, C, cr, 0))


@numba.njit(**PIECE)
def product_from(unit, zero, A, ar, ak, B, bk, C, cr, n, K, m, I, ir):  # type: ignore[no-untyped-def] # noqa: E741
    """Set C (n, m) to A B + I, of which rows are `ir` apart: 0 for one row; see `product`."""
    if n * K * m <= _TINY:
        _tiny(zero, A, ar, ak, B, bk, C, cr, n, K, m, I, ir, ONE)
    else:
        call(unit, (A, ar, ak, B, bk, C, cr, n, K, m, I, ir, 1))


@numba.njit(**PIECE)
def dots(unit, zero, A, b, n, K, C):  # type: ignore[no-untyped-def]
    """Set C (n,) to the dot products of the rows of A (n, K) with `b` (K,); `unit` is the second of `product_units`."""
    if n * K <= _TINY:
        _tiny(zero, A, K, ONE, b, ONE, C, ONE, n, K, ONE, C, ONE, ZERO)
    else:
        call(unit, (A, b, n, K, C))
