"""`dyn measure` in an empty directory."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from .conftest import Dyn

NET = """\
import sys
from torch import nn
from torch.nn.functional import cross_entropy

print("imported")

def make():
    print("made")
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))

class Net(nn.Sequential):
    def __init__(self, hidden):
        super().__init__(nn.Linear(3, hidden), nn.Linear(hidden, 2))

class Narrow(Net):
    def __init__(self):
        super().__init__(2)

class Odd(Narrow):
    def forward(self, x):
        sys.exit(0)

class Single(Narrow):
    def __deepcopy__(self, memo):
        raise KeyError("no copy")

def lazy():
    return nn.LazyLinear(2)

def leave(h=None, y=None):
    sys.exit(0)
"""


@pytest.fixture(autouse=True)
def network(place: Path, kinds_as_before: None) -> None:
    (place / "net.py").write_text(NET)
    rng = np.random.default_rng(0)
    np.savez(place / "d.npz", x=rng.standard_normal((8, 3)), y=np.arange(8) % 2)
    (place / "ckpt").mkdir()
    for k in (2, 10, 100):
        linear = {"0.weight": (4, 3), "0.bias": (4,), "2.weight": (2, 4), "2.bias": (2,)}
        state = {name: torch.from_numpy(rng.standard_normal(shape)) * k / 100 for name, shape in linear.items()}
        torch.save(state, place / "ckpt" / f"s{k}.pt")
    torch.save(dict(enumerate(state.values())), place / "by_number.pt")
    os.mkfifo(place / "pipe.pt")


BASE = ("measure", "--model", "net.py:make", "--data", "d.npz")


def test_a_table_of_checkpoints(dyn: Dyn, place: Path) -> None:
    given = ("--checkpoints", "ckpt/*.pt", "--start", "ckpt/s10.pt", "--loss", "net.py:cross_entropy")
    measures = (
        "--measure",
        "distance",
        "--measure",
        "{kind: sharpness, blocks: layer}",
        "--measure",
        "hessian_spectrum",
    )
    answer = dyn(*BASE, *given, *measures, "--json")
    assert [(row["checkpoint"], row["iteration"]) for row in answer.json] == [
        ("ckpt/s2.pt", 2), ("ckpt/s10.pt", 10), ("ckpt/s100.pt", 100)
    ]  # fmt: skip
    assert [row["distance"] == 0 for row in answer.json] == [False, True, False]
    assert dyn(*BASE, *given, *measures, "-o", "t.csv", "-q").out == "t.csv\n"
    rows = list(csv.DictReader((place / "t.csv").read_text().splitlines()))
    assert [float(row["sharpness_by_layer.2.bias"]) for row in rows] == [
        row["sharpness_by_layer.2.bias"] for row in answer.json
    ]
    assert rows[0]["hessian_spectrum"].count(",") == 25  # 26 weights, more than are columns
    assert dyn(*BASE, "-o", "t.csv", "-q").out == "t.csv\n"  # a table of its own it writes again
    assert dyn("measure", "--model", "net.py:Narrow", "--data", "d.npz", "-q").code == 0
    short = "{kind: llc, burn_in: 0, draws: 40, step: 1.0e-6}"
    told = dyn(*BASE, "--parameters", "2.*", "--measure", short, "-q").err.splitlines()[-1]
    assert told.startswith("Warning: llc at iteration 0: chains disagree (split R-hat ")
    assert dyn(*BASE, "-q").out.split()[:4] == ["iteration", "train_loss", "gradient_norm", "sharpness"]


@pytest.mark.parametrize(("arguments", "code", "told"), [
    (("--measure", "sharpnes"), 3, "did you mean 'sharpness'"),
    (("--measure", "dead_neurons"), 3, "no measure 'dead_neurons' here, it needs hidden neurons"),
    (("--loss", "mse"), 3, "labels of 1 numbers beside 2 outputs"),
    (("--loss", "net.py:mse"), 3, "--loss net.py:mse: net.py has no 'mse'"),
    (("--model", "net.py:mak"), 3, "net.py has no 'mak' (did you mean 'make'?)"),
    (("--model", "net:make"), 2, "FILE.py:NAME is needed"),
    (("--model", "no.py:make"), 3, "no.py cannot be read"),
    (("--model", "toy.yaml:make"), 2, "FILE.py:NAME is needed"),
    (("--data", "no.npz"), 4, "--data no.npz: there is no such file"),
    (("--checkpoints", "no*.pt"), 4, "--checkpoints no*.pt: there is no such file"),
    (("--checkpoints", "net.py"), 3, "net.py: a file of `torch.save("),
    (("--measure", "distance"), 3, "start is missing"),
    (("--model", "net.py:Odd"), 3, "ended the process: SystemExit: 0"),
    (("--model", "net.py:leave"), 3, "--model net.py:leave: SystemExit: 0"),
    (("--loss", "net.py:leave"), 3, "ended the process: SystemExit: 0"),
    (("--model", "net.py:Single"), 3, "the model cannot be copied to cpu: KeyError: 'no copy'"),
    (("--model", "net.py:lazy"), 3, "the model has lazy modules"),
    (("--model", "net.py:Net"), 3, "missing 1 required positional argument"),
    (("--checkpoints", "by_number.pt"), 3, "no state dict"),
    (("--checkpoints", "pipe.pt"), 3, "pipe.pt: it is not a regular file"),
    (("-o", "net.py"), 2, "--output net.py: the name of another .csv file is needed"),
])  # fmt: skip
def test_mistakes_are_one_line(dyn: Dyn, shell: Dyn, arguments: tuple[str, ...], code: int, told: str) -> None:
    answer = (shell if "sharpnes" in arguments else dyn)(*BASE, *arguments, "--json")
    assert (answer.code, answer.out) == (code, "")
    assert told in answer.err.splitlines()[-1]
