"""The network like VGG16."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dynamics_cli.architectures.convolutional import Vgg16


def test_full_size_has_the_138_million_weights_of_the_paper():
    """Simonyan and Zisserman 2014, Table 2: 138 million; 138 357 544 with 1000 outputs."""
    shapes = Vgg16(outputs=1000).shapes(3 * 224 * 224)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 138_357_544
    assert [shapes[f"weight_{k}"] for k in (1, 13, 14)] == [(64, 3, 3, 3), (512, 512, 3, 3), (4096, 25088)]


@pytest.mark.parametrize("image", [[3, 32, 32], [1, 28, 28], [2, 5, 9]])
def test_pools_only_while_there_are_pixels(image):
    config = Vgg16(image=image, width_multiplier=1 / 64)
    d = int(np.prod(image))
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal(shape) for name, shape in config.shapes(d).items()}
    x = rng.standard_normal((300, d))
    h = config.function(weights)(x)
    assert h.shape == (300,)
    assert np.isfinite(h).all()
    np.testing.assert_allclose(config.function(weights)(x[7:9]), h[7:9], rtol=1e-10)


def test_first_layers_are_convolution_and_pooling():
    config = Vgg16(image=[1, 4, 4], width_multiplier=1 / 64)
    model = config.build(16)
    assert model.pools == {2: 2, 4: 2}
    assert model(torch.ones(2, 16)).tolist() == [0.0, 0.0]  # all weights 0
