import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from dynamics_cli.measures.clusters import cluster_directions

seeds = st.integers(0, 2**32 - 1)


def polar_neurons(angles_in_degrees, lengths):
    angles = np.radians(np.asarray(angles_in_degrees, dtype=float))
    return np.asarray(lengths, dtype=float)[:, None] * np.stack(
        [np.cos(angles), np.sin(angles)], axis=1
    )


def test_two_groups_and_a_negligible_neuron():
    W = polar_neurons([10, 100, 12, 101, 200], [1, 3, 1, 1, 1e-4])
    found = cluster_directions(W, angle_tolerance=5.0, relative_norm=1e-2)
    assert found.labels.tolist() == [1, 0, 1, 0, -1]
    assert_allclose(found.masses, [10.0, 2.0])
    assert found.sizes.tolist() == [2, 2]
    assert_allclose(np.degrees(np.arctan2(*found.directions.T[::-1])), [100.25, 11.0], atol=0.01)


@given(seeds)
def test_groups_depend_neither_on_order_nor_on_scale_nor_on_rotation(seed):
    rng = np.random.default_rng(seed)
    W = polar_neurons(
        rng.choice([0, 40, 80, 200], size=12) + rng.uniform(-1, 1, 12), rng.uniform(0.5, 2, 12)
    )
    Q = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    order = rng.permutation(12)
    base = cluster_directions(W, angle_tolerance=5.0)
    for other, places in ((W[order], order), (1e-20 * W, slice(None)), (W @ Q, slice(None))):
        again = cluster_directions(other, angle_tolerance=5.0)
        assert again.labels.tolist() == base.labels[places].tolist()
        assert_allclose(
            again.masses / again.masses.sum(), base.masses / base.masses.sum(), rtol=1e-9
        )
