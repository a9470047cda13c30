"""Orthogonal separability and products of pairs, against loops over all pairs."""

import numpy as np
import pytest
from dynamics_cli._bundled.experiments.phuong2021.theory.separability import (
    mixed_share,
    pair_products,
)


def test_distributions_of_all_pairs():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((23, 4))
    y = np.where(np.arange(23) < 9, 0, 1)
    found = pair_products(x, y, bins=2000)
    pairs = {"across": [], "first": [], "second": []}
    for i in range(23):
        for j in range(i + 1, 23):
            sort = "across" if y[i] != y[j] else ("first", "second")[y[i]]
            pairs[sort].append(x[i] @ x[j])
    right = 0
    for sort, products in pairs.items():
        values = np.array(products)
        assert found.counts[sort].sum() == len(values)
        assert found.means[sort] == pytest.approx(values.mean())
        assert found.stds[sort] == pytest.approx(values.std())
        satisfied = values <= 0 if sort == "across" else values > 0
        assert found.satisfied[sort] == pytest.approx(satisfied.mean())
        right += satisfied.sum()
    assert mixed_share(x, y) == pytest.approx(found.satisfied["across"])
    assert found.share == pytest.approx(right / (23 * 22 / 2))
    exact = np.mean(np.array(pairs["first"])[:, None] > np.array(pairs["across"])[None, :])
    assert found.right("first") == pytest.approx(exact, abs=0.01)
