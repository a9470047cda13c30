import numpy as np
import pytest

from dynamics_cli.runs.run import Run


def test_the_same_run(dyn):
    dyn("train", "toy.yaml", "--out", "a")
    dyn("train", "toy.yaml", "--out", "b")
    found = dyn("compare", "a", "b", "--json").json
    assert found["settings"] == {}
    assert (found["loss"]["relative"], found["loss"]["common"]) == (0, 31)
    assert {name: one["relative"] for name, one in found["parameters"].items()} == {
        "hidden_weight": 0,
        "output_weight": 0,
    }
    text = dyn("compare", "a", "b").out
    assert "the settings are the same" in text
    assert text.count("identical") == 3


def test_other_settings_and_numbers(dyn):
    dyn("train", "toy.yaml", "--out", "a")
    dyn(
        "train",
        "toy.yaml",
        "--out",
        "b",
        "--set",
        "optimizer.kind=adam",
        "--set",
        "optimizer.iterations=20",
    )
    found = dyn("compare", "a", "b", "--json").json
    assert (
        found["settings"].items()
        >= {
            "optimizer.kind": ["gd", "adam"],
            "optimizer.iterations": [30, 20],
            "optimizer.beta1": [None, 0.9],
            "optimizer.loss_scaled": [False, None],
        }.items()
    )
    assert [run["iterations"] for run in found["runs"]] == [30, 20]
    a = Run("a")
    b = Run("b")
    apart = np.abs(a.losses[:21] - b.losses[:21])
    assert found["loss"]["common"] == 21
    assert found["loss"]["relative"] == pytest.approx(apart.max() / a.losses[:21].max(), rel=1e-12)
    assert found["loss"]["iteration"] == int(apart.argmax())
    common = np.intersect1d(a.snapshot_iterations, b.snapshot_iterations)
    assert found["parameters"]["hidden_weight"]["common"] == len(common)
    lines = dyn("compare", "a", "b").out.splitlines()
    assert any(line.split() == ["optimizer.beta1", "-", "0.9"] for line in lines)
    assert any(line.split() == ["iterations", "30", "20"] for line in lines)
