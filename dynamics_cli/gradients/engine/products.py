"""Products of small matrices, without BLAS: units of pointers.

Products are made of tiles: some rows by some vectors of the processor, which stay in its registers
while the inner dimension runs. Every number of a product is a sum in the order of the inner
dimension, each term by a fused multiply-add where the processor has it: the bits depend neither on
the tiles nor on how samples are cut into chunks. For the sizes of networks (tens to hundreds of
columns) this is two to three times as fast as a call of BLAS, which packs its arguments first;
`docs/explanation/speed.md` compares them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from dynamics_cli.formulas.native import (
    Reals,
    cast_like,
    counted_loop,
    external_call,
    features_compiled_for,
    fused,
    intrinsic,
    multiply_add,
    offset,
    piece,
    slot,
    types,
    unit,
)


def _shape_of_tiles() -> tuple[int, int, int]:
    """Return rows, vectors and bytes a vector of a tile that fills the registers."""
    shapes = {"avx512f": (6, 4, 64), "avx": (6, 2, 32), "neon": (6, 4, 16)}
    features = features_compiled_for()
    return next((shape for feature, shape in shapes.items() if feature in features), (4, 2, 16))


_ROWS, _VECTORS, _BYTES = _shape_of_tiles()
_FEW = 8 // _VECTORS
"""Rows of the tiles at the end of a matrix: eight sums, so that none waits for the one before."""
AT_ONCE = 4
"""Rows that are added to a single row, or multiplied by one, at a time."""
_ROW_VECTORS = 4
"""Vectors of a single row from which on they are passed over repeatedly."""
_DEPTH = 64
"""Rows of B that are multiplied at a time: with the columns of a tile they take 16 KiB."""
_PACKED_ROWS = 48
"""Rows of A from which on a copy of B is read often enough."""
_PACKED_VECTORS = 2**10
"""Vectors of B up to which it stays in the fastest cache uncopied."""
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


@intrinsic
def lanes_of(context: Any, pointer: Any) -> Any:
    """Return how many numbers a vector of the processor holds."""
    count = _BYTES * 8 // pointer.dtype.bitwidth
    return types.int64(pointer), lambda context, builder, signature, arguments: _I64(count)


class _Vectors:
    """Writes loads and stores of vectors of the processor, of their first `count` numbers alone."""

    def __init__(self, context: Any, builder: Any, pointer: Any, count: Any = None) -> None:
        bits = pointer.dtype.bitwidth
        self.builder = builder
        self.lanes = _BYTES * 8 // bits
        self.type = ir.VectorType(context.get_value_type(pointer.dtype), self.lanes)
        self.zeros = ir.Constant(self.type, None)
        self._align = _I32(bits // 8)
        self._name = f"v{self.lanes}f{bits}.p0"
        numbers = ir.Constant(ir.VectorType(_I64, self.lanes), list(range(self.lanes)))
        # constant, and left out by LLVM, where `count` is all lanes
        self._mask = builder.icmp_signed(
            "<", numbers, self.of_each(_I64(self.lanes) if count is None else count)
        )

    def of_each(self, number: Any) -> Any:
        """Return a vector of equal numbers."""
        empty = ir.Constant(ir.VectorType(number.type, self.lanes), ir.Undefined)
        first = self.builder.insert_element(empty, number, _I32(0))
        return self.builder.shuffle_vector(
            first, empty, ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        )

    def load(self, at: Any) -> Any:
        """Return the vector that begins at a number; 0 beyond `count`."""
        given = [
            self.builder.bitcast(at, self.type.as_pointer()),
            self._align,
            self._mask,
            self.zeros,
        ]
        return external_call(self.builder, f"llvm.masked.load.{self._name}", self.type, given)

    def store(self, value: Any, at: Any) -> None:
        """Write the vector that begins at a number."""
        given = [value, self.builder.bitcast(at, self.type.as_pointer()), self._align, self._mask]
        external_call(self.builder, f"llvm.masked.store.{self._name}", ir.VoidType(), given)


def _begun(builder: Any, start: Any) -> Any:
    """Return the place of a sum that begins at a number or a vector."""
    place = slot(builder, start.type)
    builder.store(start, place)
    return place


def _add(builder: Any, place: Any, a: Any, b: Any) -> None:
    """Add `a b` to the sum at a place."""
    builder.store(fused(builder, a.type, [a, b, builder.load(place)]), place)


def _steps(builder: Any, pointer: Any, apart: Any, count: int) -> list[Any]:
    """Return `count` pointers, some numbers `apart`."""
    return [builder.gep(pointer, [builder.mul(apart, _I64(k))]) for k in range(count)]


def _places(builder: Any, apart: int, count: int, last: Any) -> list[Any]:
    """Return `count` places from 0 on, some numbers `apart`; `last` for those beyond it."""
    places = [_I64(apart * k) for k in range(count)]
    within = [builder.icmp_signed("<", place, last) for place in places[1:]]
    clipped = zip(within, places[1:], strict=True)
    return [places[0], *(builder.select(before, place, last) for before, place in clipped)]


def _columns_of(builder: Any, vector: _Vectors, vectors: int, count: Any) -> list[Any]:
    """Return where the vectors of `count` columns begin."""
    return _places(builder, vector.lanes, vectors, builder.sub(count, _I64(vector.lanes)))


def _tile(rows: int, vectors: int) -> Any:
    """Return `tile(A, ar, ak, B, br, C, m, K, accumulate, given, count)`.

    It sets `given` rows, at most `rows`, by `count` columns of C, of rows `m` apart, to A B, or
    adds A B to them. Numbers of A are `ar` by row and `ak` by column apart, rows of B `br`. One
    vector holds at most `count` numbers, several hold at least one vector.

    Rows beyond the last are the last again, and vectors that would pass the last column begin
    earlier: all of C is read before any of it is written, and what is written twice is equal.
    """

    @intrinsic
    def tile(
        context: Any,
        A: Any,
        ar: Any,
        ak: Any,
        B: Any,
        br: Any,
        C: Any,
        m: Any,
        K: Any,
        accumulate: Any,
        given: Any,
        count: Any,
    ) -> Any:
        n = types.int64

        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            A, ar, ak, B, br, C, m, K, accumulate, given, count = arguments
            vector = _Vectors(context, builder, signature.args[0], count if vectors == 1 else None)
            row_places = _places(builder, 1, rows, builder.sub(given, _I64(1)))
            columns = _columns_of(builder, vector, vectors, count)
            targets = [
                builder.gep(row, [j])
                for row in [builder.gep(C, [builder.mul(m, r)]) for r in row_places]
                for j in columns
            ]
            sums = [
                _begun(builder, builder.select(accumulate, vector.load(at), vector.zeros))
                for at in targets
            ]
            of_a = [builder.gep(A, [builder.mul(ar, r)]) for r in row_places]
            with counted_loop(builder, K) as loop:
                of_b = builder.gep(B, [builder.mul(loop.index, br)])
                right = [vector.load(builder.gep(of_b, [j])) for j in columns]
                for r, row in enumerate(of_a):
                    left = vector.of_each(
                        builder.load(builder.gep(row, [builder.mul(loop.index, ak)]))
                    )
                    for v, b in enumerate(right):
                        _add(builder, sums[r * vectors + v], left, b)
            for at, total in zip(targets, sums, strict=True):
                vector.store(builder.load(total), at)
            return context.get_dummy_value()

        return types.void(A, n, n, B, n, C, n, n, types.boolean, n, n), written

    return tile


def _strip(rows: int) -> Any:
    """Return `strip(A, ak, B, m, C, base, accumulate)`.

    It sets a row C of m numbers, at least a vector of them, to the product of `rows` numbers of A,
    `ak` apart, and as many rows of B, `m` apart; with `accumulate`, to that and a row `base`.
    """

    @intrinsic
    def strip(
        context: Any, A: Any, ak: Any, B: Any, m: Any, C: Any, base: Any, accumulate: Any
    ) -> Any:
        n = types.int64

        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            A, ak, B, m, C, base, accumulate = arguments
            vector = _Vectors(context, builder, signature.args[0])
            left = [vector.of_each(builder.load(at)) for at in _steps(builder, A, ak, rows)]
            of_b = _steps(builder, B, m, rows)

            def summed(j: Any) -> Any:
                begun = vector.load(builder.gep(base, [j]))
                total = builder.select(accumulate, begun, vector.zeros)
                for a, row in zip(left, of_b, strict=True):
                    b = vector.load(builder.gep(row, [j]))
                    total = fused(builder, vector.type, [a, b, total])
                return total

            last = builder.sub(m, _I64(vector.lanes))
            end = summed(last)  # read before what it overlaps is written
            before = builder.sdiv(builder.sub(m, _I64(1)), _I64(vector.lanes))
            with counted_loop(builder, before) as loop:
                j = builder.mul(loop.index, _I64(vector.lanes))
                vector.store(summed(j), builder.gep(C, [j]))
            vector.store(end, builder.gep(C, [last]))
            return context.get_dummy_value()

        return types.void(A, n, B, n, C, base, types.boolean), written

    return strip


def _copy(vectors: int) -> Any:
    """Return `copy(B, br, panel, K, count)`: copy `count` columns of K rows of B to a panel.

    Rows of B are `br` apart, rows of the panel `vectors` vectors; see `_tile` for `count`.
    """

    @intrinsic
    def copy(context: Any, B: Any, br: Any, panel: Any, K: Any, count: Any) -> Any:
        n = types.int64

        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            B, br, panel, K, count = arguments
            vector = _Vectors(context, builder, signature.args[0], count if vectors == 1 else None)
            columns = _columns_of(builder, vector, vectors, count)
            step = _I64(vectors * vector.lanes)
            with counted_loop(builder, K) as loop:
                source = builder.gep(B, [builder.mul(loop.index, br)])
                target = builder.gep(panel, [builder.mul(loop.index, step)])
                for j in columns:
                    vector.store(vector.load(builder.gep(source, [j])), builder.gep(target, [j]))
            return context.get_dummy_value()

        return types.void(B, n, B, n, n), written

    return copy


@intrinsic
def _panel(context: Any, like: Any) -> Any:
    """Return room on the stack for `_DEPTH` rows of the columns of a tile."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        count = _DEPTH * _VECTORS * _BYTES * 8 // like.dtype.bitwidth
        return slot(builder, context.get_value_type(like.dtype), count)

    return like(like), written


def _columns(vectors: int) -> Any:
    """Return `columns(A, ar, ak, B, C, n, m, K, adds, count, packs, panel)`.

    It sets `count` columns, at most `vectors` vectors of them, in all rows of C; see `_tile` and
    `product`.
    """
    many = _tile(_ROWS, vectors)
    few_rows = _FEW if vectors > 1 else 2  # of few columns, matrices are small
    few = _tile(few_rows, vectors)
    single = _tile(1, vectors)
    copy = _copy(vectors)

    @piece
    def columns(
        A: Reals,
        ar: int,
        ak: int,
        B: Reals,
        C: Reals,
        n: int,
        m: int,
        K: int,
        adds: bool,
        count: int,
        packs: bool,
        panel: Reals,
    ) -> None:
        step = m
        if packs:
            copy(B, m, panel, K, count)
            step = vectors * lanes_of(B)
            B = panel
        last = n % _ROWS
        if n > _ROWS and 0 < last % few_rows < few_rows - 1:  # more fill tiles of few rows
            last += _ROWS
        k = 0
        while k < n - last:
            many(offset(A, k * ar), ar, ak, B, step, offset(C, k * m), m, K, adds, _ROWS, count)
            k += _ROWS
        while k + 1 < n:
            left = min(few_rows, n - k)
            few(offset(A, k * ar), ar, ak, B, step, offset(C, k * m), m, K, adds, left, count)
            k += few_rows
        if k < n:
            single(offset(A, k * ar), ar, ak, B, step, offset(C, k * m), m, K, adds, 1, count)

    return columns


_wide = _columns(_VECTORS)
_middle = _columns(2)
_narrow = _columns(1)
_few_rows = _strip(AT_ONCE)
_one_row = _strip(1)


@piece
def row_product(
    A: Reals, ak: int, B: Reals, C: Reals, K: int, m: int, base: Reals, adds: bool
) -> None:
    """Set a row C of m numbers, at least a vector, in passes over some rows of B at a time.

    Where it `adds`, it does so to a row `base`.
    """
    k = 0
    while k + AT_ONCE <= K:
        _few_rows(offset(A, k * ak), ak, offset(B, k * m), m, C, base, adds or k > 0)
        base = C
        k += AT_ONCE
    while k < K:
        _one_row(offset(A, k * ak), ak, offset(B, k * m), m, C, base, adds or k > 0)
        base = C
        k += 1


@unit
def product(
    A: Reals, ar: int, ak: int, B: Reals, C: Reals, n: int, K: int, m: int, accumulate: int
) -> None:
    """Set C (n, m) to A B, or add A B to it.

    Rows of A (n, K) are `ar`, its columns `ak` apart: (1, n) for the transposed of a matrix (K, n).
    B is (K, m). Of a large B, `_DEPTH` rows of the columns of a tile at a time are copied to where
    they stand together: they stay in the fastest cache for all rows of A, and lie on few pages.
    """
    w = lanes_of(A)
    if m >= _ROW_VECTORS * w and (K == 1 or n == 1 < K):
        # sums of a row would wait each for itself in a tile, and tiles of single terms only copy
        for k in range(n):
            c = offset(C, k * m)
            row_product(offset(A, k * ar), ak, B, c, K, m, c, accumulate != 0)
        return
    panel = _panel(A)
    packs = n >= _PACKED_ROWS and K * m > _PACKED_VECTORS * w
    depth = _DEPTH if packs else max(K, 1)
    first = 0
    while first < K or first == 0:
        adds = accumulate != 0 or first > 0
        deep = min(depth, K - first)
        a = offset(A, first * ak)
        j = 0
        while j < m:
            b = offset(B, first * m + j)
            c = offset(C, j)
            count = m - j
            if count >= _VECTORS * w:
                count = _VECTORS * w
                _wide(a, ar, ak, b, c, n, m, deep, adds, _VECTORS * w, packs, panel)
            elif count > w:
                count = min(2 * w, count)
                _middle(a, ar, ak, b, c, n, m, deep, adds, count, packs, panel)
            else:
                _narrow(a, ar, ak, b, c, n, m, deep, adds, count, packs, panel)
            j += count
        first += depth


@intrinsic
def _dots(context: Any, A: Any, b: Any, K: Any, C: Any) -> Any:
    """Set `AT_ONCE` numbers of C to the dot products of rows of A with `b`.

    Each product is summed in parts, one for each lane of a vector.
    """

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        A, b, K, C = arguments
        vector = _Vectors(context, builder, signature.args[0])
        rows = _steps(builder, A, K, AT_ONCE)
        width = _I64(vector.lanes)
        whole = builder.sdiv(K, width)
        lanes = [_begun(builder, vector.zeros) for _ in rows]
        with counted_loop(builder, whole) as loop:
            k = [builder.mul(loop.index, width)]
            right = vector.load(builder.gep(b, k))
            for row, total in zip(rows, lanes, strict=True):
                _add(builder, total, vector.load(builder.gep(row, k)), right)
        totals = [_begun(builder, _total(builder, builder.load(total))) for total in lanes]
        done = builder.mul(whole, width)
        with counted_loop(builder, builder.sub(K, done)) as loop:
            k = [builder.add(done, loop.index)]
            right = builder.load(builder.gep(b, k))
            for row, total in zip(rows, totals, strict=True):
                _add(builder, total, builder.load(builder.gep(row, k)), right)
        for total, at in zip(totals, _steps(builder, C, _I64(1), AT_ONCE), strict=True):
            builder.store(builder.load(total), at)
        return context.get_dummy_value()

    return types.void(A, b, types.int64, C), written


def _total(builder: Any, parts: Any) -> Any:
    """Return the sum of a vector, by halves."""
    while (half := parts.type.count // 2) > 0:
        lanes = [
            ir.Constant(ir.VectorType(_I32, half), list(range(at, at + half))) for at in (0, half)
        ]
        parts = builder.fadd(*(builder.shuffle_vector(parts, parts, part) for part in lanes))
    return builder.extract_element(parts, _I32(0))


@piece
def some_dots(A: Reals, b: Reals, n: int, K: int, C: Reals, first: int, last: int) -> None:
    """Set numbers `first` to `last - 1` of C to dot products; see `dots`.

    Of the last blocks of rows, those before `first` may be computed again.
    """
    if n < _ROWS or lanes_of(A) > K:
        for k in range(first, last):
            s = cast_like(0, A[0])
            for i in range(K):
                s = multiply_add(A[k * K + i], b[i], s)
            C[k] = s
    else:
        for k in range(first, last, AT_ONCE):
            at = min(k, n - AT_ONCE)
            _dots(offset(A, at * K), b, K, offset(C, at))


@unit
def dots(A: Reals, b: Reals, n: int, K: int, C: Reals) -> None:
    """Set C (n,) to the dot products of the rows of A (n, K) with `b` (K,)."""
    some_dots(A, b, n, K, C, 0, n)
