from __future__ import annotations

import numpy as np
import pytest

from dynamics_cli.datasets.images import light_effect
from dynamics_cli.errors import InputError


@pytest.mark.parametrize("shape", [(256,), (2, 8, 16), (2, 4, 4, 8)])
def test_every_pixel_value(shape: tuple[int, ...]) -> None:
    """Tachet des Combes et al. 2018, Appendix E.2: 0 to 127 for the one class, 128 to 255 for the other."""
    values = np.arange(256, dtype=np.uint8).reshape(-1, *shape[1:])
    before = values.copy()
    everything, nothing = np.ones(len(values), dtype=bool), np.zeros(len(values), dtype=bool)
    np.testing.assert_array_equal(light_effect(values, nothing).reshape(-1), np.arange(256) // 2)
    np.testing.assert_array_equal(light_effect(values, everything).reshape(-1), 128 + np.arange(256) // 2)
    np.testing.assert_array_equal(values, before)


def test_each_image_has_its_own_brightness() -> None:
    images = np.full((3, 2, 2), 255, dtype=np.uint8)
    found = light_effect(images, np.array([True, False, True]))
    assert found.dtype == np.uint8
    assert found[:, 0, 0].tolist() == [255, 127, 255]


def test_misuse_is_told() -> None:
    with pytest.raises(InputError, match="needs bytes and one flag an image, not float64"):
        light_effect(np.zeros((2, 3)), np.zeros(2, dtype=bool))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"not uint8 and \(3,\) for \(2,\)"):
        light_effect(np.zeros((2, 3), dtype=np.uint8), np.zeros(3, dtype=bool))
