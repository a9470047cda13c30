"""The transformer against PyTorch's own, with its gradients; what it cannot take; pairs modulo
p.
"""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from dynamics_cli.architectures.transformer import Transformer
from dynamics_cli.config import load_config
from dynamics_cli.training.session import obtain_run, plan_run
from tests.cases import read

V = 5
D = 6
C = 4
PAIRS = read("""
name: pairs
dataset: {kind: modular_arithmetic, p: 7, train_fraction: 0.8, labels: classes}
architecture: {kind: transformer, tokens: 2, width: 16, heads: 2, outputs: 7}
initialization: {kind: lecun, scales: {weight_embedding: 2.0}}
loss: {kind: cross_entropy}
optimizer: {kind: adamw, lr: 0.01, weight_decay: 0.1, iterations: 60}
record:
  snapshots: {kind: every, interval: 20}
  measures: [test_accuracy, fourier_concentration]
""")


def plain(config, weights):
    """Return PyTorch's encoder with the same weights: each of its layers is attention, then an
    MLP, after norms.
    """
    layers = []
    for k in range(1, config.layers + 1):
        layer = nn.TransformerEncoderLayer(
            D,
            config.heads,
            config.mlp_width,
            0.0,
            nn.functional.gelu,
            batch_first=True,
            norm_first=True,
        ).double()
        if not config.layer_norm:
            layer.norm1, layer.norm2 = nn.Identity(), nn.Identity()
        own = layer.self_attn
        with torch.no_grad():
            for kind in ("weight", "bias"):
                several = torch.cat(
                    [weights[f"{kind}_{part}{k}"] for part in ("query", "key", "value")]
                )
                getattr(own, f"in_proj_{kind}").copy_(several)
                getattr(own.out_proj, kind).copy_(weights[f"{kind}_attention{k}"])
                getattr(layer.linear1, kind).copy_(weights[f"{kind}_in{k}"])
                getattr(layer.linear2, kind).copy_(weights[f"{kind}_out{k}"])
        layers.append(layer)
    return nn.Sequential(*layers)


@pytest.mark.parametrize(("layers", "layer_norm"), [(1, True), (2, True), (2, False)])
def test_outputs_and_gradients_are_those_of_pytorch(layers, layer_norm):
    config = Transformer(
        tokens=3,
        width=D,
        heads=2,
        layers=layers,
        layer_norm=layer_norm,
        mlp_width=7,
        activation="gelu",
        bias=True,
        outputs=C,
    )
    torch.manual_seed(0)
    model = config.build(3 * V).double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    weights = dict(model.named_parameters())
    numbers = torch.randint(V, (8, 3))
    h = model(nn.functional.one_hot(numbers, V).double().flatten(1))

    table = weights["weight_embedding"].detach().T.clone().requires_grad_()
    reference = plain(config, weights)
    r = nn.functional.embedding(numbers, table) + weights["weight_positions"].detach()
    for layer in reference:  # causal masks are added to the scores: -inf above the diagonal
        r = layer(r, src_mask=torch.full((3, 3), -torch.inf, dtype=r.dtype).triu(1))
    r = (nn.functional.layer_norm(r, (D,)) if layer_norm else r)[:, -1]
    expected = nn.functional.linear(
        r, weights["weight_unembedding"].detach(), weights["bias_unembedding"].detach()
    )
    assert_allclose(h.detach(), expected.detach(), rtol=1e-12, atol=1e-12)

    for outputs in (h, expected):
        outputs.square().sum().backward()
    assert_allclose(weights["weight_embedding"].grad, table.grad.T, rtol=1e-11, atol=1e-11)
    for k, layer in enumerate(reference, 1):
        own = layer.self_attn.in_proj_weight.grad.split(D)
        parts = dict(zip(("query", "key", "value"), own, strict=True))
        parts |= {
            "attention": layer.self_attn.out_proj.weight.grad,
            "in": layer.linear1.weight.grad,
        }
        for part, gradient in parts.items():
            assert_allclose(weights[f"weight_{part}{k}"].grad, gradient, rtol=1e-11, atol=1e-11)


def test_pairs_modulo_seven_are_learned(tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path))
    run = obtain_run(plan_run(load_config(PAIRS))).run
    assert run.losses[-1] < 0.05 < np.log(7) * 0.9 < run.losses[0]
    assert 2 / 7 < run.measures["fourier_concentration"][0] < 1
    assert set(run.parameters) == set(load_config(PAIRS).architecture.shapes(14))
