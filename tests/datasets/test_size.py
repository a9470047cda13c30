"""Data that do not fit into memory are refused before they are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamics_cli.config import load_config
from dynamics_cli.config.describe import example
from dynamics_cli.kinds import Dataset, Streams
from dynamics_cli.kinds.registry import loaded_kinds
from dynamics_cli.training import problem
from dynamics_cli.training.session import plan_run

SIZED = [kind for kind in loaded_kinds("dataset").values() if kind.sizes is not Dataset.sizes]


@pytest.mark.parametrize("kind", SIZED, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("changes", [{}, {"append_bias": True, "n_test": 7, "test_per_class": 7}], ids=["", "more"])
def test_sizes_are_those_of_what_is_drawn(
    kind: Any, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A plan without a draw is the plan with one: the same run, backend and needs."""
    monkeypatch.setattr(problem, "DRAWN", 0)
    config = load_config(yaml.safe_load(example(kind)))
    known = {key: value for key, value in changes.items() if key in kind.model_fields}
    config = config.model_copy(update={"dataset": config.dataset.model_copy(update=known)})
    found, there = config.dataset.sizes(), config.dataset.samples(Streams(0))
    assert found.samples().x.shape == there.x.shape
    assert found.samples().y.shape == there.y.shape
    assert (found.n_test, found.bias) == (0 if there.x_test is None else len(there.x_test), there.bias)
    plan, drawn = plan_run(config, tmp_path, drawn=False), plan_run(config, tmp_path)
    assert plan.problem.dataset.x.strides == (0, 0) != drawn.problem.dataset.x.strides
    assert (plan.hash, plan.choice, plan.needs) == (drawn.hash, drawn.choice, drawn.needs)
