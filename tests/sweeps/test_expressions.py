"""Computed settings: arithmetic, names, and what is refused."""

import math

import numpy as np
import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.expressions import computed, value_of
from tests.cases import read

WRITTEN = read("""
initialization: {scale: 0.5}
dataset: {y: [-1.0, 3.0]}
loss: {kind: mse}
seed: 3
""")


@pytest.mark.parametrize(
    ("expressions", "value"),
    [
        (["min(10, 0.1 / initialization.scale**2)"], 0.4),
        (["-(1 + 2) * 3 - +4"], -13),
        (["dataset.y[1] * max(width, 3)"], 21.0),
        (["round(sqrt(2), 2) + abs(-1) + log(exp(3))"], pytest.approx(5.41)),
        (["int(7 / 2)", "int(a * 2 ** 3)"], 24),
    ],
)
def test_values_are_computed_in_the_order_written(expressions, value):
    let = dict(zip("ab", expressions, strict=False))
    last = list(computed(let, {"width": 7}, WRITTEN).values())[-1]
    assert (last, type(last)) == (value, type(getattr(value, "expected", value)))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("__import__('os').getcwd()", "is not known here"),
        ("(1).__class__", "is not known here"),
        ("1 +", "invalid syntax"),
        ("9 ** 9 ** 9", "too large"),
        ("k + 1", "k is neither swept nor a number of the config"),
        ("loss.kind + 1", "loss.kind is 'mse', not a number"),
        ("seed + 1", "seed is neither swept"),
    ],
)
def test_what_is_refused(expression, message):
    with pytest.raises(UsageError, match=message):
        computed({"k": expression}, {}, WRITTEN)


CURVES = {
    "loss": ([0, 10, 20, 30], [4.0, 2.0, 1.0, 3.0]),
    "top.1": ([0, 30], [5.0, math.nan]),
    "llc.R-hat": ([0], [1.5]),
}


def reduced(expression):
    """Return the number of an expression of `CURVES`; curves of other names are empty."""

    def curves(name, reduction):
        steps, values = CURVES.get(name, ([], []))
        return np.array(steps, np.int64), np.array(values, float)

    return value_of(expression, {"width": 7}, WRITTEN, curves)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("first(loss < 2)", 20),
        ("first(loss <= 2)", 10),
        ("first(loss >= dataset.y[1] + 1)", 0),
        ("first(loss > 4)", math.nan),
        ("max(1, first(loss > 4)) + width", math.nan),
        ("last(loss) - least(loss) * width", -4.0),
        ("largest(top.1) + largest(top[1])", 10.0),
        ("last(top.1)", math.nan),
        ("at(loss, 16)", 1.0),
        ("mean(loss, 3)", 2.0),
        ("last(llc['R-hat'])", 1.5),
        ("mean(other, 3) + first(other > 0) + at(other, 1)", math.nan),
    ],
)
def test_numbers_of_curves(expression, value):
    assert reduced(expression) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("first(loss)", r"first must have the form first\(test_accuracy > 0.95\)"),
        ("first(loss == 2)", "first must have the form"),
        ("first(1 < loss < 2)", "first must have the form"),
        ("last(loss + 1)", "'loss \\+ 1' is not the name of a measure"),
        ("mean(loss, 1.5)", "k an integer >= 1, not 1.5"),
        ("mean(loss, 5)", "loss has 4 values, not 5"),
        ("at(loss, 31)", "loss ends at iteration 30, before 31"),
        ("last(().__class__)", "is not the name of a measure"),
        ("median(loss)", "is not known here"),
    ],
)
def test_what_is_no_number_of_a_curve(expression, message):
    with pytest.raises(UsageError, match=message):
        reduced(expression)
