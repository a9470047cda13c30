"""Products of small matrices, without BLAS: units of pointers.

Products are made of tiles: some rows by some vectors of the processor, which stay in its registers while the inner
dimension runs. Every number of a product is a sum in the order of the inner dimension, each term by a fused
multiply-add where the processor has it: the bits depend neither on the tiles nor on how samples are cut into chunks.
For the sizes of networks (tens to hundreds of columns) this is two to three times as fast as a call of BLAS, which
packs its arguments first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types

from dynamics_cli.engine.native import Reals, called, cast_like, fused, intrinsic, multiply_add, offset, unit


def _shape_of_tiles() -> tuple[int, int, int]:
    """Return rows, vectors and bytes of a vector of a tile that fills the registers of this processor."""
    features = dict(llvm.get_host_cpu_features())
    if features.get("avx512f"):
        return 6, 4, 64
    if features.get("avx"):
        return 6, 2, 32
    return (6, 4, 16) if features.get("neon") else (4, 2, 16)


_ROWS, _VECTORS, _BYTES = _shape_of_tiles()
_TINY = 32
"""Multiply-adds of a product up to which tiles cost more than the product."""
_BLOCK = 96
"""Rows of A that go through all columns of B before the next: they stay in the cache."""
_I32, _I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def _lanes(context: Any, pointer: Any) -> Any:
    """Return how many numbers a vector of the processor holds."""
    count = _BYTES * 8 // pointer.dtype.bitwidth
    return types.int64(pointer), lambda context, builder, signature, arguments: ir.Constant(_I64, count)


def _vector(context: Any, pointer: Any) -> tuple[Any, int]:
    """Return the type of vectors of the numbers at a pointer, and the bytes of such a number."""
    size = pointer.dtype.bitwidth // 8
    return ir.VectorType(context.get_value_type(pointer.dtype), _BYTES // size), size


def _of_each(builder: Any, vector: Any, number: Any) -> Any:
    """Return a vector of equal numbers."""
    none = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(none, number, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, none, ir.Constant(ir.VectorType(_I32, vector.count), [0] * vector.count))


def _loop(builder: Any, count: Any, starts: list[Any], body: Callable[[Any, list[Any]], list[Any]]) -> list[Any]:
    """Write `for k in range(count)`, which carries values; return their last values."""
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


def _tile(rows: int, vectors: int) -> Any:
    """Return `tile(A, ar, ak, B, C, m, K, accumulate, count)`.

    It sets `rows` by `vectors` vectors of C, of rows `m` apart, to A B, or adds A B to them. Numbers of A are `ar` by
    row and `ak` by column apart, rows of B `m`. Of one vector, it sets `count` numbers alone.
    """

    @intrinsic
    def tile(
        context: Any, A: Any, ar: Any, ak: Any, B: Any, C: Any, m: Any, K: Any, accumulate: Any, count: Any
    ) -> Any:
        n = types.int64

        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            A, ar, ak, B, C, m, K, accumulate, count = arguments
            vector, size = _vector(context, signature.args[0])
            align, zeros = ir.Constant(_I32, size), ir.Constant(vector, None)
            lanes = ir.Constant(ir.VectorType(_I64, vector.count), list(range(vector.count)))
            there = builder.icmp_signed("<", lanes, _of_each(builder, lanes.type, count))
            pointer, name = vector.as_pointer(), f"v{vector.count}f{8 * size}.p0"
            load = ir.FunctionType(vector, [pointer, _I32, there.type, vector])
            store = ir.FunctionType(ir.VoidType(), [vector, pointer, _I32, there.type])

            def rows_of(pointer: Any, apart: Any) -> list[Any]:
                found = [pointer]
                for _ in range(rows - 1):
                    found.append(builder.gep(found[-1], [apart]))
                return found

            def vectors_at(pointer: Any) -> list[Any]:
                places = [builder.gep(pointer, [ir.Constant(_I64, v * vector.count)]) for v in range(vectors)]
                return [builder.bitcast(one, vector.as_pointer()) for one in places]

            def loaded(at: Any) -> Any:
                if vectors == 1:
                    return called(builder, f"llvm.masked.load.{name}", load, [at, align, there, zeros])
                value = builder.load(at)
                value.align = size
                return value

            def step(k: Any, sums: list[Any]) -> list[Any]:
                right = [loaded(at) for at in vectors_at(builder.gep(B, [builder.mul(k, m)]))]
                along, found = builder.mul(k, ak), []
                for r, row in enumerate(of_a):
                    left = _of_each(builder, vector, builder.load(builder.gep(row, [along])))
                    found += [fused(builder, vector, [left, b, sums[r * vectors + v]]) for v, b in enumerate(right)]
                return found

            of_a, of_c = rows_of(A, ar), [at for row in rows_of(C, m) for at in vectors_at(row)]
            starts = [builder.select(accumulate, loaded(at), zeros) for at in of_c]
            for at, value in zip(of_c, _loop(builder, K, starts, step), strict=True):
                if vectors == 1:
                    called(builder, f"llvm.masked.store.{name}", store, [value, at, align, there])
                else:
                    builder.store(value, at).align = size
            return context.get_dummy_value()

        return types.void(A, n, n, B, C, n, n, types.boolean, n), written

    return tile


_many, _single = _tile(_ROWS, _VECTORS), _tile(1, _VECTORS)
_many_last, _single_last = _tile(_ROWS, 1), _tile(1, 1)


@unit
def product(A: Reals, ar: int, ak: int, B: Reals, C: Reals, n: int, K: int, m: int, accumulate: int) -> None:
    """Set C (n, m) to A B, or add A B to it.

    Rows of A (n, K) are `ar`, its columns `ak` apart: (1, n) for the transposed of a matrix (K, n). B is (K, m).
    """
    adds = accumulate != 0
    if n * K * m <= _TINY:
        for k in range(n):
            for j in range(m):
                s = cast_like(0, A[0])
                if adds:
                    s = C[k * m + j]
                for q in range(K):
                    s = multiply_add(A[k * ar + q * ak], B[q * m + j], s)
                C[k * m + j] = s
        return
    w = _lanes(A)
    for first in range(0, n, _BLOCK):
        last = min(n, first + _BLOCK)
        whole = first + (last - first) // _ROWS * _ROWS
        j = 0
        while j < m:
            wide = j + _VECTORS * w <= m
            b, left = offset(B, j), m - j
            for k in range(first, whole, _ROWS):
                a, c = offset(A, k * ar), offset(C, k * m + j)
                if wide:
                    _many(a, ar, ak, b, c, m, K, adds, w)
                else:
                    _many_last(a, ar, ak, b, c, m, K, adds, left)
            for k in range(whole, last):
                a, c = offset(A, k * ar), offset(C, k * m + j)
                if wide:
                    _single(a, ar, ak, b, c, m, K, adds, w)
                else:
                    _single_last(a, ar, ak, b, c, m, K, adds, left)
            j += _VECTORS * w if wide else w


@intrinsic
def _dots(context: Any, A: Any, ar: Any, b: Any, K: Any, C: Any) -> Any:
    """Set `_ROWS` numbers of C to the dot products of rows of A with `b`; each in partial sums by vector lanes."""
    n = types.int64

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        A, ar, b, K, C = arguments
        vector, size = _vector(context, signature.args[0])
        width = ir.Constant(_I64, vector.count)
        rows = [A]
        for _ in range(_ROWS - 1):
            rows.append(builder.gep(rows[-1], [ar]))
        whole = builder.sdiv(K, width)

        def at_vector(pointer: Any, k: Any) -> Any:
            at = builder.gep(pointer, [builder.mul(k, width)])
            value = builder.load(builder.bitcast(at, vector.as_pointer()))
            value.align = size
            return value

        def step(k: Any, sums: list[Any]) -> list[Any]:
            right = at_vector(b, k)
            return [fused(builder, vector, [at_vector(row, k), right, s]) for row, s in zip(rows, sums, strict=True)]

        totals = []
        for lanes in _loop(builder, whole, [ir.Constant(vector, None)] * _ROWS, step):
            parts, length = lanes, vector.count
            while length > 1:
                length //= 2
                halves = [
                    ir.Constant(ir.VectorType(_I32, length), list(range(first, first + length)))
                    for first in (0, length)
                ]
                none = ir.Constant(parts.type, ir.Undefined)
                low, high = (builder.shuffle_vector(parts, none, half) for half in halves)
                parts = builder.fadd(low, high)
            totals.append(builder.extract_element(parts, ir.Constant(_I32, 0)))
        done = builder.mul(whole, width)

        def last(k: Any, sums: list[Any]) -> list[Any]:
            at = builder.add(done, k)
            right = builder.load(builder.gep(b, [at]))
            left = [builder.load(builder.gep(row, [at])) for row in rows]
            return [fused(builder, vector.element, [one, right, s]) for one, s in zip(left, sums, strict=True)]

        for r, total in enumerate(_loop(builder, builder.sub(K, done), totals, last)):
            builder.store(total, builder.gep(C, [ir.Constant(_I64, r)]))
        return context.get_dummy_value()

    return types.void(A, n, b, n, C), written


@unit
def dots(A: Reals, b: Reals, n: int, K: int, C: Reals) -> None:
    """Set C (n,) to the dot products of the rows of A (n, K) with `b` (K,); the last blocks of rows may overlap."""
    if n < _ROWS or _lanes(A) > K:
        for k in range(n):
            s = cast_like(0, A[0])
            for i in range(K):
                s = multiply_add(A[k * K + i], b[i], s)
            C[k] = s
        return
    for k in range(0, n, _ROWS):
        first = k if k + _ROWS <= n else n - _ROWS
        _dots(offset(A, first * K), K, b, K, offset(C, first))
