"""Data that do not fit into memory are refused before they are drawn."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dynamics_cli.config.streams import Streams
from dynamics_cli.datasets.linear_teacher import Gaussians, LinearTeacher
from dynamics_cli.datasets.mixture import Mixture
from dynamics_cli.datasets.orthogonally_separable import OrthogonallySeparable
from dynamics_cli.datasets.orthonormal import Orthonormal
from dynamics_cli.errors import InputError

MANY = 2**62
LARGE = [
    Orthonormal(n=MANY, dim=MANY),
    Orthonormal(n=1, dim=MANY),
    Gaussians(per_class=MANY, mean=[1.0], deviation=1.0),
    Gaussians(per_class=1, mean=[1.0], deviation=1.0, dim=MANY),
    Gaussians(per_class=1, mean=[1.0], deviation=1.0, test_per_class=MANY),
    LinearTeacher(n=MANY, dim=2),
    LinearTeacher(n=2, dim=MANY),
    LinearTeacher(n=2, dim=2, n_test=MANY),
    OrthogonallySeparable(n=MANY, dim=2),
    OrthogonallySeparable(n=2, dim=MANY),
    Mixture(n=MANY),
    Mixture(modes=MANY),
]


@pytest.mark.parametrize("config", LARGE, ids=range(len(LARGE)))
def test_refused_with_the_size(config: Any) -> None:
    with pytest.raises(
        InputError, match=r"^dataset: \d+ x \d+ numbers need about [0-9.e+]+ GiB of memory, this machine has"
    ):
        config.load(Streams(0))


def test_a_margin_that_no_point_has_is_told_soon() -> None:
    start = time.process_time()
    with pytest.raises(InputError, match="hardly any point is on its side of the teacher"):
        LinearTeacher(n=100_000, dim=20, margin=30.0).load(Streams(0))
    assert time.process_time() - start < 10  # a thousand rounds would take minutes
    with pytest.raises(InputError, match="hardly any point is on its side of the teacher"):
        LinearTeacher(n=3, dim=2, margin=30.0).load(Streams(0))
