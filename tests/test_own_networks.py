"""Networks of users, row by row: each number is that of a dense matrix."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import dynamics_cli as dyn
from dynamics_cli.errors import InputError
from tests.cases import read
from tests.dense import EXPECTED, Dense

torch.manual_seed(1)
LLC = read("""
kind: llc
nbeta: 4.0
gamma: 2.0
step: 0.01
burn_in: 0
draws: 3
chains: 1
""")


class Tied(nn.Module):
    """One weight at both ends, a buffer between them."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.last = nn.Linear(3, 3, bias=False)
        self.last.weight = self.first.weight
        self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0]))

    def forward(self, x):
        return self.last(torch.tanh(self.first(x)) * self.scale)


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(2, 3), nn.Embedding(4, 3)

    def forward(self, x, token):
        return torch.tanh(self.left(x)) * self.right(token)


class Masked(nn.Module):
    """A transformer layer whose padded tokens are masked."""

    def __init__(self):
        super().__init__()
        self.embedding, self.readout = nn.Embedding(5, 2), nn.Linear(2, 3)
        self.layer = nn.TransformerEncoderLayer(2, 1, 2, dropout=0.1, batch_first=True)

    def forward(self, input_ids, mask):
        h = self.layer(self.embedding(input_ids), src_key_padding_mask=mask)
        return self.readout(h[:, 0])


X = torch.randn(8, 3)
Y = torch.arange(8) % 3
TOKENS = torch.randint(0, 5, (8, 3))
MASK = torch.arange(3) >= torch.tensor([3, 2, 1, 3, 2, 3, 1, 2])[:, None]
WEIGHTED = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))
SMOOTHED = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1)

ROWS = {
    "tied weights, a buffer": (Tied, X, cross_entropy),
    "two inputs": (Two, (torch.randn(8, 2), torch.arange(8) % 4), cross_entropy),
    "transformer with a mask": (Masked, {"input_ids": TOKENS, "mask": MASK}, cross_entropy),
    "float16": (lambda: Tied().half(), X, cross_entropy),
    "bfloat16": (lambda: Tied().bfloat16(), X, cross_entropy),
    "compiled": (lambda: torch.compile(Tied()), X, cross_entropy),
    "weighted classes, smoothed labels": (Tied, X, SMOOTHED),
}


MEASURES = ["sharpness", "hessian_trace", "gradient_norm", "gauss_newton", "kernel_alignment", LLC]


@pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script_method.*:DeprecationWarning"
)  # of torch.compile
@pytest.mark.parametrize("row", ROWS)
def test_every_number_is_that_of_dense_matrices(row):
    make, x, loss = ROWS[row]
    model = make()
    dense = Dense(model, x, Y, loss)
    expected = {name: EXPECTED[name](dense) for name in MEASURES[:4]}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    (found,) = dyn.measure(model, x, Y, loss=loss, measures=MEASURES[:4])
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.filterwarnings("ignore:llc at iteration 0")  # of weights that are no minimum
def test_networks_of_inference_mode_are_measured():
    model = Tied()
    expected = dyn.measure(model, X, Y, measures=MEASURES)
    with torch.inference_mode():
        inner = dyn.measure(copy.deepcopy(model), X.clone(), Y.clone(), measures=MEASURES)
        loader = DataLoader(TensorDataset(X, Y), batch_size=3)
        assert repr(dyn.measure(model, loader, measures=MEASURES)) == repr(expected)
    assert repr(inner) == repr(expected)


def test_checkpoints_have_steps_and_names_of_wrappers():
    models = [Tied() for _ in range(3)]
    plain = dyn.measure(models[0], X, Y, checkpoints=[model.state_dict() for model in models])
    assert plain.column("iteration") == [0, 1, 2]
    wrapped = [
        {f"module._orig_mod.{k}": v for k, v in model.state_dict().items()} for model in models
    ]
    steps = [5, 10, 100]
    for checkpoints in (
        dict(zip(steps, wrapped, strict=True)),
        list(zip(steps, wrapped, strict=True)),
    ):
        table = dyn.measure(models[0], X, Y, checkpoints=checkpoints)
        assert table.column("iteration") == steps
        assert table.column("sharpness") == plain.column("sharpness")
    assert dyn.measure(models[1], X, Y, step=7)[0] == pytest.approx(
        {**plain[1], "iteration": 7}, rel=1e-6
    )
    data = dyn.measure(
        models[0], X, Y, checkpoints=checkpoints, measures=["sharpness", "hessian_spectrum"]
    ).to_xarray()
    assert data["sharpness"].dims == ("iteration",)
    assert (data["hessian_spectrum"].shape, data["iteration"].values.tolist()) == ((3, 12), steps)


def test_parameters_and_blocks_are_chosen_by_name():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
    H = Dense(model, X, Y, cross_entropy).H
    blocks = {"weights": "*.weight", "biases": "*.bias", "last": "2.*"}
    places = {"weights": np.r_[0:12, 16:28], "biases": np.r_[12:16, 28:31], "last": np.r_[16:31]}
    (row,) = dyn.measure(
        model,
        X,
        Y,
        measures=[{"kind": k, "blocks": blocks} for k in ("sharpness", "hessian_trace")],
    )
    for name, at in places.items():
        part = H[np.ix_(at, at)]
        assert row[f"sharpness_by_block.{name}"] == pytest.approx(
            np.linalg.eigvalsh(part)[-1], rel=1e-6
        )
        assert row[f"hessian_trace_by_block.{name}"] == pytest.approx(np.trace(part), rel=1e-9)
    (chosen,) = dyn.measure(model, X, Y, parameters="2.*", measures=["sharpness", "hessian_trace"])
    last = H[16:, 16:]
    assert chosen["sharpness"] == pytest.approx(np.linalg.eigvalsh(last)[-1], rel=1e-6)
    assert chosen["hessian_trace"] == pytest.approx(np.trace(last), rel=1e-9)


@pytest.mark.parametrize("norm", [nn.utils.weight_norm, nn.utils.spectral_norm])
@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch.func
def test_weights_that_hooks_compute_are_copied(norm):
    model = nn.Sequential(norm(nn.Linear(3, 4)), nn.Tanh(), norm(nn.Linear(4, 3)))
    model(X)  # from now on its weights are no leaves
    kinds = ["train_loss", "gradient_norm", "gradient_noise", "distance"]
    (row,) = dyn.measure(model, X, Y, measures=kinds, checkpoints=[model.state_dict()], start=model)
    loss = cross_entropy(model.eval()(X), Y)
    slopes = torch.autograd.grad(loss, list(model.parameters()))
    norms = [float(loss.detach()), float(torch.cat([slope.flatten() for slope in slopes]).norm())]
    assert [row["train_loss"], row["gradient_norm"]] == pytest.approx(norms, rel=1e-5)
    assert row["distance"] == 0.0


def test_wrappers_of_other_libraries_are_opened():
    model = Tied()
    (plain,) = dyn.measure(model, X, Y)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    lightning = {f"model.{name}": value for name, value in model.state_dict().items()}
    saved = {"state_dict": {**lightning, "metric.total": torch.zeros(())}}
    for checkpoint in (averaged.state_dict(), saved):
        (row,) = dyn.measure(Tied(), X, Y, checkpoints=[checkpoint])
        assert row == pytest.approx(plain)
    assert dyn.measure(averaged, X, Y)[0] == pytest.approx(plain)
    with pytest.raises(InputError, match=r"Missing key.* \.\.\. .*layer_99"):  # both ends
        dyn.measure(model, X, Y, checkpoints=[{f"layer_{k}": X for k in range(100)}])


def test_hooks_write_to_copies_of_what_they_hold():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))
    seen = []
    scale = torch.tensor([1.0, 0.0, 1.0, 1.0])
    model[0].register_forward_hook(lambda module, inputs, h: seen.append(h))
    model[1].register_forward_hook(lambda module, inputs, h: scale * h * model[0].bias.cos())
    model(X)
    expected = EXPECTED["sharpness"](Dense(Hooked(model, scale), X, Y, cross_entropy))
    (row,) = dyn.measure(model, X, Y, measures=["sharpness"])
    assert row["sharpness"] == pytest.approx(expected, rel=1e-6)
    assert len(seen) == 1


class Hooked(nn.Module):
    """A network with its hooks written out."""

    def __init__(self, model, scale):
        super().__init__()
        self.first, self.last, self.scale = model[0], model[2], scale

    def forward(self, x):
        h = nn.functional.linear(x, self.first.weight, self.first.bias)
        return self.last(self.scale * h.tanh() * self.first.bias.cos())


def test_modules_as_checkpoints_are_measured_whole():
    models = [nn.BatchNorm1d(3), nn.BatchNorm1d(3)]
    models[1].eps = 0.5
    table = dyn.measure(models[0], X, Y, measures=["train_loss"], checkpoints=models)
    alone = [dyn.measure(one, X, Y, measures=["train_loss"])[0]["train_loss"] for one in models]
    assert table.column("train_loss") == alone
    assert alone[0] != pytest.approx(alone[1])


def test_held_out_losses_are_weighted_by_their_own_classes():
    model = Tied().double()
    (row,) = dyn.measure(
        model, X, Y, loss=WEIGHTED, measures=["train_loss", "test_loss"], x_test=X[:4], y_test=Y[:4]
    )
    loss = copy.deepcopy(WEIGHTED).double()
    with torch.no_grad():
        expected = [float(loss(model(X[:n].double()), Y[:n])) for n in (8, 4)]
    assert [row["train_loss"], row["test_loss"]] == pytest.approx(expected, rel=1e-12)


def test_chains_that_disagree_are_told():
    with pytest.warns(
        UserWarning,
        match=r"^llc at iteration 0: chains disagree \(split R-hat [0-9.]+, above 1.05\)",
    ):
        (row,) = dyn.measure(
            Tied(), X, Y, measures=[{**LLC, "step": 1e-4, "draws": 50, "chains": 4}]
        )
    assert row["llc.R-hat"] > 1.05
    assert math.isfinite(row["llc.mean"])
