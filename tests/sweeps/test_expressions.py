"""Computed settings: arithmetic, names, and what is refused."""

from __future__ import annotations

import pytest

from dynamics_cli.errors import UsageError
from dynamics_cli.sweeps.expressions import computed

WRITTEN = {
    "initialization": {"scale": 0.5},
    "dataset": {"y": [-1.0, 3.0]},
    "loss": {"kind": "mse"},
    "seed": 3,
}


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
