"""Code of others that draws from global generators is refused in one line, before anything is
trained.
"""

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from dynamics_cli.cli import main
from dynamics_cli.errors import InputError
from tests.cases import config_of, problem_of, read

from ..conftest import kinds_of

PARTS = """\
import numpy as np, random, torch
from torch import nn
from dynamics_cli.kinds import Activation, Architecture, Dataset, Initialization, Loss
from dynamics_cli.kinds import Minibatch, TorchOptimizer, make_samples

GENERATOR = torch.Generator()

class Always(nn.Module):
    def forward(self, x): return nn.functional.dropout(x, 0.1)

class Net(nn.Module):
    def __init__(self, d, how):
        super().__init__()
        self.first, self.last, self.how = nn.Linear(d, 5), nn.Linear(5, 1), how
        self.drop = nn.Dropout(0.5 if how == "dropout" else 0.0)
        self.recurrent = nn.GRU(5, 5, 2, dropout=0.5) if how == "recurrent" else None
        self.norm = nn.BatchNorm1d(5) if how == "batch norm" else None
        if how == "frozen": self.first.requires_grad_(False)
        if how == "lazy": self.last = nn.LazyLinear(1)
        if how == "complex buffer": self.register_buffer("turn", torch.ones(5, dtype=torch.cfloat))
        if how == "complex": self.turn = nn.Parameter(torch.ones(5, dtype=torch.cfloat))
        self.always = Always() if how == "layer" else None
        self.register_buffer("calls", torch.zeros(()))
        made = torch.Generator().manual_seed(0) if how == "seeded constant" else None
        self.register_buffer("constant", torch.randn(5, generator=made), persistent=False)
    def forward(self, x):
        h, how = self.drop(torch.tanh(self.first(x))), self.how
        if how == "functional": h = nn.functional.dropout(h, 0.1)
        if how == "noise": h = h + torch.randn_like(h)
        if how == "numpy": h = h * np.random.rand()
        if how == "python": h = h * random.random()
        if how == "own generator": h = h + torch.rand(5, generator=GENERATOR)
        if how == "layer": h = self.always(h)
        if how == "numpy in training" and self.training: h = h * np.random.rand()
        if how == "counter": self.calls += 1
        if how == "recurrent": h = self.recurrent(h)[0]
        if how == "batch norm": h = self.norm(h)
        if "constant" in how: h = h + self.constant
        if how == "seeds": h = h + torch.manual_seed(0).initial_seed() + torch.rand(5)
        if how == "counter in training" and self.training: self.calls = self.calls + 1
        h = self.last(h * (1 + self.calls)).squeeze(-1)
        return {"column": h[:, None], "pair": (h, h), "nothing": None}.get(how, h)

class Own(Architecture, kind="own"):
    how: str = ""
    def build(self, d): return Net(d, self.how)
class Jitter(Activation, kind="jitter"):
    def value(self, z): return z + torch.rand_like(z)
class Noisy(Loss, kind="noisy"):
    def values(self, h, y): return (h - y - torch.randn(h.shape)) ** 2
class Langevin(Minibatch, kind="langevin"):
    def update(self, parameters, gradients, *, lr, **rest):
        for w, g in zip(parameters, gradients): w.add_(-lr * g + torch.randn_like(w))
class Counting(torch.optim.SGD):
    done = 0
    def step(self):
        self.done += 1
        if self.done % 2: super().step()
class Forgets(TorchOptimizer, kind="forgets"):
    def optimizer(self, parameters): return Counting(parameters, lr=self.lr)
class Keeps(Forgets, kind="keeps"):
    keeps = ("done",)
class Drawn(Initialization, kind="drawn"):
    def draw(self, problem, streams):
        return {name: np.random.standard_normal(shape) for name, shape in problem.shapes.items()}
class Moons(Dataset, kind="moons"):
    fixed: bool = False
    def load(self, streams):
        if self.fixed: np.random.seed(0)
        x = np.random.standard_normal((4, 2))
        return make_samples(x, np.sign(x[:, 0]))
"""
IN_EVALUATION = "draws random numbers in evaluation too, so that no measure"
EACH_TIME = "the same weights and inputs give other outputs each time"
REFUSED = {
    "functional": ({}, rf"architecture.kind own: the network {IN_EVALUATION}"),
    "noise": ({}, f"the network {IN_EVALUATION}"),
    "layer": ({}, rf"the layer always \(Always\) {IN_EVALUATION}"),
    "numpy in training": ({}, "in training it draws from another generator than PyTorch's"),
    "counter": ({}, "its evaluation changes the buffer calls"),
    "column": ({}, r"its outputs of 2 samples are \(2, 1\), not \(2,\); end it with .squeeze"),
    "pair": ({}, "its outputs are a tuple: return one tensor"),
    "nothing": ({}, "its outputs are a NoneType: return one tensor"),
    "frozen": ({}, r"its weight first.weight has requires_grad=False.*layer_lr"),
    "lazy": ({}, "architecture.kind own: last.weight is of a lazy module"),
    "complex": ({}, "architecture.kind own: turn is complex, and weights are real: make two"),
    "complex buffer": ({}, "the buffer turn is complex, which runs do not record: register it"),
    "numpy": ({}, IN_EVALUATION),
    "python": ({}, IN_EVALUATION),
    "own generator": ({}, EACH_TIME),
    "constant": ({}, "built again, it gives other outputs with the same weights: draw constants"),
    "activation": (
        {"architecture": {"kind": "fully_connected", "widths": [3], "activation": "jitter"}},
        rf"architecture.kind fully_connected: the layer hidden_1 .* {IN_EVALUATION}",
    ),
    "loss": ({"loss": {"kind": "noisy"}}, "loss.kind noisy: it draws random numbers"),
    "optimizer": (
        {"optimizer": {"kind": "langevin"}},
        "optimizer.kind langevin: its updates draw random numbers",
    ),
    "optimizer that forgets": (
        {"optimizer": {"kind": "forgets"}},
        "optimizer.kind forgets: its attribute done changes from update to update, .* keeps =",
    ),
    "initialization": (
        {"initialization": {"kind": "drawn"}},
        "initialization.kind drawn: its weights come from a global generator",
    ),
    "dataset": (
        {"dataset": {"kind": "moons"}},
        "dataset.kind moons: its samples come from a global generator",
    ),
}
TAKEN = read("""
dropout: {}
recurrent: {}
batch norm: {}
seeded constant: {}
seeds: {}
no dropout: {}
counter in training: {}
optimizer that keeps: {optimizer: {kind: keeps}}
dataset that seeds: {dataset: {kind: moons, fixed: true}}
""")


def changed(how, sections):
    usual = {
        "architecture": {"kind": "own", "how": how},
        "initialization": {"kind": "default_scaled"},
    }
    return {**usual, **sections}


@pytest.fixture(scope="module", autouse=True)
def parts(tmp_path_factory):
    with kinds_of(tmp_path_factory.mktemp("parts") / "drawing_parts.py", PARTS) as file:
        yield file


@pytest.mark.parametrize("how", REFUSED)
def test_code_that_draws_from_global_generators_is_refused(how):
    sections, told = REFUSED[how]
    for _ in range(2):  # a refusal is not forgotten
        with pytest.raises(InputError, match=told) as error:
            problem_of(**changed(how, sections))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("how", TAKEN)
def test_code_that_draws_nothing_or_seeds_itself_is_taken(how):
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    problem_of(**changed(how, TAKEN[how]))


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("train {file}", 3),
        ("train {file} --dry-run", 3),
        ("config check {file}", 3),
        ("sweep {file} --grid optimizer.lr=0.1,0.2", 6),
        ("sweep {file} --seeds 2", 6),
    ],
)
def test_every_way_to_train_tells_it(command, code, tmp_path, monkeypatch):
    monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "outputs"))
    file = tmp_path / "own.json"
    file.write_text(str(config_of(**changed("noise", {}))).replace("'", '"'))
    done = CliRunner().invoke(main, command.format(file=file).split())
    assert (done.exit_code, IN_EVALUATION in done.stderr) == (code, True), done.output
