import numpy as np
import pytest

from dynamics_cli.api import train
from dynamics_cli.config import RunConfig
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.writer import RunWriter
from tests.cases import TWO_POINTS, read

ORTHOGONAL = read(
    """
name: orthogonal
backend: compiled
architecture: {kind: two_layer, width: 12}
initialization: {kind: balanced, scale: 1e-4}
optimizer: {kind: gd, lr: 0.02, iterations: 1500}
record: {snapshots: {kind: geometric, ratio: 1.2}}
""",
    TWO_POINTS,
)

CLASSIFIED = read(
    """
name: classified
dataset:
  kind: points
  x: [[1.0, 0.2], [0.8, 1.0], [-1.0, 0.1], [-0.9, -1.0]]
  y: [1, 1, -1, -1]
  x_test: [[1, 0.5]]
  y_test: [1]
loss: {kind: logistic}
optimizer: {kind: gd, lr: 0.1, iterations: 200, loss_scaled: true}
""",
    ORTHOGONAL,
)

CUBE = {
    **ORTHOGONAL,
    "name": "cube",
    "dataset": {"kind": "points", "x": np.eye(3, 5).tolist(), "y": [1.0, -1.0, 0.5]},
    "optimizer": {"kind": "gd", "lr": 0.05, "iterations": 600},
}

DEEP = read("""
name: deep
dataset: {kind: points, x: [[-1.0], [0.0], [1.0]], y: [0, 1, 0], x_test: [[0.5]], y_test: [1]}
architecture: {kind: fully_connected, widths: [6, 5], outputs: 2}
initialization: {kind: default_scaled}
loss: {kind: cross_entropy}
optimizer: {kind: gd, lr: 0.1, iterations: 12}
""")

DEEP_LINE = read(
    """
name: deep-line
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0]}
architecture: {kind: fully_connected, widths: [6, 5]}
loss: {kind: mse}
""",
    DEEP,
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Train a config once a session."""
    runs = {}

    def get(config):
        name = config["name"]
        if name not in runs:
            runs[name] = train(config, out=tmp_path_factory.mktemp("runs") / name)
        return runs[name]

    return get


@pytest.fixture(scope="session")
def orthogonal(trained):
    """Two points, one input with a bias: neurons in the plane."""
    return trained(ORTHOGONAL)


@pytest.fixture(scope="session")
def classified(trained):
    """Points in the plane, held-out ones too, and a rescaled time."""
    return trained(CLASSIFIED)


@pytest.fixture(scope="session")
def cube(trained):
    """Points in five dimensions."""
    return trained(CUBE)


@pytest.fixture(scope="session")
def deep(trained):
    """A deep classifier of one input."""
    return trained(DEEP)


@pytest.fixture(scope="session")
def deep_line(trained):
    """A deep network with one input and one output."""
    return trained(DEEP_LINE)


@pytest.fixture
def write(tmp_path):
    """Write a run by hand: losses of iterations 0, 1, ..., and states by iteration; `status`
    None leaves it open.
    """

    def make(
        losses,
        states,
        status="complete",
        measures=None,
        **changes,
    ):
        width = next(
            (len(state["hidden_weight"]) for state in states.values() if "hidden_weight" in state),
            12,
        )
        network = {"architecture": {"kind": "two_layer", "width": width}}
        config = RunConfig.model_validate({**ORTHOGONAL, **network, **changes})
        writer = RunWriter.create(tmp_path / "written", config, {"hash": "abc"})
        if losses:
            writer.append_losses(list(range(len(losses))), losses)
        for iteration, parameters in states.items():
            arrays = {
                name: np.asarray([value], dtype=np.float32) for name, value in parameters.items()
            }
            numbers = {
                name: np.asarray([value], float)
                for name, value in (measures or {}).get(iteration, {}).items()
            }
            writer.append_snapshots([iteration], arrays, numbers)
        if status is not None:
            last = losses[-1] if losses else float("nan")
            writer.finish(status, iterations=max(len(losses) - 1, 0), final_loss=last, seconds=1.0)
        else:
            writer.checkpoint({}, {"iteration": max(len(losses) - 1, 0)})
        return Run(tmp_path / "written")

    return make


@pytest.fixture
def layer():
    """Weights of two neurons with kinks at -1 and 2."""
    return {"hidden_weight": [[1.0, 1.0], [3.0, -6.0]], "output_weight": [2.0, -0.5]}
