"""The loop: what is recorded when, stopping, divergence, rescaled time, many short calls."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dynamics_cli.config import load_config
from dynamics_cli.errors import UsageError
from dynamics_cli.recording.measures import WeightNorm
from dynamics_cli.runs.run import final_measures
from dynamics_cli.training.measuring import Measuring
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.steppers.layers import LayersStepper
from tests.cases import read

BASE = read("""
name: toy
dataset:
  kind: points
  x: [[-1.5], [-1], [0], [0.25]]
  y: [0.7, -0.3, -0.3, 0.4]
  append_bias: true
architecture: {kind: two_layer, width: 20}
initialization: {kind: balanced, scale: 0.3}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 400}
""")
SIGNS = ["dataset.y=[1, -1, -1, 1]", "loss.kind=logistic"]


def trained(directory, *overrides):
    return obtain_run(plan_run(load_config(BASE, overrides), directory)).run


def test_states_0_to_n_and_their_losses(tmp_path):
    run = trained(tmp_path / "r")
    assert run.loss_iterations.tolist() == list(range(401))
    assert (run.snapshot_iterations[0], run.snapshot_iterations[-1]) == (0, 400)
    assert run.final_loss == run.losses[-1]
    y = run.dataset().y
    for i, iteration in enumerate(run.snapshot_iterations):
        loss = np.mean((run.network(i)(run.dataset().x) - y) ** 2)
        assert loss == pytest.approx(run.losses[iteration], rel=1e-5)


def test_a_run_chooses_its_measures_once(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(WeightNorm, "offered", lambda measure, problem: asked.append(measure) or 1)
    run = trained(tmp_path / "r", "record.measures=[weight_norm]")
    assert len(asked) == 1
    assert list(run.measures) == ["weight_norm"]


@pytest.mark.parametrize("every", ["null", "7"])
def test_stops_at_the_first_small_loss(tmp_path, every):
    free = trained(tmp_path / "free")
    level = 1.0001 * float(free.losses[200])
    early = "record.measures=[{kind: weight_norm, at: {kind: list, include: [30]}}]"
    below = f"optimizer.stop_below={level!r}"
    run = trained(tmp_path / "r", f"record.loss_every={every}", below, early)
    expected = int(np.argmax(np.asarray(free.losses) <= level))
    assert (run.status, run.iterations, run.info["stopped_early"]) == ("complete", expected, True)
    assert run.loss_iterations[-1] == run.snapshot_iterations[-1] == expected
    assert run.final_loss == run.losses[-1] <= level
    at_30 = run.measures["weight_norm"][run.snapshot_iterations == 30]
    assert final_measures(run) == {"weight_norm": at_30[0]}


@pytest.mark.parametrize(
    ("optimizer", "dtype"),
    [
        ("{kind: gd, lr: 0.1, iterations: 60}", "float32"),
        ("{kind: adam, lr: 0.01, iterations: 60, stop_below: 0.2}", "float64"),
        ("{kind: gd, lr: 9.0, iterations: 60}", "float32"),  # diverges
    ],
)
def test_states_measured_inside_a_call_have_the_bits_of_those_measured_between_two(
    tmp_path, monkeypatch, optimizer, dtype
):
    changes = [
        "architecture={kind: fully_connected, widths: [7], activation: tanh}",
        "initialization={kind: default_scaled}",
        f"optimizer={optimizer}",
        f"dtype={dtype}",
        "record={snapshots: {kind: every, interval: 2}, measures: [sharpness]}",
    ]
    asked = []
    measured = Measuring.at
    monkeypatch.setattr(Measuring, "at", lambda *args: asked.append(args[2]) or measured(*args))
    inside = trained(tmp_path / "inside", *changes)
    alone = len(asked)
    monkeypatch.setattr(LayersStepper, "watchable", False)
    between = trained(tmp_path / "between", *changes)
    assert len(asked) - alone == len(between.snapshot_iterations)
    assert inside.status == "diverged" or alone < len(between.snapshot_iterations) / 2
    assert inside.snapshot_iterations.tolist() == between.snapshot_iterations.tolist()
    assert inside.losses.tobytes() == between.losses.tobytes()
    assert inside.measures["sharpness"].tobytes() == between.measures["sharpness"].tobytes()
    for name, weights in inside.parameters.items():
        assert weights.tobytes() == between.parameters[name].tobytes()


@pytest.mark.parametrize("kind", ["sharpness", "smallest_eigenvalue"])
def test_an_eigenvalue_alone_is_that_beside_other_measures(tmp_path, kind):
    changes = ["architecture={kind: fully_connected, widths: [4], activation: tanh}"]
    changes += ["initialization={kind: default_scaled}", "dtype=float64", "optimizer.iterations=8"]
    every = "snapshots: {kind: every, interval: 1}"
    alone = trained(tmp_path / "a", *changes, f"record={{{every}, measures: [{kind}]}}")
    spectrum = trained(
        tmp_path / "s", *changes, f"record={{{every}, measures: [hessian_spectrum]}}"
    )
    place = 0 if kind == "sharpness" else -1
    expected = spectrum.measures["hessian_spectrum"][:, place]
    assert_allclose(alone.measures[kind], expected, rtol=1e-6)


def test_divergence_keeps_everything_up_to_it(tmp_path):
    run = trained(tmp_path / "r", "optimizer.lr=30", "architecture.activation=linear")
    assert run.status == "diverged"
    assert np.isfinite(run.losses[:-1]).all()
    assert not np.isfinite(run.losses[-1])
    assert run.iterations == run.loss_iterations[-1] == run.snapshot_iterations[-1]
    assert run.info["messages"] == [
        f"the loss is not finite at iteration {run.iterations}; everything up to it is kept. "
        "Try a smaller step, e.g. --set optimizer.lr=3"
    ]


def test_rescaled_time_follows_the_flow(tmp_path):
    """Loss-scaled descent and plain descent are two discretisations of one flow: same loss at
    the same time.
    """
    scaled = trained(
        tmp_path / "s",
        *SIGNS,
        "optimizer={kind: gd, lr: 1e-4, iterations: 4000, loss_scaled: true}",
        "dtype=float64",
    )
    plain = trained(
        tmp_path / "p", *SIGNS, "optimizer={kind: gd, lr: 1e-4, iterations: 20000}", "dtype=float64"
    )
    assert scaled.times is not None
    assert plain.times is None
    times = np.asarray(scaled.times)
    assert_allclose(np.diff(times), 1e-4 / np.asarray(scaled.losses[:-1]), rtol=1e-9)
    at = np.interp(times, 1e-4 * np.arange(20001), plain.losses)
    inside = times < 2.0
    assert_allclose(np.asarray(scaled.losses)[inside], at[inside], rtol=2e-3)


def test_batches_record_the_full_loss_once_an_epoch(tmp_path):
    run = trained(tmp_path / "r", "optimizer={kind: sgd, lr: 0.01, batch_size: 3, epochs: 3000}")
    assert run.iterations == 6000
    assert run.loss_iterations[:4].tolist() == [0, 2, 4, 6]
    assert run.losses[-1] < run.losses[0]


def test_accuracies_on_training_and_held_out_samples(tmp_path):
    held_out = ["dataset.x_test=[[-1.4], [0.3]]", "dataset.y_test=[1, -1]"]
    run = trained(
        tmp_path / "r", *SIGNS, *held_out, "optimizer={kind: adam, lr: 0.05, iterations: 300}"
    )
    assert sorted(run.measures) == ["test_accuracy", "test_loss", "train_accuracy"]
    for i in (0, -1):
        h = run.network(i)
        data = run.dataset()
        assert run.measures["train_accuracy"][i] == np.mean(np.sign(h(data.x)) == data.y)
        assert run.measures["test_accuracy"][i] == np.mean(np.sign(h(data.x_test)) == data.y_test)
        assert run.measures["test_loss"][i] == pytest.approx(
            np.mean(np.log1p(np.exp(-data.y_test * h(data.x_test))))
        )
    assert run.measures["train_accuracy"][-1] == 1.0


def test_a_directory_of_another_run_is_not_overwritten(tmp_path):
    trained(tmp_path / "r")
    with pytest.raises(UsageError, match="holds a run of another config"):
        trained(tmp_path / "r", "seed=1")
    plan = plan_run(load_config(BASE, ["seed=1"]), tmp_path / "r")
    assert obtain_run(plan, force=True).run.config.seed == 1
    assert obtain_run(plan).reused


def test_a_measure_that_takes_longer_than_the_training_is_estimated(tmp_path, monkeypatch, capsys):
    """A clock that a measure moves by a minute, once it has measured the first state."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    measure = WeightNorm.measure

    def slow(self, state):
        now[0] += 60.0
        return measure(self, state)

    monkeypatch.setattr(WeightNorm, "measure", slow)
    every = "record.snapshots={kind: every, interval: 100}"
    run = trained(tmp_path / "r", "record.measures=[weight_norm]", every)
    assert run.snapshot_iterations.tolist() == [0, 100, 200, 300, 400]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("weight_norm: about 3 min for 3 more states of 60 s, longer than the")
