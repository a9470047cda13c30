"""Elementary functions that LLVM vectorises.

They are straight-line code of additions, products, bits and at most one division.

`math.tanh` and its relatives are calls of a library, number by number. The functions of this module
become part of the unit that calls them, in the precision of their argument, and a loop over an
array becomes vector instructions. They hold for every argument: denormal numbers, both zeros,
infinities and NaN; `exp(-inf)` is 0 and `log(-1)` NaN. Errors are at most 2 units in the last
place, of `tanh` 3; those of `sin` and `cos`, which hold up to 10^5, are as small beside 1.
tests/formulas/test_elementary.py compares with mpmath.

A product and a sum are rounded once where `multiply_add` says so and the processor can, in vectors
and in the rest of a loop alike; options of the caller change no bit.

Sources: fdlibm (Sun Microsystems 1993, `e_exp.c`, `e_log.c`, and FreeBSD's `e_logf.c`) for ln 2 in
two parts and for `log`; Cephes (Moshier 1989, `sin.c`, `sinf.c`) for `sin` and `cos`; Shepherd and
Laframboise, Math. Comp. 36 (1981) 249, for the variable in which `erfc` is smooth. The polynomials
of `exp` and `erfc` are minimax (Remez exchange with 60 digits), the polynomials of `erf`
interpolate at Chebyshev nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from dynamics_cli.formulas.native import (
    cast_like,
    cgutils,
    function,
    fused,
    intrinsic,
    multiply_add,
    typeof,
    types,
)


class Constants(NamedTuple):
    """A floating-point format and the polynomials that are accurate enough for it.

    Their coefficients begin with the highest power.
    """

    digits: int  # bits of the fraction
    bias: int  # of the exponent
    # added to a number, it rounds it to an integer k and leaves `k + bias` in the last bits
    magic: Any
    # two numbers whose sum is ln 2: the first has zeros at its end, its product with an exponent is
    # exact
    ln2: Any
    half_pi: Any  # two numbers whose sum is pi / 2
    exp: Any  # (exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2
    log: Any  # (log((1 + s) / (1 - s)) - 2 s) / s in s^2, without its factor s^2
    sin: Any  # (sin(r) - r) / r^3 in r^2, |r| <= pi / 4
    cos: Any  # (cos(r) - 1 + r^2 / 2) / r^4 in r^2
    erf: Any  # erf(y) / y - 1 in y^2, y <= 3/4
    # (1 + 51/64 y) exp(y^2 / 2) erfc(y / sqrt(2)) in (y - center) / (y + center), 0 <= y <= 6
    # sqrt(2)
    erfc: Any
    center: Any
    lowest: Any  # exp(lowest) is 0, rounded
    highest: Any  # exp(highest) is infinite

    def of(self, real: Any) -> Constants:
        """Return the constants, but counts of bits, as numbers of a precision."""
        rounded: list[Any] = []
        for value in self[2:]:
            if isinstance(value, tuple):
                rounded.append(tuple(map(real, value)))
            else:
                rounded.append(real(value))
        return Constants(self.digits, self.bias, *rounded)


_SINGLE = Constants(
    digits=23, bias=127, magic=1.5 * 2**23 + 127, ln2=(0.693145751953125, 1.42860676533018704e-06),
    half_pi=(1.57079625129699707, 7.54978995489188216e-08),
    exp=(0.0013946495, 0.00836660899, 0.0416662805, 0.166665435, 0.5),
    log=(0.24279078841, 0.28498786688, 0.40000972152, 0.66666662693),
    sin=(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
    cos=(2.443315711809948e-05, -1.388731625493765e-03, 4.166664568298827e-02),
    erf=(-0.000675647985, 0.00511533208, -0.0268351138, 0.112833865, -0.3761262, 0.128379166),
    erfc=(
        0.000227513025, 0.00020109184, -0.0020688714, -9.27042056e-05, 0.0159012116, -0.0404858962,
        0.0355979428, 0.0523835123, -0.231754929, 0.805896878,
    ),
    center=3.5, lowest=-105.0, highest=89.0,
).of(np.float32)  # fmt: skip
_DOUBLE = Constants(
    digits=52, bias=1023, magic=1.5 * 2**52 + 1023,
    ln2=(6.93147180369123816490e-01, 1.90821492927058770002e-10),
    half_pi=(1.57079632679489656, 6.12323399573676604e-17),
    exp=(
        2.5114523296865093e-08, 2.7626377498273302e-07, 2.7557227811412441e-06,
        2.480150432566799e-05, 0.00019841269903169434, 0.0013888888932470987, 0.0083333333333145392,
        0.041666666666573378, 0.16666666666666685, 0.50000000000000056,
    ),
    log=(
        1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01,
        2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01,
        6.666666666666735130e-01,
    ),
    sin=(
        1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6,
        -1.98412698295895385996e-4, 8.33333333332211858878e-3, -1.66666666666666307295e-1,
    ),
    cos=(
        -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7,
        2.48015872888517045348e-5, -1.38888888888730564116e-3, 4.16666666666665929218e-2,
    ),
    erf=(
        1.1472499701094691e-08, -1.5940066854661717e-07, 1.6430684179741549e-06,
        -1.4924196305569617e-05, 0.00012055289567541706, -0.00085483261887597524,
        0.0052239776154205386, -0.026866170644428485, 0.11283791670952596, -0.37612638903183715,
        0.12837916709551259,
    ),
    erfc=(
        2.3349475006727242e-09, 4.5402432330837133e-09, -2.3692529795107192e-08,
        -3.3077801171489271e-08, 2.0151750045425104e-07, 2.3884057250984126e-08,
        -1.5476517278348273e-06, 2.5521126489042926e-06, 7.2265495905293963e-06,
        -3.9772183335636818e-05, 5.1903455379479826e-05, 0.000195463635600644,
        -0.0013116836849482395, 0.0042669860518805636, -0.0098630539560551032, 0.017518325147064414,
        -0.023789081671337906, 0.021765837577296204, -0.0026411374903484931, -0.040244413848404215,
        0.10644350211062689, -0.18555784414173601, 0.74901082187641665,
    ),
    center=6.0, lowest=-746.0, highest=710.0,
).of(np.float64)  # fmt: skip


@intrinsic
def constants(context: Any, x: Any) -> Any:
    """Return the constants of the precision of a number."""
    values = _SINGLE if x == types.float32 else _DOUBLE
    kind = typeof(values)
    return kind(x), lambda context, builder, signature, arguments: context.get_constant_generic(
        builder, kind, values
    )


# -- parts of numbers


@intrinsic
def bits(context: Any, x: Any) -> Any:
    """Return the bits of a number as an integer."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = builder.bitcast(arguments[0], ir.IntType(x.bitwidth))
        if x.bitwidth < 64:
            return builder.zext(integer, ir.IntType(64))
        return integer

    return types.int64(x), written


@intrinsic
def from_bits(context: Any, integer: Any, like: Any) -> Any:
    """Return the number with these bits, in the precision of another."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        integer = arguments[0]
        if like.bitwidth < 64:
            integer = builder.trunc(integer, ir.IntType(like.bitwidth))
        return builder.bitcast(integer, arguments[1].type)

    return like(integer, like), written


@function
def power_of_two(t: Any) -> Any:
    """Return 2^k for `t = magic + k`, an exponent k of normal numbers."""
    return from_bits(bits(t) << constants(t).digits, t)


@function
def parts(x: Any) -> Any:
    """Return m, about `sqrt(1/2)` to `sqrt(2)`, and k as a number, of a positive normal `m 2^k`."""
    c = constants(x)
    digits = c.digits
    bias = c.bias
    root = int((math.sqrt(0.5) * 2 - 1) * 2**digits + 0.5) + (
        bias - 1 << digits
    )  # the bits of sqrt(1/2)
    above = bits(x) + (bias << digits) - root
    k = from_bits(above >> digits | digits + bias << digits, x) - cast_like(2.0**digits + bias, x)
    return from_bits((above & (1 << digits) - 1) + root, x), k


@function
def clipped(x: Any, low: Any, high: Any) -> Any:
    """Return x, at least `low` and at most `high`; NaN stays."""
    x = low if x < low else x
    return high if x > high else x


@intrinsic
def polynomial(context: Any, x: Any, coefficients: Any) -> Any:
    """Return a polynomial by Horner's rule."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, *others = cgutils.unpack_tuple(builder, arguments[1])
        for coefficient in others:
            value = fused(builder, value.type, [value, arguments[0], coefficient])
        return value

    return x(x, coefficients), written


# -- shared steps


@function
def reduced(x: Any) -> Any:
    """Return r, g, c and `magic + k` with `exp(x) = 2^k (1 + r + g + c)`.

    `|r| <= ln(2) / 2`, and g is about r^2 / 2.

    c is the rounding error of r, which `exp` can do without.
    """
    high, low = constants(x).ln2
    t = multiply_add(x, cast_like(1 / math.log(2), x), constants(x).magic)
    k = t - constants(x).magic
    upper = multiply_add(k, -high, x)
    r = multiply_add(k, -low, upper)
    return r, r * r * polynomial(r, constants(x).exp), (upper - r) - k * low, t


@function
def scaled(x: Any, t: Any) -> Any:
    """Return `2^k x` for `t = magic + k`, in two steps, since 2^k itself may be out of range."""
    half = multiply_add(t - constants(x).magic, cast_like(0.5, x), constants(x).magic)
    return x * power_of_two(half) * power_of_two(t - (half - constants(x).magic))


@function
def logarithm(f: Any, k: Any) -> Any:
    """Return `k ln(2) + log(1 + f)`, `sqrt(1/2) <= 1 + f <= sqrt(2)` (fdlibm's `e_log.c`)."""
    high, low = constants(f).ln2
    s = f / (f + cast_like(2, f))
    half_square = f * f * cast_like(0.5, f)
    z = s * s
    small = multiply_add(k, low, s * multiply_add(z, polynomial(z, constants(f).log), half_square))
    return multiply_add(k, high, f - (half_square - small))


# -- functions


@function
def exp(x: Any) -> Any:
    """Return `exp(x)`."""
    c = constants(x)
    r, g, _, t = reduced(clipped(x, c.lowest, c.highest))
    return scaled(cast_like(1, x) + (r + g), t)


@function
def log(x: Any) -> Any:
    """Return the natural logarithm of x."""
    c = constants(x)
    lift = c.digits + 1
    denormal = x < 2.0 ** (1 - c.bias)
    m, k = parts(x * cast_like(2.0**lift, x) if denormal else x)
    result = logarithm(m - cast_like(1, x), k - cast_like(lift, x) if denormal else k)
    result = result if x < math.inf else x
    result = cast_like(-math.inf, x) if x == 0 else result
    return cast_like(math.nan, x) if x < 0 else result


@function
def sine(x: Any, quarter: int) -> Any:
    """Return `sin(x + quarter pi / 2)`, reduced to a multiple of pi / 2 as by Cody and Waite."""
    c = constants(x)
    unity = cast_like(1, x)
    t = multiply_add(x, cast_like(2 / math.pi, x), constants(x).magic)
    k = t - constants(x).magic
    turns = bits(t) - c.bias + quarter
    r = multiply_add(-k, c.half_pi[1], multiply_add(-k, c.half_pi[0], x))
    z = r * r
    of_sin = np.copysign(multiply_add(r * z, polynomial(z, c.sin), r), r)
    of_cos = multiply_add(z * z, polynomial(z, c.cos), unity - z * cast_like(0.5, x))
    value = of_cos if turns & 1 else of_sin
    return clipped(-value if turns & 2 else value, -unity, unity)


sin = function(lambda x: sine(x, 0))
cos = function(lambda x: sine(x, 1))
"""Return `sin(x)`, and `cos(x)`."""


@function
def tanh(x: Any) -> Any:
    """Return `tanh(x)` as `-m / (2 + m)` with `m = exp(-2 |x|) - 1`, exact where x is small."""
    c = constants(x)
    unity = cast_like(1, x)
    lowest = cast_like(-0.8 * c.digits, x)
    below = abs(x) * cast_like(-2, x)
    r, g, _, t = reduced(lowest if below < lowest else below)
    power = power_of_two(t)
    m = multiply_add(power, r + g, power - unity)
    return np.copysign(m / (cast_like(-2, x) - m), x)


@function
def sigmoid(x: Any) -> Any:
    """Return `1 / (1 + exp(-x))`."""
    unity = cast_like(1, x)
    r, g, c, t = reduced(clipped(-abs(x), constants(x).lowest, cast_like(0, x)))
    small = scaled(unity + (r + g), t)
    total = unity + small
    lost = (unity - total) + small  # counted in the numerator
    negative = scaled(unity + (r + (g + (c - lost))), t)
    return (negative if x < 0 else unity) / total


@function
def softplus(x: Any) -> Any:
    """Return `log(1 + exp(x))`, finite for every finite x."""
    zero = cast_like(0, x)
    unity = cast_like(1, x)
    r, g, _, t = reduced(clipped(-abs(x), constants(x).lowest, zero))
    small = scaled(unity + (r + g), t)
    above = small > cast_like(math.sqrt(2) - 1, x)
    f = (small - unity) * cast_like(0.5, x) if above else small
    return (x if x > 0 else zero) + logarithm(f, unity if above else zero)


@function
def erf(x: Any) -> Any:
    """Return the error function `2 / sqrt(pi) int_0^x exp(-t^2) dt`.

    From 0.75 on it is computed by `exp(x^2) erfc(|x|)`.
    """
    c = constants(x)
    zero = cast_like(0, x)
    unity = cast_like(1, x)
    y = abs(x)
    near = multiply_add(x, polynomial(y * y, c.erf), x)
    small = y < cast_like(0.75, x)
    y = clipped(y, zero, cast_like(6, x))
    r, g, _, t = reduced(-(y * y))
    y *= cast_like(math.sqrt(2), x)
    slope = multiply_add(y, cast_like(51 / 64, x), unity)
    above = y + c.center
    inverse = unity / (above * slope)
    erfc = polynomial((y - c.center) * (slope * inverse), c.erfc) * (above * inverse)
    far = unity - (unity + (r + g)) * erfc * power_of_two(t)
    return near if small else np.copysign(far, x)


FUNCTIONS = ("exp", "log", "sin", "cos", "tanh", "sigmoid", "softplus", "erf")
"""All functions of this module; units call NumPy's for what is not here, number by number."""
