"""Elementary functions against mpmath, in units in the last place, and their loops against the
processor.
"""

import platform
import re
from functools import cache

import mpmath
import numba
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from dynamics_cli.formulas import elementary
from dynamics_cli.formulas.native import vectors_at_once
from dynamics_cli.training.kernels.two_layers import OPTIONS

mp = mpmath.mp.clone()
mp.prec = 120
CALLER = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
# exact function, largest error in ulp of float32 and float64, range where it varies in float32 and
# float64
CASES = {
    "exp": (mp.exp, 2, 2, (-105, 90), (-747, 711)),
    "log": (mp.log, 1, 1, (0, 3), (0, 3)),
    "tanh": (mp.tanh, 3, 3, (-10, 10), (-20, 20)),
    "erf": (mp.erf, 2, 2, (-4.5, 4.5), (-6.5, 6.5)),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), 2, 2, (-105, 20), (-747, 40)),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), 2, 2, (-105, 30), (-747, 50)),
    "sin": (mp.sin, 2, 2, (-1e5, 1e5), (-1e5, 1e5)),
    "cos": (mp.cos, 2, 2, (-1e5, 1e5), (-1e5, 1e5)),
}  # fmt: skip
PERIODIC = CASES["sin"][0], CASES["cos"][0]
TYPES = pytest.mark.parametrize("real", [np.float32, np.float64])
NAMES = pytest.mark.parametrize("name", CASES)


@cache
def loop(name, *flags):
    function = getattr(elementary, name)

    @numba.njit(**{**CALLER, "fastmath": set(flags) or False})
    def fill(x, values):
        for i in range(x.shape[0]):
            values[i] = function(x[i])

    return fill


def applied(name, x, *flags):
    values = np.empty_like(x)
    loop(name, *(flags or CALLER["fastmath"]))(x, values)
    return values


def arguments(name, real, count):
    """Return where the function varies, all magnitudes with both signs, and the neighbours of
    where formulas change.
    """
    rng = np.random.default_rng(0)
    info = np.finfo(real)
    low, high = CASES[name][3 if real is np.float32 else 4]
    scales = rng.uniform(np.log2(float(info.smallest_subnormal)), np.log2(float(info.max)), count)
    near = np.array(
        [
            0.5,
            0.55,
            0.75,
            1,
            np.sqrt(0.5),
            np.sqrt(2),
            np.log(2) / 4,
            np.log(2) / 2,
            np.log(2) * 1.5,
        ]
    )
    near = np.concatenate(
        [near, 2 * near, 1 + near, [float(info.tiny), float(info.smallest_subnormal)]]
    ).astype(real)
    near = np.concatenate(
        [near, np.nextafter(near, real(0)), np.nextafter(near, real(4)), [info.max]]
    )
    parts = [rng.uniform(low, high, 2 * count), rng.uniform(-2, 2, count)]
    x = np.concatenate([*parts, 2.0**scales * rng.choice([-1, 1], count)]).astype(real)
    x = np.concatenate([x, near, -near])
    x = x[np.abs(x) <= high] if name in ("sin", "cos") else x
    return x[np.isfinite(x) & (x > (0 if name == "log" else -np.inf))]


def errors(values, x, exact):
    """Return the errors in units in the last place of the exact value; none of an infinity that
    is right.
    """
    info = np.finfo(values.dtype)
    found = np.empty(len(x))
    for i, (value, argument) in enumerate(zip(values.tolist(), x.tolist(), strict=True)):
        # beyond, functions are constant, linear or out of range, and mpmath takes long
        varies = exact in (
            CASES["log"][0],
            *PERIODIC,
        )  # sympy, once imported, replaces those of `mp`
        true = exact(mp.mpf(argument if varies else min(max(argument, -800.0), 800.0)))
        if exact is CASES["softplus"][0] and argument > 800:
            true = mp.mpf(argument)
        lowest = -1 if exact in PERIODIC else int(info.minexp)
        unit = mp.ldexp(1, max(mp.mag(true) - 1 if true else -5000, lowest) - info.nmant)
        if abs(true) >= mp.mpf(float(info.max)) + unit / 2 or np.isinf(value):
            found[i] = (
                0.0
                if np.isinf(value) and abs(true) >= mp.mpf(float(info.max)) - 4 * unit
                else np.inf
            )
        else:
            found[i] = abs(mp.mpf(value) - true) / unit
    return found


@NAMES
@TYPES
def test_errors(name, real):
    exact, *bounds = CASES[name][:3]
    x = arguments(name, real, 150)
    assert len(x) >= 400
    found = errors(applied(name, x), x, exact)
    worst = int(np.argmax(found))
    assert not np.isnan(found).any()
    assert found[worst] <= bounds[real is np.float64], x[worst]


@pytest.mark.parametrize("name", ["tanh", "sigmoid"])
@TYPES
def test_vectors_side_by_side_have_the_bits_of_one_at_a_time(name, real):
    x = arguments(name, real, 40)
    found = []
    divisions = []
    for count in (1, 4):
        fill = loop.__wrapped__(name, *CALLER["fastmath"])
        values = np.empty_like(x)
        with vectors_at_once(count):
            fill(x, values)
        found.append(values)
        (code,) = fill.inspect_asm().values()
        divisions.append(len(re.findall(r"\bv?f?div", code)))
    assert_array_equal(*found)
    assert divisions[0] < divisions[1]


INF = np.inf
NAN = np.nan


@TYPES
@pytest.mark.parametrize(
    ("name", "values"),  # at -inf, -0.0, 0.0, inf, nan
    [
        ("exp", [0.0, 1.0, 1.0, INF, NAN]),
        ("log", [NAN, -INF, -INF, INF, NAN]),
        ("tanh", [-1.0, -0.0, 0.0, 1.0, NAN]),
        ("erf", [-1.0, -0.0, 0.0, 1.0, NAN]),
        ("sigmoid", [0.0, 0.5, 0.5, 1.0, NAN]),
        ("softplus", [0.0, np.log(2), np.log(2), INF, NAN]),
        ("sin", [NAN, -0.0, 0.0, NAN, NAN]),
        ("cos", [NAN, 1.0, 1.0, NAN, NAN]),
    ],
)
def test_special_arguments(name, values, real):
    found = applied(name, np.array([-INF, -0.0, 0.0, INF, NAN], dtype=real))
    assert_array_equal(found, np.array(values, dtype=real))
    zeros = found == 0
    assert (np.signbit(found) == np.signbit(np.array(values)))[zeros].all()


@TYPES
def test_the_logarithm_outside_its_domain(real):
    assert np.isnan(applied("log", np.array([-1e-45, -1.0, -1e30], dtype=real))).all()


@NAMES
@TYPES
def test_flags_of_the_caller_and_the_place_in_a_vector_change_no_bit(name, real):
    x = arguments(name, real, 50)
    expected = applied(name, x)
    assert_array_equal(applied(name, x, *sorted(OPTIONS["fastmath"])), expected)
    assert_array_equal([applied(name, x[i : i + 1])[0] for i in range(len(x))], expected)


@pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="names of x86 instructions"
)
@NAMES
@TYPES
def test_loops_vectorise(name, real):
    applied(name, np.ones(1, dtype=real))
    compiled = loop(name, *CALLER["fastmath"])
    width = 32 if real is np.float32 else 64
    assembly = next(
        text for types, text in compiled.inspect_asm().items() if types[0].dtype.bitwidth == width
    )
    letter = "s" if real is np.float32 else "d"
    assert re.search(rf"\bv?mulp{letter}\b|\bvfmadd\d+p{letter}\b", assembly)
    assert not re.search(r"cvts[sd]2s[sd]|cvtps2pd|cvtpd2ps", assembly)
    assert not re.search(r"\b(exp|log|tanh|erfc?|fma)f?\b", assembly)  # calls of the library
