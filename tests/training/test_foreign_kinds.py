"""Kinds from outside that do what they must not: the message names them, and nothing wrong is
recorded.
"""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dynamics_cli.cli import main
from dynamics_cli.runs.run import NotRecordedError, Run

from ..conftest import stranger_to_kinds
from ..test_outside import CONFIG, PARTS

POINTS = "dataset: {kind: points, x: [[-0.5, 0.3], [2.0, 1.0], [0.4, -1.0]], y: [-1, 1, 1]}"
TWO_LAYERS = f"""\
{POINTS}
architecture: {{kind: two_layer, width: 3}}
initialization: {{kind: balanced, scale: 0.1}}
loss: {{kind: mse}}
optimizer: {{kind: gd, lr: 0.01, iterations: 8}}
dtype: float64
backend: torch
"""
MEASURE = """\
import numpy as np, torch
from dynamics_cli.kinds import Measure
class Mine(Measure, kind="mine"):
    def measure(self, state):
        {body}
        return 1.0
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    with stranger_to_kinds():
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("DYN_OUTPUTS", str(tmp_path / "outputs"))
        yield tmp_path


def train(code, config, *more, command="train", exits=0):
    """Train, or sweep, with a file of kinds; it must leave with this code."""
    Path("mine.py").write_text(code)
    Path("mine.yaml").write_text(f"name: mine\n{config}" if "name:" not in config else config)
    done = CliRunner().invoke(main, ["--with", "mine.py", command, "mine.yaml", *more, "-q"])
    assert done.exit_code == exits, done.output
    return done


def measured(body, *more, exits=0):
    """Train with a measure of this body."""
    return train(
        MEASURE.format(body=body), f"{TWO_LAYERS}record: {{measures: [mine]}}\n", *more, exits=exits
    )


WRITING = {
    "a weight": 'w = state.parameters["hidden_weight"]; w -= w.mean()',
    "the start": 'state.start["hidden_weight"][0] = 0',
    "inputs": "np.negative(state.problem.dataset.x, out=state.problem.dataset.x)",
}


@pytest.mark.parametrize("what", WRITING)
def test_a_measure_that_writes_fails_by_its_name(what):
    done = measured(f"if state.iteration > 2:\n            {WRITING[what]}", exits=7)
    assert "failed at iteration 3: mine.py, line 6: " in done.stderr
    (run,) = Path("outputs/runs").iterdir()
    assert "(traceback.txt there says more)" in done.stderr
    assert 'mine.py", line 6, in measure' in (run / "traceback.txt").read_text()


GIVEN = {
    "{'a': 1}": ("gives dict {'a': 1}, not a number or an array", 0),
    "'1.5'": ("gives str '1.5', not a number", 0),
    "None": ("gives NoneType None, not a number", 0),
    "[[1.0], [1.0, 2.0]]": ("gives list [[1.0], [1.0, 2.0]], not a number", 0),
    "np.zeros(1 + (state.iteration > 4))": (
        "gives shape (2,), not numbers of shape (1,) as before",
        5,
    ),
    "{}['a']": ("mine.py, line 5: KeyError: 'a'", 0),
    "torch.ones((), requires_grad=True)": (
        "gives Tensor tensor(1., requires_grad=True), not a number",
        0,
    ),
    "1.0 if state.iteration < 2 else 'a'": ("gives str 'a', not numbers of shape () as before", 2),
    "exit(0)": ("mine.py, line 5: SystemExit: 0", 0),
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_measure_that_gives_no_numbers_fails_by_its_name(given, folder):
    message, iteration = GIVEN[given]
    done = measured(f"return {given}", exits=7)
    assert f"the run failed at iteration {iteration}: " in done.stderr
    assert message in done.stderr
    (info,) = (folder / "outputs" / "runs").glob("*/run.json")
    assert json.loads(info.read_text())["status"] == "failed"


@pytest.mark.parametrize(
    ("network", "told"),
    [
        ("nn.TransformerEncoderLayer(4, 2)", "iteration 0: mine: AssertionError: was expecting"),
        ("nn.Linear(3, 'a')", "Error: mine.py, line 5: TypeError: "),
    ],
)
def test_a_network_of_a_package_fails_by_the_name_of_its_kind(network, told):
    """No line of the file is in the traceback of its forward pass."""
    code = f"""\
from torch import nn
from dynamics_cli.kinds import Architecture
class Mine(Architecture, kind="mine"):
    def build(self, d):
        return {network}
"""
    config = TWO_LAYERS.replace("two_layer, width: 3", "mine").replace("balanced", "unbalanced")
    done = train(code, config, exits=7)
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


EXITS = ("load", "build", "draw", "values", "updated", "factor", "measure", "next_after")


@pytest.mark.parametrize(
    ("method", "swept"), [*((method, False) for method in EXITS), ("updated", True)]
)
def test_sys_exit_in_a_kind_is_a_failure_of_it(method, swept):
    code, count = re.subn(rf"(    def {method}\(.*\):\n)", r"\1        raise SystemExit\n", PARTS)
    assert count == 1
    grid = (
        ["--grid", "seed=0,1", "--workers", "1", "--set", "optimizer.iterations=5"] if swept else []
    )
    done = train(
        code, CONFIG, *grid, command="sweep" if swept else "train", exits=6 if swept else 7
    )
    assert re.search(r"mine.py, line \d+: SystemExit", done.stderr)
    assert not swept or "2 failed of 2 jobs" in done.stderr


LOSS = """\
from dynamics_cli.kinds import Loss
class Mine(Loss, kind="mine"):
    def values(self, h, y): return ((h - y) ** 2).mean()
"""


def test_a_loss_that_gives_one_number_for_all_samples_is_refused():
    done = train(LOSS, TWO_LAYERS.replace("kind: mse", "kind: mine"), exits=3)
    assert (
        "loss.kind 'mine': values returns a single number; return one for each sample"
        in done.stderr
    )


WIDTHS = ", ".join(["2"] * 11)
DEEP = TWO_LAYERS.replace("two_layer, width: 3", f"fully_connected, widths: [{WIDTHS}]").replace(
    "balanced, scale: 0.1", "default_scaled"
)
ORDER = [f"{what}_{layer}" for layer in range(1, 13) for what in ("weight", "bias")]


def test_weights_and_their_measures_go_by_the_network(folder):
    body = (
        f"assert [*state.parameters] == [*state.start] == {ORDER}\n"
        "        return [np.linalg.norm(state.parameters[f'weight_{k}']) for k in range(1, 13)]"
    )
    own, *layers = ["mine", *(f"{{kind: distance, layer: {name}}}" for name in ORDER[:6])]
    config = f"{DEEP}record: {{measures: [{', '.join([*layers, own])}]}}\n"
    train(MEASURE.format(body=body), config, "--out", "run")
    run = Run("run")
    assert [*run.parameters] == ORDER
    assert [*run.measures] == [*(f"distance_{name}" for name in ORDER[:6]), "mine"]
    train(MEASURE.format(body=body), config, "--grid", "seed=0,1", command="sweep")
    (table,) = folder.glob("outputs/sweeps/*/results.csv")
    columns = table.read_text().splitlines()[0].split(",")[5:-1]
    assert columns == [
        *(f"distance_{name}" for name in ORDER[:6]),
        *(f"mine.{k}" for k in range(1, 13)),
    ]
    with pytest.raises(
        NotRecordedError,
        match=r"^'min' was not recorded .did you mean 'mine'.*; there is distance_w",
    ):
        run.measures["min"]
    assert "min" not in run.measures
    assert run.measures.get("min") is None


def test_formulas_from_outside_train_compiled_and_others_say_why(tmp_path):
    """Kinds of the handbook go to the engine and agree with autograd; a method of arrays is
    named.
    """
    config = CONFIG.replace("kind: wide", "kind: fully_connected, activation: swish").replace(
        "width: 30", "widths: [30]"
    )
    config = config.replace("kind: rademacher", "kind: unbalanced")
    losses = []
    for backend in ("compiled", "torch"):
        done = train(
            PARTS,
            config,
            "--set",
            f"backend={backend}",
            "--set",
            "optimizer.iterations=50",
            "--json",
        )
        losses.append(json.loads(done.stdout)["final_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    dry = train(PARTS, config, "--dry-run")
    assert re.search(r"backend +compiled", dry.stdout)
    dry = train(
        PARTS.replace("return z * formulas.sigmoid(z)", "return z.clip(0)"), config, "--dry-run"
    )
    assert re.search(r"backend +torch", dry.stdout)
    assert "activation.kind" in dry.stdout
    assert "swish: Swish: 'Expression' object has no attribute 'clip'" in " ".join(
        dry.stdout.split()
    )
