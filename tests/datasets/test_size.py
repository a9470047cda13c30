"""Data that do not fit into memory are refused before they are drawn."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dynamics_cli.config.dataset import (
    GaussiansDataset,
    LinearTeacherDataset,
    MixtureDataset,
    OrthogonallySeparableDataset,
    OrthonormalDataset,
)
from dynamics_cli.datasets import build_dataset
from dynamics_cli.errors import InputError

MANY = 2**62
LARGE = [
    OrthonormalDataset(kind="orthonormal", n=MANY, dim=MANY),
    OrthonormalDataset(kind="orthonormal", n=1, dim=MANY),
    GaussiansDataset(kind="gaussians", per_class=MANY, mean=[1.0], deviation=1.0),
    GaussiansDataset(kind="gaussians", per_class=1, mean=[1.0], deviation=1.0, dim=MANY),
    GaussiansDataset(kind="gaussians", per_class=1, mean=[1.0], deviation=1.0, test_per_class=MANY),
    LinearTeacherDataset(kind="linear_teacher", n=MANY, dim=2),
    LinearTeacherDataset(kind="linear_teacher", n=2, dim=MANY),
    LinearTeacherDataset(kind="linear_teacher", n=2, dim=2, n_test=MANY),
    OrthogonallySeparableDataset(kind="orthogonally_separable", n=MANY, dim=2),
    OrthogonallySeparableDataset(kind="orthogonally_separable", n=2, dim=MANY),
    MixtureDataset(kind="mixture", n=MANY),
    MixtureDataset(kind="mixture", modes=MANY),
]


@pytest.mark.parametrize("config", LARGE, ids=range(len(LARGE)))
def test_refused_with_the_size(config: Any) -> None:
    with pytest.raises(
        InputError, match=r"^dataset: \d+ x \d+ numbers need about [0-9.e+]+ GiB of memory, this machine has"
    ):
        build_dataset(config, seed=0)


def test_a_margin_that_no_point_has_is_told_soon() -> None:
    start = time.process_time()
    with pytest.raises(InputError, match="hardly any point is on its side of the teacher"):
        build_dataset(LinearTeacherDataset(kind="linear_teacher", n=100_000, dim=20, margin=30.0), seed=0)
    assert time.process_time() - start < 10  # a thousand rounds would take minutes
    with pytest.raises(InputError, match="hardly any point is on its side of the teacher"):
        build_dataset(LinearTeacherDataset(kind="linear_teacher", n=3, dim=2, margin=30.0), seed=0)
