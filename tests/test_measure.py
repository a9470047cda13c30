"""`dyn.measure` on modules that are no kinds of the program, against dense matrices of
`torch.func`.
"""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call, grad, hessian
from torch.nn.functional import cross_entropy
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    default_collate,
)

import dynamics_cli as dyn
from dynamics_cli import memory
from dynamics_cli.errors import InputError
from dynamics_cli.gradients.derivatives import Derivatives
from dynamics_cli.instruments.network import Given
from dynamics_cli.kinds import Problem, State, Streams, all_kinds, stream
from dynamics_cli.recording import kernel
from dynamics_cli.recording.activations import watched
from dynamics_cli.recording.weights import OfLayer
from dynamics_cli.runs.run import columns_of
from tests.cases import config_of, problem_of, read
from tests.conftest import stranger_to_kinds
from tests.dense import EXPECTED, Dense, largest
from tests.recording.test_instruments import STATISTICS

torch.manual_seed(0)


class Tokens(nn.Module):
    """A transformer with dropout, whose readout is its embedding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.layer = nn.TransformerEncoderLayer(4, 2, 3, dropout=0.2, batch_first=True)
        self.readout = nn.Linear(4, 5, bias=False)
        self.readout.weight = self.embedding.weight

    def forward(self, x):
        return self.readout(self.layer(self.embedding(x)).mean(1))


def normed():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    for _ in range(3):  # in training mode: running means and variances are no longer 0 and 1
        model(torch.randn(20, 3) + 1)
    return model


class Recurrent(nn.Module):
    """A GRU, which `torch.func.vmap` cannot map over samples, and a branch on values."""

    def __init__(self):
        super().__init__()
        self.layer, self.readout = nn.GRU(2, 3, batch_first=True), nn.Linear(3, 2)

    def forward(self, x):
        h = self.readout(self.layer(x)[0][:, -1])
        return h if x.sum() > -1e9 else -h


CONVOLUTIONAL = nn.Sequential(
    nn.Conv2d(1, 2, 3), nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8, 3)
)
# name -> module, inputs, labels, loss of torch, loss, and the factor between their means
NETWORKS = {
    "convolutional": (
        CONVOLUTIONAL,
        torch.randn(7, 1, 6, 6),
        torch.arange(7) % 3,
        nn.CrossEntropyLoss(),
        "cross_entropy",
        1.0,
    ),
    "transformer": (
        Tokens(),
        torch.randint(0, 5, (7, 3)),
        torch.arange(7) % 5,
        nn.CrossEntropyLoss(),
        cross_entropy,
        1.0,
    ),
    "recurrent": (
        Recurrent(),
        torch.randn(6, 4, 2),
        torch.arange(6) % 2,
        nn.CrossEntropyLoss(),
        cross_entropy,
        1.0,
    ),
    "batch-normed": (
        normed(),
        torch.randn(7, 3),
        torch.randn(7, 2),
        nn.MSELoss(),
        {"kind": "mse"},
        2.0,
    ),
}


SPECIAL = [
    {"kind": "kernel_eigenvalues", "top": 3},
    {"kind": "sharpness", "blocks": "layer"},
    "hessian_spectrum",
    {"kind": "spectral_density", "probes": 1, "steps": 3},
    {"kind": "hessian_trace", "blocks": "layer", "probes": 100},
]


@pytest.fixture(scope="module", params=NETWORKS)
def dense(request):
    module, x, y, loss, _, factor = NETWORKS[request.param]
    return request.param, Dense(module, x, y, loss, factor)


@pytest.mark.parametrize("rows", [100, 3], ids=["at once", "in blocks"])
def test_measures_are_those_of_dense_matrices(dense, rows, monkeypatch):
    name, oracle = dense
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    module, x, y, _, loss, _ = NETWORKS[name]
    special = SPECIAL if rows == 100 else SPECIAL[:1]
    expected = {
        kind: number(oracle)
        for kind, number in EXPECTED.items()
        if rows == 100 or kind != "hessian_trace"
    }
    if rows == 3:
        monkeypatch.setattr(kernel, "KERNEL", 0)  # products with the matrix, as of many samples
    (row,) = dyn.measure(module, x, y, loss=loss, measures=[*expected, *special], seed=5)
    assert {kind: row[kind] for kind in expected} == pytest.approx(expected, rel=2e-6, abs=1e-12)
    values = np.linalg.eigvalsh(oracle.J @ oracle.J.T)[::-1][:3]
    assert_allclose([row[f"kernel_eigenvalues.{k}"] for k in (1, 2, 3)], values, rtol=1e-9)
    if rows == 3:
        return
    layers = {
        f"sharpness_by_layer.{w}": largest(H)
        for w, H in zip(oracle.weights, oracle.blocks(), strict=True)
    }
    assert {key: row[key] for key in layers} == pytest.approx(layers, rel=2e-6, abs=1e-9)
    assert_allclose(row["hessian_spectrum"], np.linalg.eigvalsh(oracle.H)[::-1], atol=1e-10)
    v = stream(5, "spectral_density").standard_normal(len(oracle.H))
    nodes, weights = np.array([row[f"spectral_density.{k}"] for k in range(1, 7)]).reshape(2, 3)
    assert nodes @ weights == pytest.approx(v @ oracle.H @ v / (v @ v), rel=1e-9)
    exact = np.array([np.trace(H) for H in oracle.blocks()])
    spread = np.array(
        [np.linalg.norm(rows) for rows in np.split(oracle.H, np.cumsum(oracle.sizes)[:-1])]
    )
    found = [row[f"hessian_trace_by_layer.{w}"] for w in oracle.weights]
    assert (
        np.abs(found - exact) < 0.5 * spread + 1e-9
    ).all()  # of signs the variance is at most 2 spread^2 / 100


def test_sharpness_in_single_precision(dense):
    name, oracle = dense
    module, x, y, _, loss, _ = NETWORKS[name]
    (row,) = dyn.measure(module, x, y, loss=loss, measures=["sharpness"], dtype="float32")
    assert row["sharpness"] == pytest.approx(largest(oracle.H), rel=1e-4)


SETTINGS_OF_LLC = {"kind": "llc", "burn_in": 0, "draws": 3, "nbeta": 3.0, "step": 0.01}
OWN = {"activation_flips", "balancedness", "fourier_concentration", "predictor"}
SETTINGS = read("""
alignment: {directions: [[1.0, 0.0]]}
spectral_density: {probes: 1, steps: 3}
llc: {burn_in: 5, draws: 3}
singular_values: {layer: '{first}'}
neurons: {layer: '{first}'}
""")


def with_dead_units(layer):
    with torch.no_grad():
        layer.bias[:2] = -50.0
    return layer


RECTIFIED = nn.Sequential(
    *(with_dead_units(nn.Conv2d(1, 3, 3)), nn.ReLU(), nn.Flatten()),
    *(with_dead_units(nn.Linear(48, 5)), nn.LeakyReLU(), nn.Linear(5, 2)),
)


class Shared(nn.Module):
    """One ReLU that is called after two layers, in the second of which units are dead."""

    def __init__(self, wide=6):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(4, 6)
        self.second = with_dead_units(nn.Linear(6, wide))
        self.relu = nn.ReLU()
        self.last = nn.Linear(wide, 1)

    def forward(self, x):
        h = self.relu(self.first(x))
        h = self.relu(self.second(h))
        return self.last(h)[:, 0]


class Often(Shared):
    def forward(self, x):
        h = self.first(x)
        for _ in range(1 + int(x[0, 0] > 5)):
            h = self.relu(self.second(h))
        return self.last(h)[:, 0]


def test_calls_that_depend_on_samples_are_refused(monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: 4)
    monkeypatch.setattr(Given, "refuse_mixing", lambda *_: None)
    model = Often()
    x = torch.randn(8, 4)
    for k in (0, 4):
        rows = x.clone()
        rows[k, 0] = 6.0
        with pytest.raises(InputError, match="its module relu more often for some samples"):
            dyn.measure(model, rows, rows[:, 0], loss="mse", measures=["dead_units"])


class Permuted(nn.Module):
    """Move the channels of images to the last axis, as ConvNeXt does."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1)


def read_out(*layers):
    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.LazyLinear(1))


def first(k, axis=1):
    """Return the outputs of the first k layers, units last."""
    return lambda model, x: model[:k](x).movedim(axis, -1)


def at_first(model, x):
    return model.first(x).relu()


def at_second(model, x):
    return model.second(at_first(model, x)).relu()


CALLS = {".1": at_first, ".2": at_second}
CONV = nn.Conv1d(6, 5, 3)
OF_CONV = with_dead_units(copy.deepcopy(CONV))
TRANSPOSED = with_dead_units(nn.ConvTranspose1d(6, 5, 3))
# model, shape of a sample, label of an activation -> its outputs
ACTIVATED = {
    "two layers": (RECTIFIED, (1, 6, 6), {".1": first(2), ".4": first(5)}),
    "called twice": (Shared(6), (4,), CALLS),
    "called twice, wider": (Shared(8), (4,), CALLS),
    "conv1d": (read_out(OF_CONV), (6, 9), {"": first(2)}),
    "conv1d transposed": (read_out(TRANSPOSED), (6, 9), {"": first(2)}),
    "batch norm": (read_out(CONV, with_dead_units(nn.BatchNorm1d(5))), (6, 9), {"": first(3)}),
    "pooled": (read_out(OF_CONV, nn.MaxPool1d(2)), (6, 9), {"": first(3)}),
    "conv2d": (read_out(with_dead_units(nn.Conv2d(3, 5, 3))), (3, 6, 6), {"": first(2)}),
    "channels last": (
        read_out(Permuted(), with_dead_units(nn.Linear(3, 5))),
        (3, 6, 6),
        {"": first(3, -1)},
    ),
    "tokens": (read_out(with_dead_units(nn.Linear(6, 5))), (9, 6), {"": first(2, -1)}),
    "tokens of a convolution": (
        read_out(CONV, with_dead_units(nn.Linear(7, 5))),
        (6, 9),
        {"": first(3, -1)},
    ),
}


@pytest.mark.parametrize("rows", [100, 3], ids=["at once", "in blocks"])
@pytest.mark.parametrize("case", ACTIVATED)
def test_units_are_channels_of_convolutions_and_the_last_axis_of_layers(case, rows, monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    given, shape, outputs = ACTIVATED[case]
    model = copy.deepcopy(given).eval()
    x = torch.randn(8, *shape, generator=torch.Generator().manual_seed(0))
    y = model(x).detach()
    asked = ["dead_units", *({"kind": "activations", "of": of} for of in STATISTICS)]
    (row,) = dyn.measure(model, x, y, loss="mse", measures=asked)
    expected = {"iteration": 0}
    for label, function in outputs.items():
        h = function(model.double(), x.double()).flatten(0, -2).detach().numpy()
        expected[f"dead_units{label}"] = np.mean(~(h > 0).any(0))
        expected |= {f"activations_{of}{label}": number(h) for of, number in STATISTICS.items()}
    assert row == pytest.approx(expected, rel=1e-12)
    assert max(row[f"dead_units{label}"] for label in outputs) >= 1 / 4


def test_activations_of_modules_that_are_named():
    x = torch.randn(7, 1, 6, 6)
    asked = {"kind": "activations", "of": "mean", "modules": ["[05]", "2"]}
    (named,) = dyn.measure(RECTIFIED, x, x[:, 0, 0, :2], loss="mse", measures=[asked])
    model = copy.deepcopy(RECTIFIED).double()
    means = {f"activations_mean.{k}": model[: k + 1](x.double()).mean().item() for k in (0, 5, 2)}
    assert list(named)[1:] == list(means)
    assert named == pytest.approx({"iteration": 0, **means}, rel=1e-12)


class ByRows(OfLayer):
    """An own measure of a layer, whose rows a kernel of four axes would not be."""

    def measure(self, state):
        return np.linalg.svd(self.chosen(state.problem, state.parameters), compute_uv=False)


def test_the_kernel_of_a_convolution_is_a_matrix():
    problem = problem_of(
        dataset={"kind": "sparse_parity", "n": 3, "dim": 32, "k": 2},
        architecture={
            **{"kind": "convolutional", "image": [2, 4, 4], "widths": [4]},
            "convolutions": [[3, 3, 1, 0]],
        },
        initialization={"kind": "default_scaled"},
    )
    start = problem.initial_parameters()
    (name, kernel), *_ = start.items()
    trained = ByRows(kind="by_rows", layer=name).measure(State(problem, start, lambda: start, 0))
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(12, 1))
    model[0].weight.data = torch.from_numpy(kernel).float()

    def by_rows(state):
        return ByRows(kind="by_rows", layer="0.weight").measure(state)

    with stranger_to_kinds():
        (row,) = dyn.measure(
            model, torch.ones(3, 2, 4, 4), torch.ones(3), loss="mse", measures=[by_rows]
        )
    expected = np.linalg.svd(kernel.reshape(3, 18), compute_uv=False)
    np.testing.assert_allclose(trained, expected, rtol=1e-12)
    np.testing.assert_allclose([row[f"by_rows.{k}"] for k in (1, 2, 3)], expected, rtol=1e-6)


def test_hooks_of_measures_are_removed():
    seen = []
    with watched(RECTIFIED, ["1", "4"], lambda name, _: seen.append(name)):
        RECTIFIED(torch.randn(2, 1, 6, 6))
    RECTIFIED(torch.randn(2, 1, 6, 6))
    assert seen == ["1", "4"]
    assert not any(module._forward_hooks for module in RECTIFIED.modules())


@pytest.mark.filterwarnings("ignore:llc at iteration 0")  # of weights that are no minimum
@pytest.mark.parametrize("kind", all_kinds("measure"))
@pytest.mark.parametrize(
    "name",
    [
        "transformer",
        "batch-normed",
        pytest.param("convolutional", marks=pytest.mark.long),
        pytest.param("recurrent", marks=pytest.mark.long),
    ],
)
def test_every_measure_gives_numbers_or_says_why_not(name, kind):
    module, x, y, _, loss, _ = NETWORKS[name]
    settings = {
        key: next(iter(module.state_dict())) if value == "{first}" else value
        for key, value in SETTINGS.get(kind, {}).items()
    }
    refused = OWN | {"alignment", "by_position"}  # these labels are of samples
    refused |= {"attention"} if name != "transformer" else set()
    refused |= {"margin", "train_accuracy", "test_accuracy"} if name == "batch-normed" else set()
    if name in ("transformer", "recurrent"):
        refused |= {"activations", "dead_units"}  # they call functions instead of modules
    refused |= {"update", "directional_sharpness", "critical_lr"}  # of a single state
    refused |= {"preconditioned_sharpness"}  # without an optimizer
    options = {"start": module, "x_test": x[:3], "y_test": y[:3], "loss": loss}
    if kind in refused:
        with pytest.raises(
            InputError, match=rf"record\.measures: (no measure '{kind}' here, it needs \w|{kind})"
        ) as told:
            dyn.measure(module, x, y, measures=[{"kind": kind, **settings}], **options)
        assert "\n" not in str(told.value)
        return
    (row,) = dyn.measure(module, x, y, measures=[{"kind": kind, **settings}], **options)
    numbers = [np.asarray(value) for key, value in row.items() if key.startswith(kind)]
    assert numbers
    assert np.isfinite(numbers[0]).any()


def test_measures_of_a_run_are_those_of_its_network(tmp_path):
    measures = [
        "train_loss",
        "sharpness",
        "gradient_norm",
        "gradient_noise",
        "hessian_trace",
        "gauss_newton",
        "distance",
        "kernel_alignment",
        "kernel_distance",
        "weight_norm",
        "dead_units",
        {"kind": "activations", "of": "stable_rank"},
        "smallest_eigenvalue",
        *({"kind": "update", "of": of} for of in ("relative", "cosine_last", "cosine_gradient")),
        {"kind": "update", "blocks": "layer"},
        "directional_sharpness",
        "critical_lr",
        {"kind": "batch_sharpness", "batch_size": 2, "batches": 3},
        {"kind": "sharpness", "top": 2, "blocks": "layer"},
        {"kind": "spectral_density", "probes": 2, "steps": 5},
        {"kind": "hessian_trace", "blocks": "layer", "probes": 3},
    ]
    points = {
        "kind": "linear_map",
        "inputs": 3,
        "outputs": 2,
        "singular_values": [2.0, 1.0],
        "n": 9,
        "noise": 0.5,
    }
    network = {"kind": "fully_connected", "widths": [4], "activation": "tanh", "outputs": 2}
    config = config_of(
        dataset=points,
        architecture=network,
        initialization={"kind": "default_scaled"},
        seed=3,
        record={"snapshots": {"kind": "every", "interval": 1}, "measures": measures},
    )
    run = dyn.train(config, out=tmp_path / "run")
    samples = run.config.dataset.samples(Streams(3))
    module = run.config.architecture.build(3)
    states = [{name: array[k] for name, array in run.parameters.items()} for k in range(6)]
    table = dyn.measure(
        module,
        samples.x,
        samples.y,
        loss="mse",
        measures=measures,
        checkpoints=states,
        start=states[0],
        seed=3,
    )
    assert table.column("iteration") == run.snapshot_iterations.tolist() == list(range(6))
    columns = columns_of(run, "hessian_trace_by_layer")
    assert [column.label for column in columns] == list(states[0])
    assert columns[0].name == f"hessian_trace_by_layer.{columns[0].label}"
    for name, recorded in run.measures.items():
        columns = (
            [name]
            if recorded.ndim == 1
            else [key for key in table[0] if key.startswith(f"{name}.")]
        )
        found = [[row[name]] if name in row else [row[key] for key in columns] for row in table]
        found = np.array(found, float).reshape(recorded.shape)
        assert_allclose(found, recorded, rtol=1e-6, atol=1e-12, err_msg=name)


MODULE, X, Y = NETWORKS["transformer"][:3]
FORMS = {
    "arrays": lambda: dyn.measure(MODULE, X.numpy(), Y.numpy()),
    "loader": lambda: dyn.measure(MODULE, DataLoader(TensorDataset(X, Y), batch_size=2)),
    "loss of model and batch": lambda: dyn.measure(
        MODULE,
        {"x": X, "y": Y},
        loss=lambda model, batch: cross_entropy(model(batch["x"]), batch["y"]),
    ),
    "the same, of a loader": lambda: dyn.measure(
        MODULE,
        DataLoader(TensorDataset(X, Y), 3),
        loss=lambda model, batch: cross_entropy(model(batch[0]), batch[1]),
    ),
    "loss of samples": lambda: dyn.measure(
        MODULE, X, Y, loss=lambda h, y: cross_entropy(h, y, reduction="none")
    ),
    "mean of losses": lambda: dyn.measure(MODULE, X, Y, loss=nn.CrossEntropyLoss()),
    "sum of losses": lambda: dyn.measure(MODULE, X, Y, loss=nn.CrossEntropyLoss(reduction="sum")),
    "kind": lambda: dyn.measure(MODULE, X, Y, loss={"kind": "cross_entropy", "reduction": "sum"}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [100, 3], ids=["at once", "in blocks"])
def test_models_data_and_losses_in_other_forms_mean_the_same(form, rows, monkeypatch):
    monkeypatch.setattr(Problem, "block_samples", lambda *_: rows)
    (usual,) = dyn.measure(MODULE, X, Y)
    times = 7.0 if form in ("sum of losses", "kind") else 1.0
    expected = {key: value if key == "iteration" else times * value for key, value in usual.items()}
    assert FORMS[form]()[0] == pytest.approx(expected, rel=1e-5)


class Stream(IterableDataset[Tensor]):
    def __iter__(self):
        return iter(X)


class Files(Dataset[tuple[Tensor, Tensor]]):
    """A data set that is read sample by sample."""

    def __len__(self):
        return 7

    def __getitem__(self, k):
        return X[k], Y[k]


def test_batches_of_a_loader_are_never_held_together(monkeypatch):
    sizes = []

    def collate(samples):
        sizes.append(len(samples))
        return default_collate(samples)

    monkeypatch.setattr(Problem, "block_samples", lambda *_: 3)
    monkeypatch.setattr(memory, "block_samples", lambda *_: 3)
    measures = [
        "train_loss",
        "sharpness",
        "kernel_alignment",
        "gradient_noise",
        SETTINGS_OF_LLC,
    ]
    loader = DataLoader(Files(), batch_size=2, shuffle=True, collate_fn=collate)
    (row,) = dyn.measure(MODULE, loader, measures=measures)
    assert max(sizes) == 3
    assert row == pytest.approx(
        dyn.measure(MODULE, X, Y, measures=measures)[0], rel=1e-12, nan_ok=True
    )


ROWS = torch.randn(7, 3)


LONG = torch.randint(0, 5, (40, 3))


def test_a_loader_that_leaves_the_same_samples_out_keeps_its_draws():
    drawn = torch.Generator().manual_seed(3)
    state = drawn.get_state()
    shuffled = DataLoader(Files(), 7, shuffle=True, drop_last=True, generator=drawn)
    last = DataLoader(Files(), 3, drop_last=True)
    for loader, n in ((shuffled, 7), (last, 6)):
        (row,) = dyn.measure(MODULE, loader, measures=["train_loss"])
        assert row == pytest.approx(dyn.measure(MODULE, X[:n], Y[:n], measures=["train_loss"])[0])
    assert torch.equal(drawn.get_state(), state)


LATE = torch.where((torch.arange(40) == 25)[:, None] & (torch.arange(3) > 0), -1, LONG)


def token_mean(model, batch):
    """Return the mean over tokens; labels -1 are left out, so samples count by their lengths."""
    labels = batch["labels"]
    h = model(batch["x"])[:, None].expand(-1, labels.shape[1], -1)
    return cross_entropy(h.flatten(0, 1), labels.flatten(), ignore_index=-1)


class Padded(Dataset[tuple[Tensor, Tensor]]):
    """Sequences, of which one is longer than the others."""

    def __len__(self):
        return 9

    def __getitem__(self, k):
        return torch.ones(5 if k == 6 else 2), torch.ones(())


def pad(samples):
    rows = nn.utils.rnn.pad_sequence([x for x, _ in samples], batch_first=True)
    return rows[:, :, None], torch.stack([y for _, y in samples])


class Total(nn.Module):
    def forward(self, x):
        return x.sum(1)


class Jitter(nn.Module):
    """Dropout that is left on."""

    def forward(self, x):
        return nn.functional.dropout(x, 1e-3)


class OfDictionary(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, batch):
        return self.layer(batch["data"])[:, 0]


class Single(OfDictionary):
    """A network that works in float32, whatever its weights have."""

    def forward(self, x):
        return self.layer(x.float())[:, 0]


class Encoder(nn.Module):
    """Attention with padding, whose fast path gives zeros there."""

    def __init__(self, *, nested=True):
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        h = self.encoder(self.embedding(x), src_key_padding_mask=x == 0)
        return self.head(h.mean(1))


PADDED = torch.tensor([[1, 2, 3, 0, 0], [4, 5, 1, 2, 0], [3, 3, 0, 0, 0], [5, 1, 2, 2, 4]])


def weighted(h, y):
    return cross_entropy(h, y, weight=torch.arange(1.0, 6.0, dtype=h.dtype))


def penalised(h, y):
    return cross_entropy(h, y) + 0.1 * MODULE.readout.weight.norm()


def nested():
    """Attention whose fast path, without gradients, leaves padding out."""
    layer = nn.TransformerEncoderLayer(4, 2, 4, batch_first=True)

    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(layer, 1)

        def forward(self, x):
            mask = torch.tensor([False, True]).expand(len(x), 2)
            return self.encoder(x, src_key_padding_mask=mask).flatten(1)[:, -3:]

    return Nested()


def softened(layer):
    return nn.Sequential(nn.Linear(3, 1), layer)


COMPLEX = nn.Linear(3, 3, dtype=torch.cfloat)
SQUARES = {"x": ROWS, "y": ROWS[:, 0], "loss": "mse"}
LOADERS = {
    "stream": DataLoader(Stream()),
    "shuffled": DataLoader(Files(), 2, shuffle=True, drop_last=True),
    "replaced": DataLoader(Files(), 2, sampler=RandomSampler(Files(), replacement=True)),
    "padded": DataLoader(Padded(), 4, collate_fn=pad),
}
PENALTY = r"the loss takes weights from the model itself, .*: give a function \(model, batch\)"
# what the call has in place of the transformer, its inputs and its labels, or beside them
REFUSED = {
    "batch statistics": ({"model": softened(nn.Softmax(0)), **SQUARES}, "mixes samples"),
    "random numbers": (
        {"model": softened(Jitter()), **SQUARES, "y": ROWS[:, :1]},
        "the model draws random numbers in its eval mode",
    ),
    "weighted mean": ({"loss": weighted}, "for 7 samples, neither a number for each"),
    "other labels": ({"y": Y[:, None].expand(7, 4), "loss": cross_entropy}, "the loss of out"),
    "no such class": ({"y": Y + 3}, "y.2. is 5, the cross_entropy loss needs a class number"),
    "shapes": ({"x": X.float().reshape(7, 3, 1)}, r"does not take inputs \(2, 3, 1\): "),
    "no loader": ({"y": None}, "a DataLoader of pairs"),
    "a list of batches": (
        {"x": [(X[:4], Y[:4]), (X[4:], Y[4:])], "y": None},
        "x is a list of batches: join inputs and labels by torch.cat, or give a DataLoader",
    ),
    "a dictionary as argument": (
        {"model": OfDictionary(), **SQUARES, "x": {"data": ROWS}},
        r"keyword argument 'data'; its argument is one dictionary: give \(x,\) in place of x",
    ),
    "single precision only": (
        {"model": Single(), **SQUARES},
        'it computes in float32 only: give dtype="float32"',
    ),
    "a stream": (
        {"x": LOADERS["stream"], "y": None},
        "a data set whose samples have numbers",
    ),
    "other samples in each epoch": (
        {"x": LOADERS["shuffled"], "y": None},
        "other samples in each epoch, .*: give one without shuffle or without drop_last",
    ),
    "samples drawn with replacement": (
        {"x": LOADERS["replaced"], "y": None},
        "other samples in each epoch",
    ),
    "token means": (
        {"y": None, "loss": lambda model, batch: model(batch).sum() ** 2},
        "is no mean over samples",
    ),
    "token means of lengths that differ in the middle": (
        {"x": {"x": LONG, "labels": LATE}, "y": None, "loss": token_mean},
        r"the loss is no mean over samples: .* return \(sum, count\) of the labels",
    ),
    "token means of held-out samples": (
        {
            "x": {"x": LONG, "labels": LONG},
            "y": None,
            "loss": token_mean,
            "x_test": {"x": LONG, "labels": LATE},
        },
        "the loss is no mean over samples",
    ),
    "padding up to the longest of a batch": (
        {
            "model": nn.Sequential(nn.Linear(1, 2), nn.Flatten(), Total()),
            "x": LOADERS["padded"],
            "y": None,
            "loss": "mse",
        },
        "the model mixes samples: its outputs for a sample change",
    ),
    "no device": ({"device": "cuda:7"}, "cannot be copied to cuda:7: "),
    "as many": ({"y": Y[:3]}, r"inputs \(7, 3\) and labels \(3,\) differ"),
    "two lengths": (
        {"x": (X[:5], Y)},
        r"inputs \(5, 3\), \(7,\) and labels \(7,\) differ",
    ),
    "no model": ({"model": "net.py"}, "the model is a str, needed is"),
    "no activations": (
        {"measures": ["dead_units"]},
        "dead_units.modules is missing: no module is an activation; name some of: embedding, layer",
    ),
    "no such module": (
        {"measures": [{"kind": "dead_units", "modules": ["fc*"]}]},
        "dead_units.modules: 'fc.' is no module of the network: embedding, layer",
    ),
    "no updates": (
        {
            "checkpoints": [(k, MODULE.state_dict()) for k in (1, 3, 4)],
            "measures": ["critical_lr", {"kind": "update", "of": "cosine_last"}],
        },
        r"update_cosine_last is of updates: .* checkpoints=\[\(99, FILE\), .*\(101, FILE\)\]",
    ),
    "no start": ({"measures": ["distance"]}, "start is missing"),
    "other weights": ({"checkpoints": {"a": torch.zeros(2)}}, "does not fit the model"),
    "no state": ({"checkpoints": [{"epoch": 3}]}, "no state dict"),
    "several steps": ({"checkpoints": [MODULE, MODULE], "step": 3}, "of a single checkpoint"),
    "a typo": ({"measures": ["sharpnes"]}, "measure: record.measures.0.: .*'sharpness'"),
    "a single output": ({"model": nn.Linear(3, 1), "x": ROWS, "y": ROWS[:, 0]}, 'loss="mse"'),
    "a loss": ({"loss": "cros_entropy"}, "did you mean 'cross_entropy'"),
    "twice": ({"measures": ["margin"] * 2}, "margin is there twice"),
    "sequences": ({"model": nn.Embedding(5, 4)}, "loss needs a row"),
    "meta": (
        {"model": nn.Linear(3, 3, device="meta"), "x": ROWS},
        "weights without values .device meta.",
    ),
    "lazy": ({"model": nn.LazyLinear(3), "x": ROWS}, "call it once with inputs"),
    "fast path": (
        {"model": nested(), "x": torch.randn(7, 2, 4), "y": Y % 3},
        "without gradients the model gives other",
    ),
    "no such weight": ({"parameters": "head.*"}, "'head.*'. match no trained weight of"),
    "no such block": (
        {"measures": [{"kind": "sharpness", "blocks": {"a": "b*"}}]},
        "sharpness.blocks: 'b.' is no trained weight of: embedding.weight",
    ),
    "complex outputs": (
        {"model": COMPLEX, "x": ROWS.to(torch.cfloat), "y": Y % 3},
        r"the model gives complex outputs: let it give real numbers, such as abs\(\)",
    ),
    "a penalty of the model itself": ({"loss": penalised}, PENALTY),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    changes, told = REFUSED[case]
    with pytest.raises(InputError, match=told) as error:
        dyn.measure(**{"model": MODULE, "x": X, "y": Y, **changes})
    assert "\n" not in str(error.value)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_the_remedies_of_refusals():
    usual = nn.Linear(3, 1)
    rows = ROWS.float()
    row = {"loss": "mse", "measures": ["train_loss", "sharpness"]}
    (by_dictionary,) = dyn.measure(OfDictionary(), ({"data": ROWS},), ROWS[:, 0], **row)
    assert by_dictionary["sharpness"] > 0
    single = Single()
    usual.load_state_dict(single.layer.state_dict())
    found, right = (
        dyn.measure(net, rows, y, dtype="float32", **row)[0]
        for net, y in ((single, rows[:, 0]), (usual, rows[:, :1]))
    )
    assert found == pytest.approx(right, rel=1e-5)
    way = r"by torch.backends.mha.set_fastpath_enabled\(False\) or by .*enable_nested_tensor=False"
    with pytest.raises(InputError, match=way):
        dyn.measure(Encoder(), PADDED, PADDED[:, 0] % 2, measures=["train_loss"])
    encoder = Encoder(nested=False).double().eval()
    (found,) = dyn.measure(encoder, PADDED, PADDED[:, 0] % 2, measures=["train_loss"])
    loss = cross_entropy(encoder(PADDED), PADDED[:, 0] % 2)
    assert found["train_loss"] == pytest.approx(loss.item(), rel=1e-12)


def test_what_forms_the_whole_hessian_says_what_estimates_it():
    wide = nn.Linear(4001, 1, bias=False)
    rows = torch.randn(3, 4001)
    for kind, told in (("hessian_trace", "give it `probes`"), ("hessian_spectrum", "spectral_den")):
        with pytest.raises(InputError, match=rf"at most 4000 weights, not 4001; {told}"):
            dyn.measure(wide, rows, rows[:, :1], loss="mse", measures=[kind])


class Once(torch.autograd.Function):
    """The hyperbolic tangent, whose backward hides from autograd what it depends on."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


class Twice(Once):
    """The same, of torch operations on a saved tensor."""

    @staticmethod
    def backward(ctx, g):
        return g * (1 - torch.tanh(ctx.saved_tensors[0]) ** 2)


class Applied(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Partly(nn.Sequential):
    """A network with weights that its outputs do not depend on."""

    def forward(self, x):
        return nn.Sequential(*list(self)[:-1])(x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["sharpness", "hessian_trace", "hessian_spectrum"])
def test_curvature_that_autograd_cannot_give_is_refused(kind, dtype):
    def measured(function, last):
        torch.manual_seed(0)
        layers = [
            nn.Linear(3, 4),
            Applied(function),
            *([nn.Linear(4, 1)] if last else []),
            nn.Linear(2, 2),
        ]
        y = ROWS[:, :1] if last else ROWS[:, :1].repeat(1, 4)
        (row,) = dyn.measure(Partly(*layers), ROWS, y, loss="mse", measures=[kind], dtype=dtype)
        return row[kind]

    for last in (False, True):  # where gradients are lost altogether, and where a part of them is
        assert_allclose(
            measured(Twice.apply, last), measured(torch.tanh, last), rtol=1e-4, atol=1e-6
        )
        with pytest.raises(InputError, match=r"^Once: its second derivative disagrees with"):
            measured(Once.apply, last)


class Normed(nn.Linear):
    """A layer whose weights have the lengths `g`, by hand."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.g = nn.Parameter(torch.ones(outputs, 1))

    def forward(self, x):
        return nn.functional.linear(
            x, self.g * self.weight / self.weight.norm(dim=1, keepdim=True), self.bias
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dim", [0, 1])
def test_second_derivatives_that_torch_has_wrong_are_refused_by_module(dtype, dim):
    """Of `weight_norm` torch's own is wrong; loss and gradient are right."""
    torch.manual_seed(0)
    x = torch.randn(10, 4)
    y = torch.randn(10)
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4), dim=dim)
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), normed, nn.Tanh(), nn.Linear(4, 1))
    model.append(nn.Flatten(0))
    for kind in ("sharpness", "hessian_trace", "spectral_density"):
        with pytest.raises(InputError, match=r"^2 \(ParametrizedLinear\): torch's second deriv"):
            dyn.measure(model, x, y, loss="mse", measures=[kind], dtype=dtype)
    first = ["train_loss", "gradient_norm"]
    assert len(dyn.measure(model, x, y, loss="mse", measures=first, dtype=dtype)) == 1
    by_hand = nn.Sequential(Normed(4, 4), *list(model)[3:])
    dyn.measure(by_hand, x, y, loss="mse", measures=["sharpness"], dtype=dtype)


class Tokens(nn.Module):
    """An embedding, called as a module or as a function."""

    def __init__(self, *, sparse, function=False):
        super().__init__()
        torch.manual_seed(1)
        self.embedding = nn.Embedding(6, 3, sparse=sparse)
        self.head = nn.Linear(3, 2)
        self.function = function

    def forward(self, x):
        h = self.embedding(x)
        if self.function:
            h = nn.functional.embedding(x, self.embedding.weight, sparse=True)
        return self.head(torch.tanh(h.sum(1)))


OF_GRADIENTS = (
    "gradient_norm",
    "sharpness",
    "hessian_trace",
    "gradient_noise",
    "batch_sharpness",
    "spectral_density",
    "kernel_eigenvalues",
    "gauss_newton",
    {"kind": "llc", "draws": 4, "burn_in": 2, "step": 1e-3, "gamma": 100.0},
)


@pytest.mark.parametrize("asked", OF_GRADIENTS, ids=str)
@pytest.mark.filterwarnings("ignore::UserWarning")  # short chains, and torch's rules of batches
def test_sparse_embeddings_have_the_derivatives_of_dense_ones(asked):
    y = PADDED[:, 1] % 2
    dense, sparse = (Tokens(sparse=sparse) for sparse in (False, True))
    right, found = (dyn.measure(net, PADDED, y, measures=[asked]).arrays for net in (dense, sparse))
    for name, (numbers,) in right.items():
        assert np.isfinite(numbers).any()
        np.testing.assert_array_equal(found[name][0], numbers)
    assert sparse.embedding.sparse
    with pytest.raises(InputError, match="(?i)sparse"):
        dyn.measure(Tokens(sparse=False, function=True), PADDED, y, measures=[asked])


@pytest.mark.parametrize("top", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_the_smallest_eigenvalue_of_a_singular_hessian_is_zero(seed, top):
    torch.manual_seed(seed)
    model = nn.Linear(8, 3).double()  # its logits may all be shifted
    x = torch.randn(20, 8).double() * torch.logspace(0, -3, 8)
    y = torch.randint(3, (20,))
    measures = ["hessian_spectrum", {"kind": "smallest_eigenvalue", "top": top}]
    with pytest.warns(UserWarning, match=r"is 0 within its accuracy of .* of the largest eigen"):
        arrays = dyn.measure(model, x, y, measures=measures).arrays
    spectrum = arrays["hessian_spectrum"][0]
    found = np.ravel(arrays["smallest_eigenvalue"][0])
    np.testing.assert_allclose(found, spectrum[::-1][:top], atol=1e-13 * spectrum[0])


def test_a_run_tells_a_doubt_once(tmp_path, capsys):
    config = {
        "name": "doubt",
        "dataset": {"kind": "points", "x": [[1.0, 0.5], [0.2, 1.0]], "y": [1.0, 0.0]},
        "architecture": {"kind": "fully_connected", "widths": [2]},
        "initialization": {"kind": "default_scaled"},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 1e-9, "iterations": 3},
        "record": {"measures": [{"kind": "llc", "chains": 2, "draws": 5, "burn_in": 0}]},
    }
    numbers = dyn.train(config, out=tmp_path / "run").measures["llc"]
    doubted = np.flatnonzero((numbers[:, 0] < 0) | (numbers[:, 2] > 1.1))
    assert len(doubted) > 1
    err = capsys.readouterr().err
    assert err.count("llc at iteration") == 1
    assert f"llc at iteration {doubted[0]}: " in err


def test_a_negative_smallest_eigenvalue_is_not_doubted(recwarn):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x = torch.randn(20, 4).double()
    measures = ["hessian_spectrum", "smallest_eigenvalue"]
    arrays = dyn.measure(model, x, torch.arange(20) % 3, measures=measures).arrays
    smallest = arrays["hessian_spectrum"][0][-1]
    assert smallest < -1e-3
    assert arrays["smallest_eigenvalue"][0] == pytest.approx(smallest, rel=1e-9)
    assert not recwarn


@pytest.mark.parametrize("length", [1.0, 25.0])
@pytest.mark.parametrize("depth", [1, 4, 6])
def test_each_module_with_a_wrong_second_derivative_is_named(depth, length):
    torch.manual_seed(4)
    layers = []
    for k in range(depth):
        layers += [nn.utils.parametrizations.weight_norm(nn.Linear(8 if k else 6, 8)), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(8, 3)).double()
    for name, weight in model.named_parameters():
        if name.endswith("original1"):
            weight.data *= length  # on which the outputs do not depend
    x = torch.randn(40, 6).double()
    names = ", ".join(f"{2 * k} (ParametrizedLinear)" for k in range(depth))
    with pytest.raises(InputError, match=f"^{re.escape(names)}: torch's second derivative"):
        dyn.measure(model, x, torch.arange(40) % 3, measures=["hessian_trace"])


def test_second_derivatives_are_checked_once_for_all_checkpoints(monkeypatch):
    checked = []
    monkeypatch.setattr(Derivatives, "_asymmetric", lambda *_: checked.append(1) or [False, False])
    model = nn.Linear(3, 2)
    x = torch.randn(6, 3)
    given = {"measures": ["sharpness", "hessian_trace"], "checkpoints": [model] * 3}
    dyn.measure(model, x, torch.arange(6) % 2, **given)
    assert checked == [1]


def test_a_hessian_that_is_rounding_alone_is_not_taken_for_asymmetric():
    torch.manual_seed(0)
    x = torch.randn(10, 4)
    y = torch.arange(10) % 3
    model = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 3))
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(200):
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        for scale in (1.0, 5.0, 30.0):
            model[2].weight *= scale
            for dtype in ("float32", "float64"):
                row = dyn.measure(model, x, y, measures=["sharpness"], dtype=dtype)[0]
                assert abs(row["sharpness"]) < 0.1


def test_measures_of_weights_that_the_outputs_do_not_depend_on_are_zero():
    class Spare(nn.Linear):
        def __init__(self):
            super().__init__(3, 1)
            self.spare = nn.Linear(3, 1)

        def forward(self, x):
            return super().forward(x).squeeze(-1)

    measures = ["sharpness", "gauss_newton", "gradient_norm", "gradient_noise", "hessian_trace"]
    x = torch.randn(5, 3)
    y = torch.randn(5)
    row = dyn.measure(Spare(), x, y, loss="mse", measures=measures, parameters="spare.*")[0]
    assert [row[name] for name in measures] == [0.0] * 5


@pytest.mark.parametrize(
    "kind", ["gauss_newton", "kernel_distance", "kernel_alignment", "kernel_eigenvalues", "margin"]
)
def test_measures_of_outputs_are_refused_where_a_loss_of_model_and_batch_hides_them(kind):
    def hidden(model, batch):
        return cross_entropy(model(batch["x"]), batch["y"])

    start = MODULE.state_dict()
    with pytest.raises(InputError, match=f"no measure '{kind}' here, it needs"):
        dyn.measure(MODULE, {"x": X, "y": Y}, loss=hidden, measures=[kind], start=start)


def test_the_curvature_of_a_loss_that_is_linear_in_the_outputs_is_zero():
    (row,) = dyn.measure(
        nn.Linear(3, 1),
        ROWS,
        ROWS[:, :1],
        loss=lambda h, y: (h - y).abs().mean(),
        measures=["gauss_newton"],
    )
    assert row["gauss_newton"] == 0.0


@pytest.mark.parametrize(
    ("loss", "size"),
    [
        ("mse", 1),
        (lambda h, y: ((h - y) ** 2).sum(), 4),
        (lambda h, y: (((h - y) ** 2).sum(), len(y)), 1),
    ],
)
def test_a_model_that_has_diverged_has_measures_of_nan(loss, size):
    model = nn.Linear(2, 1).double()
    good = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        model.weight[0, 0] = torch.nan
    x = torch.randn(4, 2, dtype=torch.float64)
    y = torch.ones(4, 1, dtype=torch.float64)
    checkpoints = [(0, good), (1, model.state_dict())]
    table = dyn.measure(model, x, y, loss=loss, measures=["train_loss"], checkpoints=checkpoints)
    residuals = x @ good["weight"].T + good["bias"] - y
    expected = size * float((residuals**2).mean())
    assert table.column("train_loss") == pytest.approx([expected, np.nan], nan_ok=True)


def test_the_model_stays_as_it_is():
    module, x, y, _, loss, _ = NETWORKS["batch-normed"]
    module.train()
    module[0].weight.requires_grad_(False)
    before = copy.deepcopy(module.state_dict())
    attributes = set(vars(module))
    with pytest.warns(UserWarning, match="weights without requires_grad are left out: 0.weight"):
        (row,) = dyn.measure(
            module,
            x,
            y,
            loss=loss,
            measures=["sharpness", {"kind": "sharpness", "blocks": "layer"}],
        )
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in before.items())
    assert (module.training, set(vars(module))) == (True, attributes)
    assert all(weight.grad is None for weight in module.parameters())
    assert "sharpness_by_layer.0.bias" in row
    assert "sharpness_by_layer.0.weight" not in row  # it is frozen
    module[0].weight.requires_grad_(True)
    assert torch.backends.mha.get_fastpath_enabled()


def test_checkpoints_have_buffers_of_their_own(tmp_path):
    module, x, y, _, loss, _ = NETWORKS["batch-normed"]
    other = copy.deepcopy(module)
    other[1].running_var *= 4
    files = [tmp_path / f"step{k}.pt" for k in (2, 10)]
    torch.save({"epoch": 3, "state_dict": module.state_dict()}, files[0])
    torch.save(other.state_dict(), files[1])
    calls = []
    table = dyn.measure(
        module,
        x,
        y,
        loss=loss,
        checkpoints=files,
        start=files[0],
        measures=["distance", "kernel_distance", "train_loss"],
        progress=lambda *counts: calls.append(counts),
    )
    assert table.column("checkpoint") == [str(file) for file in files]
    assert (table.column("iteration"), table.column("distance")) == ([2, 10], [0.0, 0.0])
    first, second = table.column("kernel_distance")
    assert (first == pytest.approx(0, abs=1e-12), second > 1e-3) == (True, True)
    (alone,) = dyn.measure(other, x, y, loss=loss, measures=["train_loss"])
    assert table[1]["train_loss"] == alone["train_loss"]
    assert calls == [(k, 6) for k in range(1, 7)]


STEPS = {
    ("epoch=0-val_loss=0.91.ckpt", "epoch=1-val_loss=0.52.ckpt"): [0, 1],
    ("epoch=3-step=400.ckpt", "epoch=4-step=500-v1.ckpt"): [400, 500],
    ("step100_acc0.5.pt", "step200_acc0.75.pt"): [100, 200],
    ("iter_000100.pt", "iter_000200.pt"): [100, 200],
    ("global_step7", "global_step8"): [7, 8],
    ("checkpoint-5.pt", "checkpoint-10.pt"): [5, 10],
    ("weights.05-0.32.pt", "weights.06-0.30.pt"): [5, 6],
    (
        "first.pt",
        "acc0.5.pt",
        "last-v1.pt",
    ): "give no steps: first, acc0.5, last-v1; give the steps",
    ("epoch1.5.pt", "epoch2.5.pt"): "give no steps: epoch1.5, epoch2.5; give the steps",
    ("before.pt", "after.pt"): "give no steps: before, after; give the steps: checkpoints=",
    ("last-v1.pt",): [0],
    ("step10.pt", "step2.pt"): "steps that do not increase: 10, 2; list the files in the order",
    ("a/step1.pt", "b/step1.pt"): "steps that do not increase: 1, 1",
    ("net18_5.pt", "net18_6.pt"): "checkpoint net18_5: which of 18, 5 is its step. give the steps",
    ("step5.pt", "last.pt"): "checkpoint last: its name gives no step, others do; give the steps",
}


@pytest.mark.parametrize("names", STEPS)
def test_steps_are_read_from_names_or_refused(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = nn.Linear(3, 1)
    for name in names:
        Path(name).parent.mkdir(exist_ok=True)
        torch.save(model.state_dict(), name)

    def measured(files):
        table = dyn.measure(
            model, ROWS, ROWS[:, :1], loss="mse", measures=["weight_norm"], checkpoints=files
        )
        return table.column("iteration")

    expected = STEPS[names]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            measured(list(names))
        expected = [10 * k for k in range(len(names))]
    else:
        assert measured(list(names)) == expected
    assert measured([(step, name) for step, name in zip(expected, names, strict=True)]) == expected


def residual(model, x):
    """Return the mean square of `u' + u`, by PyTorch's usual derivative with respect to inputs."""
    x = x.requires_grad_(True)
    u = model(x)
    (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    return ((slope + u) ** 2).mean()


def by_func(model, x):
    """Return the same, by `torch.func`."""
    u, slope = torch.func.jvp(model, (x,), (torch.ones_like(x),))
    return ((slope + u) ** 2).mean()


def test_a_loss_may_take_derivatives_by_inputs():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 4), nn.Tanh(), nn.Linear(4, 1))
    x = torch.linspace(0, 1, 9)[:, None]
    theta = torch.cat([w.detach().flatten() for w in model.parameters()]).double()
    shapes = {name: w.shape for name, w in model.named_parameters()}
    double = copy.deepcopy(model).double()

    def total(theta):
        parts = theta.split([shape.numel() for shape in shapes.values()])
        weights = {k: part.view(shapes[k]) for k, part in zip(shapes, parts, strict=True)}
        u, slope = torch.func.jvp(
            lambda x: functional_call(double, weights, (x,)),
            (x.double(),),
            (torch.ones_like(x.double()),),
        )
        return ((slope + u) ** 2).mean()

    H = hessian(total)(theta).detach().numpy()
    expected = {
        "train_loss": float(total(theta)),
        "gradient_norm": float(grad(total)(theta).norm()),
        "sharpness": largest(H),
        "hessian_trace": float(np.trace(H)),
    }
    kinds = [*expected, SETTINGS_OF_LLC]
    (row,) = dyn.measure(model, x, loss=residual, measures=kinds)
    assert {name: row[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert not x.requires_grad
    (same,) = dyn.measure(model, x, loss=by_func, measures=[*kinds, "gradient_noise"])
    assert row["llc.mean"] == pytest.approx(same["llc.mean"], rel=1e-9)
    with pytest.raises(InputError, match=r"gradient_noise: .*requires_grad_.*torch.func.grad, jvp"):
        dyn.measure(model, x, loss=residual, measures=["gradient_noise"])


def test_nothing_is_unpickled(tmp_path):
    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harmed",)

    for name, data in (("pickle.pt", pickle.dumps(Harm())), ("junk.pt", b"no zip")):
        (tmp_path / name).write_bytes(data)
    torch.save({"weight": Harm()}, tmp_path / "saved.pt")
    for name in ("pickle.pt", "junk.pt", "saved.pt", "missing.pt"):
        with pytest.raises(InputError, match=rf"{name}: (a file of .torch.save|it cannot be read)"):
            dyn.measure(MODULE, X, Y, checkpoints=tmp_path / name)
    assert not (tmp_path / "harmed").exists()
