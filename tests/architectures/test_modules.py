"""Networks made of torch's modules: sizes in the papers, formulas written out, causality."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from dynamics_cli.errors import InputError
from dynamics_cli.kinds import get_kind
from tests.cases import problem_of


def built(kind, d, **settings):
    torch.manual_seed(0)
    return get_kind("architecture", kind)(**settings).build(d).double()


@pytest.mark.parametrize(("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85)])
def test_residual_networks_have_the_sizes_of_their_paper(depth, millions):
    """He et al. 2016, Table 6."""
    kind = get_kind("architecture", "resnet")(depth=depth, outputs=10)
    shapes = kind.shapes(3072)
    assert sum(map(math.prod, shapes.values())) / 1e6 == pytest.approx(millions, abs=0.005)
    convolutions = [name for name in shapes if "conv" in name or name == "first.weight"]
    assert len(convolutions) == depth - 1
    if depth == 20:  # 41 million (Table 6 of Zagoruyko's and others' implementations)
        assert kind.multiply_adds(shapes, 3072) == pytest.approx(40.8e6, rel=0.01)


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
def test_a_block_of_a_residual_network_is_its_formula(norm):
    model = built("resnet", 27 * 4, image=[3, 6, 6], depth=8, width=4, norm=norm, groups=2)
    model.train()
    x = torch.randn(5, 4, 6, 6, dtype=torch.float64)
    block = model.stages[1][0]  # 4 to 8 channels, half the size

    def normal(z):
        if norm == "none":
            return z
        groups = z.reshape(5, 2, -1) if norm == "group" else z.transpose(0, 1).reshape(8, -1)
        axis = -1
        mean = groups.mean(axis, keepdim=True)
        deviation = (groups.var(axis, keepdim=True, correction=0) + 1e-5).sqrt()
        scaled = (groups - mean) / deviation
        if norm == "group":
            return scaled.reshape(z.shape)
        return scaled.reshape(8, 5, *z.shape[2:]).transpose(0, 1)

    def conv(of, z, stride):
        return nn.functional.conv2d(z, of.weight, of.bias, stride=stride, padding=1)

    inner = conv(block.conv2, normal(conv(block.conv1, x, 2)).relu(), 1)
    shortcut = torch.cat([x[..., ::2, ::2], torch.zeros(5, 4, 3, 3)], 1)
    torch.testing.assert_close(block(x), (shortcut + normal(inner)).relu())
    assert (model(torch.randn(5, 108, dtype=torch.float64)).shape) == (5,)


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_gpt_is_causal_and_its_attention_that_of_torch(positions):
    settings = {"tokens": 5, "width": 8, "heads": 2, "layers": 2, "outputs": 3}
    model = built("gpt", 15, positions=positions, predict="every", **settings).eval()
    x = torch.randn(4, 5, 3, dtype=torch.float64)
    h = model(x.flatten(1))
    assert h.shape == (4, 5, 3)
    last = built("gpt", 15, positions=positions, **settings).eval()
    torch.testing.assert_close(last(x.flatten(1)), h[:, -1])
    later = x.clone()
    later[:, 3:] += 1.0
    torch.testing.assert_close(model(later.flatten(1))[:, :3], h[:, :3])
    assert not torch.allclose(model(later.flatten(1))[:, 3:], h[:, 3:])
    # the head is the embedding
    assert not [name for name, _ in model.named_parameters() if "head" in name]

    attention = model.layers[0].attention
    r = torch.randn(4, 5, 8, dtype=torch.float64)
    q, k, v = (p.reshape(4, 5, 2, 4).transpose(1, 2) for p in attention.into(r).chunk(3, -1))
    if positions == "rotary":  # a pair of numbers is a complex number, turned by t w_j
        angles = torch.arange(5)[:, None] * torch.tensor([1.0, 1e4**-0.5], dtype=torch.float64)
        turn = torch.polar(torch.ones_like(angles), angles)
        q, k = (torch.complex(*z.chunk(2, -1)) * turn for z in (q, k))
        q, k = (torch.cat([z.real, z.imag], -1) for z in (q, k))
    mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    expected = attention.out(mixed.transpose(1, 2).reshape(4, 5, 8))
    torch.testing.assert_close(attention(r), expected, rtol=1e-13, atol=1e-15)


def test_the_weights_of_gpt_begin_as_those_of_gpt_2():
    """Radford et al. 2019, Section 2.3: 0.02, divided by the root of the number of residual
    layers where they add to the stream.
    """
    model = built("gpt", 40, tokens=2, width=80, layers=2, outputs=20)
    weights = {name: w.detach() for name, w in model.named_parameters()}
    assert weights["layers.1.into.weight"].std() == pytest.approx(0.02, rel=0.02)
    assert weights["layers.1.out.weight"].std() == pytest.approx(0.01, rel=0.02)
    assert weights["layers.1.attention.out.weight"].std() == pytest.approx(0.01, rel=0.02)
    assert torch.equal(weights["layers.0.norm1.weight"], torch.ones(80).double())


CELLS = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}


@pytest.mark.parametrize("cell", CELLS)
def test_a_recurrent_network_is_its_cell_from_token_to_token(cell):
    settings = {"cell": cell, "tokens": 4, "width": 3, "predict": "every"}
    model = built("recurrent", 8, **settings)
    own = CELLS[cell](2, 3).double()
    inner = {name.removesuffix("_l0"): w for name, w in model.cells.named_parameters()}
    own.load_state_dict(inner)
    x = torch.randn(5, 4, 2, dtype=torch.float64)
    state = None
    outputs = []
    for t in range(4):
        state = own(x[:, t], state)
        s = state[0] if cell == "lstm" else state
        outputs.append(model.last(s)[:, 0])
    torch.testing.assert_close(model(x.flatten(1)), torch.stack(outputs, 1))
    last = built("recurrent", 8, **{**settings, "predict": None})
    torch.testing.assert_close(last(x.flatten(1)), outputs[-1])


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_a_residual_network_normalises_what_its_relus_take(norm):
    model = built("residual", 3, width=4, depth=3, norm=norm)
    with torch.no_grad():
        for w in model.parameters():
            w.normal_()
    W1, W2, W3 = model.parameters()
    x = torch.randn(6, 3, dtype=torch.float64)

    def normal(f):
        axis = 1 if norm == "layer" else 0
        spread = (f.var(axis, keepdim=True, correction=0) + 1e-5).sqrt()
        return (f - f.mean(axis, keepdim=True)) / spread

    f = x @ W1.T
    f = f + normal(f).relu() @ W2.T
    torch.testing.assert_close(model(x), (normal(f).relu() @ W3.T)[:, 0])
    assert get_kind("architecture", "residual")(width=4, depth=3, norm=norm).has_modes(3) == (
        norm == "batch"
    )


def test_weights_as_built_are_those_of_a_script():
    changes = {
        "seed": 3,
        "architecture": {"kind": "recurrent", "tokens": 2, "width": 4},
        "initialization": {"kind": "as_built"},
    }
    problem = problem_of(**changes)
    torch.manual_seed(3)
    script = problem.config.architecture.build(2)
    found = problem.initial_parameters()
    for name, w in script.named_parameters():
        np.testing.assert_array_equal(found[name], w.detach().double().numpy())
    zeros = problem_of(initialization={"kind": "as_built"})
    with pytest.raises(InputError, match="two_layer draws no weights itself; take default_scaled"):
        zeros.initial_parameters()
