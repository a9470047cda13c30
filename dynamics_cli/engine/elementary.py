"""Elementary functions that LLVM vectorises: straight-line code of additions, products, bits and at most one division.

`math.tanh` and its relatives are calls of a library, number by number. The functions of this module are written into
the kernel that calls them, in the precision of their argument, and a loop over an array becomes vector instructions.
For use in compiled functions only. They hold for every argument: denormal numbers, both zeros, infinities and NaN;
`exp(-inf)` is 0 and `log(-1)` NaN, without an exception. Errors are at most 4 units in the last place in float32, 2 in
float64 (4: `ndtr`); tests/engine/test_elementary.py compares with mpmath.

The caller may use any of `reassoc`, `contract`, `nsz` and `arcp` and gets the same bits: every operation carries a flag
that means nothing to it, since numba adds the caller's flags only to operations without flags. A product and a sum are
rounded once where `_Real.times_plus` says so and the processor can, in vectors and in the rest of a loop alike.

Sources: fdlibm (Sun Microsystems 1993, `e_exp.c`, `e_log.c`, and FreeBSD's `e_logf.c`) for ln 2 in two parts and for
`log`; Cephes (Moshier 1989, `tanh.c`, `tanhf.c`) for small arguments of `tanh`; Shepherd and Laframboise, Math. Comp.
36 (1981) 249, for the variable in which `erfc` is smooth. The polynomials of `exp` and `erfc` are minimax (Remez
exchange with 60 digits), the polynomials of `erf` interpolate at Chebyshev nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


@dataclass(frozen=True)
class _Format:
    """A floating-point format and the polynomials that are accurate enough for it, highest power first."""

    integer: ir.IntType
    digits: int
    """Bits of the fraction."""
    bias: int
    """The exponent's."""
    ln2: tuple[float, float]
    """Two numbers whose sum is ln 2; the first has zeros at its end, so that its product with an exponent is exact."""
    exp: Sequence[float]
    """Of `(exp(r) - 1 - r) / r^2`, `|r| <= ln(2) / 2`."""
    log: Sequence[float]
    """Of `(log((1 + s) / (1 - s)) - 2 s) / s` in `s^2`, without its factor `s^2`."""
    tanh: tuple[Sequence[float], Sequence[float]]
    """Of `1 - tanh(y) / y`, divided by y^2, in `y^2`, `y <= 5/8`: numerator and denominator."""
    erf: Sequence[float]
    """Of `erf(y) / y - 1` in `y^2`, `y <= 3/4`."""
    erfc: Sequence[float]
    """Of `(1 + 51/64 y) exp(y^2 / 2) erfc(y / sqrt(2))`, in `(y - center) / (y + center)`, `0 <= y <= last`."""
    center: float
    last: float
    """`ndtr(-last)` is 0, rounded."""
    lowest: float
    """`exp(lowest)` is 0, rounded."""
    highest: float
    """`exp(highest)` is infinite."""

    @property
    def magic(self) -> float:
        """Added to a number, it rounds it to an integer k and leaves `k + bias` in the last bits."""
        return 1.5 * 2.0**self.digits + self.bias


_SINGLE = _Format(
    integer=ir.IntType(32), digits=23, bias=127, ln2=(0.693145751953125, 1.42860676533018704e-06),
    exp=(0.0013946495, 0.00836660899, 0.0416662805, 0.166665435, 0.5),
    log=(0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693),
    tanh=((5.70498872745e-3, -2.06390887954e-2, 5.37397155531e-2, -1.33314422036e-1, 3.33332819422e-1), (1.0,)),
    erf=(-0.000675647985, 0.00511533208, -0.0268351138, 0.112833865, -0.3761262, 0.128379166),
    erfc=(
        0.000227513025, 0.00020109184, -0.0020688714, -9.27042056e-05, 0.0159012116, -0.0404858962, 0.0355979428,
        0.0523835123, -0.231754929, 0.805896878,
    ),
    center=3.5, last=14.6, lowest=-105.0, highest=89.0,
)  # fmt: skip
_DOUBLE = _Format(
    integer=ir.IntType(64), digits=52, bias=1023, ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
    exp=(
        2.5114523296865093e-08, 2.7626377498273302e-07, 2.7557227811412441e-06, 2.480150432566799e-05,
        0.00019841269903169434, 0.0013888888932470987, 0.0083333333333145392, 0.041666666666573378,
        0.16666666666666685, 0.50000000000000056,
    ),
    log=(
        1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01,
        2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01,
    ),
    tanh=(
        (9.64399179425052238628e-1, 9.92877231001918586564e1, 1.61468768441708447952e3),
        (1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3),
    ),
    erf=(
        1.1472499701094691e-08, -1.5940066854661717e-07, 1.6430684179741549e-06, -1.4924196305569617e-05,
        0.00012055289567541706, -0.00085483261887597524, 0.0052239776154205386, -0.026866170644428485,
        0.11283791670952596, -0.37612638903183715, 0.12837916709551259,
    ),
    erfc=(
        2.3349475006727242e-09, 4.5402432330837133e-09, -2.3692529795107192e-08, -3.3077801171489271e-08,
        2.0151750045425104e-07, 2.3884057250984126e-08, -1.5476517278348273e-06, 2.5521126489042926e-06,
        7.2265495905293963e-06, -3.9772183335636818e-05, 5.1903455379479826e-05, 0.000195463635600644,
        -0.0013116836849482395, 0.0042669860518805636, -0.0098630539560551032, 0.017518325147064414,
        -0.023789081671337906, 0.021765837577296204, -0.0026411374903484931, -0.040244413848404215,
        0.10644350211062689, -0.18555784414173601, 0.74901082187641665,
    ),
    center=6.0, last=39.0, lowest=-746.0, highest=710.0,
)  # fmt: skip


class _Unflagged(set[str]):
    """Flags of a call: none."""

    def add(self, flag: str) -> None:
        """Leave out a flag of the caller."""


class _Real:
    """A number of the kernel that is being compiled; arithmetic on it appends instructions.

    Constants take the number's own precision. Operations carry a flag that means nothing to them (`arcp` is about
    division, `contract` about products and sums), which keeps the flags of the caller away.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder = builder
        self.value = value
        self.format = _SINGLE if value.type == ir.FloatType() else _DOUBLE

    def of(self, value: Any) -> _Real:
        """Return `value`, a number of Python or an instruction, as a number of this kernel."""
        if isinstance(value, _Real):
            return value
        return _Real(self.builder, ir.Constant(self.value.type, value) if isinstance(value, int | float) else value)

    def __add__(self, other: _Real | float) -> _Real:
        return self.of(self.builder.fadd(self.value, self.of(other).value, flags=("arcp",)))

    def __sub__(self, other: _Real | float) -> _Real:
        return self.of(self.builder.fsub(self.value, self.of(other).value, flags=("arcp",)))

    def __rsub__(self, other: float) -> _Real:
        return self.of(other) - self

    def __mul__(self, other: _Real | float) -> _Real:
        return self.of(self.builder.fmul(self.value, self.of(other).value, flags=("arcp",)))

    def __truediv__(self, other: _Real) -> _Real:
        return self.of(self.builder.fdiv(self.value, other.value, flags=("contract",)))

    def __rtruediv__(self, other: float) -> _Real:
        return self.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other: _Real | float) -> Any:
        return self.builder.fcmp_ordered("<", self.value, self.of(other).value, flags=("contract",))

    def __gt__(self, other: _Real | float) -> Any:
        return self.of(other) < self

    def equals(self, other: float) -> Any:
        """Return whether this number equals the other; both zeros are equal."""
        return self.builder.fcmp_ordered("==", self.value, self.of(other).value, flags=("contract",))

    def where(self, condition: Any, other: _Real | float) -> _Real:
        """Return this number where the condition holds, else the other."""
        return self.of(self.builder.select(condition, self.value, self.of(other).value))

    def clipped(self, low: float, high: float) -> _Real:
        """Return the number, at least `low` and at most `high`; NaN stays."""
        x = self.of(low).where(self < low, self)
        return x.of(high).where(x > high, x)

    def _call(self, name: str, *others: _Real | float) -> _Real:
        real = self.value.type
        function = self.builder.module.declare_intrinsic(
            f"llvm.{name}", [real], ir.FunctionType(real, [real] * (1 + len(others)))
        )
        call = self.builder.call(function, [self.value, *(self.of(other).value for other in others)])
        call.fastmath = _Unflagged()
        return self.of(call)

    def __abs__(self) -> _Real:
        return self._call("fabs")

    def signed(self, other: _Real) -> _Real:
        """Return this number's size with the other's sign."""
        return self._call("copysign", other)

    def times_plus(self, factor: _Real | float, summand: _Real | float) -> _Real:
        """Return `self factor + summand`, rounded once where the processor has such an instruction, else twice."""
        return self._call("fmuladd", factor, summand)

    def polynomial(self, coefficients: Sequence[float]) -> _Real:
        """Return the polynomial at this number by Horner's rule; highest power first."""
        result = self.of(coefficients[0])
        for coefficient in coefficients[1:]:
            result = result.times_plus(self, coefficient)
        return result

    def bits(self, change: Callable[[Any, Callable[[int], Any]], Any]) -> _Real:
        """Return the number whose bits are `change(bits, constant)`, `constant` making integers of their length."""
        integer = self.format.integer
        changed = change(self.builder.bitcast(self.value, integer), lambda value: ir.Constant(integer, value))
        return self.of(self.builder.bitcast(changed, self.value.type))

    def power_of_two(self) -> _Real:
        """Return 2^k for this number `magic + k`, an exponent k of normal numbers."""
        return self.bits(lambda bits, constant: self.builder.shl(bits, constant(self.format.digits)))

    def truncated(self) -> _Real:
        """Return the number without the last half of its digits, so that its square is exact."""
        mask = -1 << (self.format.digits + 2) // 2
        return self.bits(lambda bits, constant: self.builder.and_(bits, constant(mask)))

    def parts(self) -> tuple[_Real, _Real]:
        """Return m, about `sqrt(1/2)` to `sqrt(2)`, and k as a number, of this positive normal number m 2^k."""
        builder, digits, bias = self.builder, self.format.digits, self.format.bias
        root = round((math.sqrt(0.5) * 2 - 1) * 2**digits) + (bias - 1 << digits)  # the bits of sqrt(1/2)
        shift, one = (bias << digits) - root, 2.0**digits

        def exponent(bits: Any, constant: Callable[[int], Any]) -> Any:
            """Return the bits of `2^digits + bias + k`."""
            above = builder.lshr(builder.add(bits, constant(shift)), constant(digits))
            return builder.or_(above, constant(digits + bias << digits))

        def fraction(bits: Any, constant: Callable[[int], Any]) -> Any:
            below = builder.and_(builder.add(bits, constant(shift)), constant((1 << digits) - 1))
            return builder.add(below, constant(root))

        return self.bits(fraction), self.bits(exponent) - (one + bias)


def _elementary(formula: Callable[[_Real], _Real]) -> Callable[[float], float]:
    """Return the function that writes `formula` into the kernel that calls it; integers count as float64."""

    def typed(typingctx: Any, x: Any) -> Any:
        real = x if x in (types.float32, types.float64) else types.float64

        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return formula(_Real(builder, arguments[0])).value

        return real(real), generated

    typed.__name__, typed.__qualname__, typed.__doc__ = formula.__name__, formula.__qualname__, formula.__doc__
    typed.__module__ = formula.__module__
    return cast(Callable[[float], float], intrinsic(typed))


def _reduced(x: _Real, rest: _Real | None = None) -> tuple[_Real, _Real, _Real, _Real]:
    """Return r, g, c and `magic + k` with `exp(x + rest) = 2^k (1 + r + g + c)`, |r| <= ln(2) / 2 and g about r^2 / 2.

    `rest` is much smaller than 1; c is the rounding error of r, which `exp` can do without.
    """
    form = x.format
    t = x.times_plus(1 / math.log(2), form.magic)
    k = t - form.magic
    upper, lower = k.times_plus(-form.ln2[0], x), k.times_plus(-form.ln2[1], rest or 0.0)
    r = upper + lower if rest else k.times_plus(-form.ln2[1], upper)
    return r, r * r * r.polynomial(form.exp), (upper - r) + lower, t


def _scaled(x: _Real, t: _Real) -> _Real:
    """Return `2^k x` for `t = magic + k`, in two steps, since 2^k itself may be out of range."""
    magic = x.format.magic
    half = (t - magic).times_plus(0.5, magic)
    return x * half.power_of_two() * (t - (half - magic)).power_of_two()


def _logarithm(f: _Real, k: _Real) -> _Real:
    """Return `k ln(2) + log(1 + f)`, `sqrt(1/2) <= 1 + f <= sqrt(2)` (fdlibm's `e_log.c`)."""
    high, low = f.format.ln2
    s, half_square = f / (f + 2.0), f * f * 0.5
    z = s * s
    rest = k.times_plus(low, s * (z.times_plus(z.polynomial(f.format.log), half_square)))
    return k.times_plus(high, f - (half_square - rest))


def _scaled_erfc(y: _Real) -> tuple[_Real, _Real]:
    """Return `exp(y^2 / 2) erfc(y / sqrt(2))`, `0 <= y <= last`, and the relative error of its division."""
    center, slope = y.format.center, y.times_plus(51 / 64, 1.0)
    above = y + center
    inverse = 1.0 / (above * slope)
    t, quotient = (y - center) * (slope * inverse), above * inverse
    return t.polynomial(y.format.erfc) * quotient, (quotient * -1.0).times_plus(slope, 1.0)


@_elementary
def exp(x: _Real) -> _Real:
    """Return `exp(x)`."""
    r, g, _, t = _reduced(x.clipped(x.format.lowest, x.format.highest))
    return _scaled(1.0 + (r + g), t)


@_elementary
def log(x: _Real) -> _Real:
    """Return the natural logarithm of x."""
    form = x.format
    lift = form.digits + 1.0
    denormal = x < 2.0 ** (1 - form.bias)
    m, k = (x * 2.0**lift).where(denormal, x).parts()
    result = _logarithm(m - 1.0, (k - lift).where(denormal, k)).where(x < math.inf, x)
    return x.of(math.nan).where(x < 0.0, x.of(-math.inf).where(x.equals(0.0), result))


@_elementary
def tanh(x: _Real) -> _Real:
    """Return `tanh(x)`: x plus a rational function below 0.55, `1 - 2 e / (1 + e)`, `e = exp(-2 x)`, above."""
    y, numerator, denominator = abs(x), *x.format.tanh
    square, twice = y * y, (y * -2.0).clipped(-0.8 * x.format.digits, 0.0)
    r, g, _, t = _reduced(twice)
    large, power = twice < -1.1, (t + 1.0).power_of_two()
    e = power.times_plus(r + g, power)  # twice exp(-2 y)
    above = e.where(large, square.polynomial(numerator) * (y * square))
    below = e.times_plus(0.5, 1.0).where(large, square.polynomial(denominator))
    return (x.of(1.0).where(large, y) - above / below).signed(x)


@_elementary
def sigmoid(x: _Real) -> _Real:
    """Return `1 / (1 + exp(-x))`."""
    r, g, c, t = _reduced((abs(x) * -1.0).clipped(x.format.lowest, 0.0))
    small = _scaled(1.0 + (r + g), t)
    total = 1.0 + small
    lost = (1.0 - total) + small  # counted in the numerator
    return _scaled(1.0 + (r + (g + (c - lost))), t).where(x < 0.0, 1.0) / total


@_elementary
def softplus(x: _Real) -> _Real:
    """Return `log(1 + exp(x))`, finite for every finite x."""
    r, g, _, t = _reduced((abs(x) * -1.0).clipped(x.format.lowest, 0.0))
    small = _scaled(1.0 + (r + g), t)
    above = small > math.sqrt(2) - 1
    f = ((small - 1.0) * 0.5).where(above, small)
    return x.where(x > 0.0, 0.0) + _logarithm(f, x.of(1.0).where(above, 0.0))


@_elementary
def erf(x: _Real) -> _Real:
    """Return the error function `2 / sqrt(pi) int_0^x exp(-t^2) dt`."""
    y = abs(x)
    near = x.times_plus((y * y).polynomial(x.format.erf), x)
    y = y.clipped(0.0, 6.0)
    r, g, _, t = _reduced(y * y * -1.0)
    far = 1.0 - (1.0 + (r + g)) * _scaled_erfc(y * math.sqrt(2))[0] * t.power_of_two()
    return near.where(y < 0.75, far.signed(x))


@_elementary
def ndtr(x: _Real) -> _Real:
    """Return the distribution function of a standard Gaussian, accurate for negative x."""
    y = abs(x).clipped(0.0, x.format.last)
    upper = y.truncated()  # the square has two parts, since its error counts
    r, g, c, t = _reduced(upper * upper * -0.5, (y - upper) * (y + upper) * -0.5)
    factor, rest = _scaled_erfc(y)
    factor = factor * 0.5
    tail = _scaled(factor.times_plus(r + (g + (c + rest.times_plus(r, rest))), factor), t)
    return (1.0 - tail).where(x > 0.0, tail)


FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "softplus", "erf", "ndtr")
"""All functions of this module; units call NumPy's for what is not here, number by number."""
