"""Products of small matrices, without BLAS: units of pointers.

Products are made of tiles: some rows by some vectors of the processor, which stay in its registers while the inner
dimension runs. Every number of a product is a sum in the order of the inner dimension, each term by a fused
multiply-add where the processor has it: the bits depend neither on the tiles nor on how samples are cut into chunks.
For the sizes of networks (tens to hundreds of columns) this is two to three times as fast as a call of BLAS, which
packs its arguments first; `docs/explanation/speed.md` compares them.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types

from dynamics_cli.engine.native import (
    Reals,
    called,
    cast_like,
    counted_loop,
    fused,
    intrinsic,
    multiply_add,
    offset,
    slot,
    unit,
)


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


class _Vectors:
    """Writes loads, stores and arithmetic of vectors; with `count`, of its first numbers alone."""

    def __init__(self, context: Any, builder: Any, pointer: Any, count: Any = None) -> None:
        self.builder, self._size, self._there = builder, pointer.dtype.bitwidth // 8, None
        self.type = ir.VectorType(context.get_value_type(pointer.dtype), _BYTES // self._size)
        self.zeros = ir.Constant(self.type, None)
        if count is not None:
            lanes = ir.Constant(ir.VectorType(_I64, self.type.count), list(range(self.type.count)))
            self._there = builder.icmp_signed("<", lanes, self.of_each(count, lanes.type))

    def at(self, pointer: Any, number: Any) -> Any:
        """Return the address of the vector with this number."""
        pointer = self.builder.gep(pointer, [self.builder.mul(ir.Constant(_I64, self.type.count), number)])
        return self.builder.bitcast(pointer, self.type.as_pointer())

    def of_each(self, number: Any, kind: Any = None) -> Any:
        """Return a vector of equal numbers."""
        none = ir.Constant(kind or self.type, ir.Undefined)
        first = self.builder.insert_element(none, number, ir.Constant(_I32, 0))
        zeros = ir.Constant(ir.VectorType(_I32, self.type.count), [0] * self.type.count)
        return self.builder.shuffle_vector(first, none, zeros)

    def load(self, at: Any) -> Any:
        """Return the vector at an address."""
        if self._there is None:
            value = self.builder.load(at)
            value.align = self._size
            return value
        return self._masked("load", self.type, [at, ir.Constant(_I32, self._size), self._there, self.zeros])

    def store(self, value: Any, at: Any) -> None:
        """Write the vector at an address."""
        if self._there is None:
            self.builder.store(value, at).align = self._size
        else:
            self._masked("store", ir.VoidType(), [value, at, ir.Constant(_I32, self._size), self._there])

    def _masked(self, name: str, result: Any, arguments: list[Any]) -> Any:
        kind = ir.FunctionType(result, [one.type for one in arguments])
        return called(self.builder, f"llvm.masked.{name}.v{self.type.count}f{8 * self._size}.p0", kind, arguments)

    def sums(self, starts: list[Any]) -> list[Any]:
        """Return places of sums that begin at these values."""
        places = [slot(self.builder, start.type) for start in starts]
        for place, start in zip(places, starts, strict=True):
            self.builder.store(start, place)
        return places

    def add_product(self, place: Any, a: Any, b: Any) -> None:
        """Add `a b` to a sum."""
        self.builder.store(fused(self.builder, a.type, [a, b, self.builder.load(place)]), place)


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
            vector = _Vectors(context, builder, signature.args[0], count if vectors == 1 else None)
            numbers = [ir.Constant(_I64, v) for v in range(vectors)]

            def rows_of(pointer: Any, apart: Any) -> list[Any]:
                return [builder.gep(pointer, [builder.mul(apart, ir.Constant(_I64, r))]) for r in range(rows)]

            of_a, of_c = rows_of(A, ar), [vector.at(row, v) for row in rows_of(C, m) for v in numbers]
            sums = vector.sums([builder.select(accumulate, vector.load(at), vector.zeros) for at in of_c])
            with counted_loop(builder, K) as loop:
                row_of_b, along = builder.gep(B, [builder.mul(loop.index, m)]), builder.mul(loop.index, ak)
                right = [vector.load(vector.at(row_of_b, v)) for v in numbers]
                for r, row in enumerate(of_a):
                    left = vector.of_each(builder.load(builder.gep(row, [along])))
                    for v, b in enumerate(right):
                        vector.add_product(sums[r * vectors + v], left, b)
            for at, place in zip(of_c, sums, strict=True):
                vector.store(builder.load(place), at)
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
def _dots(context: Any, A: Any, b: Any, K: Any, C: Any) -> Any:
    """Set `_ROWS` numbers of C to the dot products of rows of A with `b`; each in partial sums by vector lanes."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        A, b, K, C = arguments
        vector = _Vectors(context, builder, signature.args[0])
        rows = [builder.gep(A, [builder.mul(K, ir.Constant(_I64, r))]) for r in range(_ROWS)]
        whole, lanes = builder.sdiv(K, ir.Constant(_I64, vector.type.count)), vector.sums([vector.zeros] * _ROWS)
        with counted_loop(builder, whole) as loop:
            right = vector.load(vector.at(b, loop.index))
            for row, place in zip(rows, lanes, strict=True):
                vector.add_product(place, vector.load(vector.at(row, loop.index)), right)
        totals = vector.sums([_total(builder, builder.load(place)) for place in lanes])
        done = builder.mul(whole, ir.Constant(_I64, vector.type.count))
        with counted_loop(builder, builder.sub(K, done)) as loop:
            at = [builder.add(done, loop.index)]
            right = builder.load(builder.gep(b, at))
            for row, place in zip(rows, totals, strict=True):
                vector.add_product(place, builder.load(builder.gep(row, at)), right)
        for r, place in enumerate(totals):
            builder.store(builder.load(place), builder.gep(C, [ir.Constant(_I64, r)]))
        return context.get_dummy_value()

    return types.void(A, b, types.int64, C), written


def _total(builder: Any, parts: Any) -> Any:
    """Return the sum of a vector, by halves."""
    while (half := parts.type.count // 2) > 0:
        none = ir.Constant(parts.type, ir.Undefined)
        low, high = (ir.Constant(ir.VectorType(_I32, half), list(range(at, at + half))) for at in (0, half))
        parts = builder.fadd(*(builder.shuffle_vector(parts, none, one) for one in (low, high)))
    return builder.extract_element(parts, ir.Constant(_I32, 0))


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
        _dots(offset(A, first * K), b, K, offset(C, first))
