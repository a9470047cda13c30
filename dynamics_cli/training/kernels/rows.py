"""One row operation in vectors of the processor, which the compiler does not find by itself: its sums in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

LINE_BYTES = 64
"""Rows are taken in vectors of this size, and must be padded to a multiple of it."""
_AT_ONCE = 6
"""Vectors that are summed at once: sums do not wait for each other, and all stay in registers."""
_I32, _I64 = ir.IntType(32), ir.IntType(64)


@intrinsic  # type: ignore[untyped-decorator]
def move_row(typing: Any, z: Any, c: Any, G: Any, r: Any, on: Any, active: Any, count: Any, factor: Any) -> Any:
    """Do `z -= factor * sum_p r[active[p]] G[active[p]]` over p < count, and `c -= factor * on * r`.

    `z`, `c`, `on` and `r` are rows (N,) of one precision, `G` is (N, N), `active` (at least count,) int64.
    """
    item = z.dtype
    signature = types.void(z, c, G, r, on, active, types.int64, item)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        arrays = [context.make_array(kinds[k])(context, builder, arguments[k]) for k in range(6)]
        scalar = context.get_data_type(item)
        vector = ir.VectorType(scalar, LINE_BYTES * 8 // item.bitwidth)
        row = _Row(builder, scalar, vector, [array.data for array in arrays], arguments[6], arguments[7])
        N = builder.extract_value(arrays[0].shape, 0)
        blocks = builder.udiv(N, _I64(vector.count))
        whole = builder.udiv(blocks, _I64(_AT_ONCE))
        with cgutils.for_range(builder, whole) as passes:
            row.move(builder.mul(passes.index, _I64(_AT_ONCE * vector.count)), _AT_ONCE, N)
        start = builder.mul(whole, _I64(_AT_ONCE * vector.count))
        left = builder.urem(blocks, _I64(_AT_ONCE))
        for many in range(1, _AT_ONCE):
            with builder.if_then(builder.icmp_unsigned("==", left, _I64(many))):
                row.move(start, many, N)
        return context.get_dummy_value()

    return signature, generate


class _Row:
    """Writes the code for some vectors of a row."""

    def __init__(self, builder: Any, scalar: Any, vector: Any, data: list[Any], count: Any, factor: Any) -> None:
        self.builder, self.scalar, self.vector = builder, scalar, vector
        self.z, self.c, self.G, self.r, self.on, self.active = data
        self.count, self.factor = count, self._spread(factor)

    def _spread(self, number: Any) -> Any:
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, number, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, self.vector.count), [0] * self.vector.count)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def _at(self, data: Any, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(data, [offset]), self.vector.as_pointer())

    def _load(self, data: Any, offset: Any) -> Any:
        return self.builder.load(self._at(data, offset), align=self.scalar_bytes())

    def scalar_bytes(self) -> int:
        """Return the size of a number: rows need not start at a cache line."""
        return LINE_BYTES // int(self.vector.count)

    def move(self, start: Any, many: int, N: Any) -> None:
        """Move `many` vectors from entry `start` on."""
        b, fast = self.builder, ("contract",)
        places = [b.add(start, _I64(k * self.vector.count)) for k in range(many)]
        zero = ir.Constant(self.vector, [0.0] * self.vector.count)
        sums = [cgutils.alloca_once(b, self.vector) for _ in places]
        for each in sums:
            b.store(zero, each)
        with cgutils.for_range(b, self.count) as loop:
            sample = b.load(b.gep(self.active, [loop.index]))
            weight = self._spread(b.load(b.gep(self.r, [sample])))
            row = b.mul(sample, N)
            for place, each in zip(places, sums, strict=True):
                product = b.fmul(weight, self._load(self.G, b.add(row, place)), flags=fast)
                b.store(b.fadd(b.load(each), product, flags=fast), each)
        for place, each in zip(places, sums, strict=True):
            self._subtract(self.z, place, b.load(each))
            self._subtract(self.c, place, b.fmul(self._load(self.on, place), self._load(self.r, place)))

    def _subtract(self, data: Any, place: Any, direction: Any) -> None:
        b, fast = self.builder, ("contract",)
        step = b.fmul(self.factor, direction, flags=fast)
        moved = b.fsub(self._load(data, place), step, flags=fast)
        b.store(moved, self._at(data, place), align=self.scalar_bytes())
