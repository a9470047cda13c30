"""Convolutional networks: their layers, and the network like VGG16."""

import numpy as np
import pytest
import torch
from dynamics_cli._bundled.experiments.tachet2018.architectures.vgg16 import Vgg16
from numpy.testing import assert_allclose

from dynamics_cli.architectures.convolutional import Convolutional
from tests.cases import read

SMALL = read("""
kind: convolutional
image: [1, 6, 6]
convolutions: [[3, 3, 1, 1], [2, 4, 2, 1]]
widths: [5]
""")


def test_named_layers_and_their_outputs():
    config = Convolutional(**SMALL)
    found = config.layers()
    assert [layer.name for layer in found] == [
        "conv(3,3,1,1)",
        "conv(2,4,2,1)",
        "fc(18,5)",
        "fc(5,1)",
    ]
    assert [layer.output for layer in found] == [(3, 6, 6), (2, 3, 3), (5,), (1,)]
    assert sum(layer.parameters for layer in found) == sum(
        int(np.prod(shape)) for shape in config.shapes(36).values()
    )
    rng = np.random.default_rng(1)
    weights = {name: rng.standard_normal(shape) for name, shape in config.shapes(36).items()}
    x = rng.standard_normal((4, 36))
    third = config.layer_outputs(weights, x, 3)
    assert third.shape == (4, 5)
    last = np.maximum(third, 0) @ weights["weight_4"][0] + weights["bias_4"]
    assert_allclose(last, config.function(weights)(x), rtol=1e-10)
    assert config.layer_outputs(weights, x, 1).shape == (4, 108)
    with pytest.raises(ValueError, match="no layer 5"):
        config.layer_outputs(weights, x, 5)


def test_full_size_has_the_138_million_weights_of_the_paper():
    """Simonyan and Zisserman 2014, Table 2: 138 million; 138 357 544 with 1000 outputs."""
    shapes = Vgg16(outputs=1000).shapes(3 * 224 * 224)
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == 138_357_544
    assert [shapes[f"weight_{k}"] for k in (1, 13, 14)] == [
        (64, 3, 3, 3),
        (512, 512, 3, 3),
        (4096, 25088),
    ]


def test_first_layers_are_convolution_and_pooling():
    config = Vgg16(image=[1, 4, 4], width_multiplier=1 / 64)
    model = config.build(16)
    assert {layer.number: layer.pool for layer in config.layers() if layer.pool > 1} == {2: 2, 4: 2}
    assert model(torch.ones(2, 16)).tolist() == [0.0, 0.0]  # all weights 0
