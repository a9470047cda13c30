"""Computed settings: arithmetic, names, and what is refused."""

from __future__ import annotations

import math

import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.expressions import Computed, Let, parse_let

WRITTEN = {"initialization": {"scale": 0.5}, "dataset": {"y": [-1.0, 3.0]}, "loss": {"kind": "mse"}}


def value_of(expression, **point):
    return Computed([Let("k", expression)]).at(point, WRITTEN)["k"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("min(10, 0.1 / initialization.scale**2)", 0.4),
        ("-(1 + 2) * 3 - +4", -13),
        ("2 ** -1", 0.5),
        ("dataset.y[1] * 2", 6.0),
        ("round(sqrt(2), 2) + abs(-1)", 2.41),
        ("log(exp(3))", pytest.approx(3.0)),
        ("max(width, 3)", 7),
        ("1e8 ** 0.5", 10000.0),
        ("int(7 / 2)", 3),
    ],
)
def test_values(expression, value):
    assert value_of(expression, width=7) == value
    assert isinstance(value_of("int(7 / 2)"), int)


def test_computed_values_may_name_each_other_in_any_order():
    lets = [parse_let("a = 2 * b"), parse_let("b = initialization.scale + c"), parse_let("c=1")]
    assert Computed(lets).at({}, WRITTEN) == {"a": 3.0, "b": 1.5, "c": 1}
    with pytest.raises(UsageError, match="round in a circle: a <- b <- a"):
        Computed([Let("a", "b"), Let("b", "a")]).at({}, {})
    with pytest.raises(UsageError, match="a gets its value twice"):
        Computed([Let("a", "1")], ["a"])


def test_work_is_bounded():
    """Each chain would take longer than the universe is old, or more memory than there is."""
    doubled = [Let(f"k{k + 1}", f"k{k} + k{k}") for k in range(1000)]
    assert Computed(doubled).at({"k0": 1e-300}, {})["k1000"] == 2.0**1000 * 1e-300
    assert value_of("round(1, -10**9)") == 0
    with pytest.raises(UsageError, match="recursion"):
        Computed([Let(f"k{k}", f"k{k + 1} + 1") for k in range(1000)]).at({"k1000": 1}, {})
    with pytest.raises(UsageError, match="k10 = k9 [*] k9: gives inf"):
        Computed([Let(f"k{k + 1}", f"k{k} * k{k}") for k in range(64)]).at({"k0": 3}, {})


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("__import__('os')", "is not known here"),
        ("(1).__class__", "is not known here"),
        ("[1, 2][0]", "is not known here"),
        ("'a' * 3", "is not known here"),
        ("1 if 2 else 3", "is not known here"),
        ("min(*[1, 2])", "is not known here"),
        ("max(1, 2, key=abs)", "is not known here"),
        ("True + 1", "is not known here"),
        ("1 +", "not an expression"),
        ("(" * 400, "not an expression"),
        ("1 + " * 200 + "1", "not an expression"),
        ("1 / 0", "division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("sqrt(-1)", "math domain error|nonnegative"),
        ("(-8) ** 0.5", "gives"),
        ("exp(1000)", "too large"),
        ("round()", "round"),
        ("loss.kind + 1", "loss.kind is 'mse', not a number"),
        ("seed + 1", "cannot depend on the seed"),
    ],
)
def test_what_is_refused(expression, message):
    with pytest.raises(UsageError, match=message):
        value_of(expression)
    assert math.isfinite(Computed([Let("k", "seed + 1")], ["seed"]).at({"seed": 2}, {})["k"])
