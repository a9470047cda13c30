"""Curves that a notebook draws while a run is recorded."""

import os
import signal
import sys
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

import dynamics_cli as dyn
from dynamics_cli import live
from dynamics_cli.runs.run import measured
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run
from dynamics_cli.training.signals import Interrupted
from tests.cases import TWO_POINTS
from tests.pages.test_page import unpacked

SHARPNESS = {"kind": "sharpness", "top": 2, "at": {"kind": "every", "interval": 20}}
CONFIG = {
    **TWO_POINTS,
    "record": {
        "snapshots": {"kind": "every", "interval": 5},
        "measures": ["weight_norm", SHARPNESS],
        "checkpoints": [10],
    },
}


class Rows:
    """A listener that keeps all rows."""

    def __init__(self):
        self.blocks = {}

    def __call__(self, steps, values):
        for name, numbers in values.items():
            self.blocks.setdefault(name, []).append((steps, numbers))

    def check(self, run):
        """Compare the rows with those of a run."""
        assert self.blocks.keys() == {"loss", *run.measures}
        for name, blocks in self.blocks.items():
            steps, values = map(np.concatenate, zip(*blocks, strict=True))
            of_run = (run.loss_iterations, run.losses)
            if name != "loss":
                of_run = (run.snapshot_iterations, run.measures[name])
            assert_array_equal(steps, of_run[0])
            assert_array_equal(values, of_run[1])


def stop(iteration, loss):
    if iteration >= 15:
        os.kill(os.getpid(), signal.SIGINT)


def test_a_listener_gets_every_row_once(tmp_path, monkeypatch):
    plan = dyn.plan_train(CONFIG, out=tmp_path / "run")
    monkeypatch.setattr(loop, "CALL_SECONDS", 1e-9)
    with pytest.raises(Interrupted):
        obtain_run(plan, progress=stop)
    rows = Rows()
    run = obtain_run(plan, resume=True, listener=rows).run
    rows.check(run)
    branch = dyn.plan_train(run.path, {"optimizer.lr": 0.02}, at=10, out=tmp_path / "branch")
    rows = Rows()
    run = obtain_run(branch, listener=rows).run
    assert run.info["parent"]["iteration"] == 10
    rows.check(run)


@pytest.fixture
def shown(monkeypatch):
    """The widgets that a notebook shows."""
    widgets = []
    monkeypatch.setattr(live, "_display", lambda: widgets.append)
    return widgets


def recorded(directory, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.eye(2)
    with dyn.Recorder(
        directory,
        model,
        x,
        torch.ones(2, 1),
        loss="mse",
        measures=["train_loss", SHARPNESS],
        every=5,
        **options,
    ) as recorder:
        for _ in range(30):
            optimizer.zero_grad()
            ((model(x) - 1) ** 2).mean().backward()
            optimizer.step()
            recorder.step()
    return dyn.load_run(directory)


def trained(directory, **options):
    return dyn.train(CONFIG, out=directory, **options)


@pytest.mark.parametrize("obtain", [trained, recorded])
def test_curves_show_the_loss_and_the_measures(obtain, shown, tmp_path):
    pytest.importorskip("anywidget")
    run = obtain(tmp_path / "live", live=True)
    alone = obtain(tmp_path / "alone")
    assert_array_equal(run.losses, alone.losses)
    for name, values in alone.measures.items():
        assert_array_equal(run.measures[name], values)
    (widget,) = shown
    charts = {panel["title"]: panel["lines"] for panel in widget.described["panels"]}
    (loss,) = charts["loss"]
    assert_array_equal(unpacked(loss["x"]), run.loss_iterations)
    assert_array_equal(unpacked(loss["y"]), run.losses)
    first, second = charts["sharpness"]
    steps, values = measured(run, "sharpness")
    assert_array_equal(unpacked(first["x"]), steps)
    assert_array_equal(unpacked(second["y"]), values[:, 1])
    assert [first["name"], second["name"]] == ["1", "2"]
    assert "training loss" not in charts
    assert "<h1>live</h1>" in unescape(widget.page)
    obtain(tmp_path / "again", live=False)
    assert len(shown) == 1


def test_a_finished_run_draws_nothing(shown, tmp_path):
    pytest.importorskip("anywidget")
    for _ in range(2):
        dyn.train(CONFIG, out=tmp_path / "run", live=True)
    assert len(shown) == 1


def test_only_a_notebook_asks_for_the_extra(shown, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    live._widget_class.cache_clear()
    assert dyn.train(CONFIG, out=tmp_path / "a", live=True).status == "complete"
    assert shown == []
    assert capsys.readouterr().err == (
        'live curves need anywidget: pip install "dynamics-cli[notebook]"\n'
    )
    monkeypatch.setattr(live, "_display", lambda: None)
    assert dyn.train(CONFIG, out=tmp_path / "b", live=True).status == "complete"
    assert capsys.readouterr().err == ""


def test_curves_are_updated_a_few_times_a_second(monkeypatch):
    class Widget(SimpleNamespace):
        updates = 0

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            Widget.updates += name == "described"

    clock = iter(np.arange(0.0, 10.0, 0.1))
    monkeypatch.setattr(live.time, "monotonic", lambda: next(clock))
    widget = Widget(described={})
    curves = live.Curves("run", widget, dyn.load_config(CONFIG), [], [].append)
    for step in range(50):
        curves(np.array([step]), {"weight_norm": np.array([1.0])})
        curves(np.array([step]), {"loss": np.array([1.0])})
    assert 1 / live.SECONDS < Widget.updates / 10.0 <= 2 / live.SECONDS
    titles = [panel["title"] for panel in widget.described["panels"]]
    assert titles == ["loss", "norm of all weights"]


def test_many_points_are_reduced_and_keep_both_ends_and_spikes():
    steps = np.arange(10_001)
    values = np.stack([steps % 2, np.where(steps == 9, np.inf, steps)], axis=1).astype(float)
    values[3] = np.nan
    values[5003, 0] = 40.0
    values[7004, 0] = -50.0
    widget = SimpleNamespace(described={})
    curves = live.Curves("run", widget, dyn.load_config(CONFIG), [], [].append)
    for first in range(0, len(steps), 7):
        curves(steps[first : first + 7], {"sharpness": values[first : first + 7]})
    curves.end()
    ((alternating, rising),) = (panel["lines"] for panel in widget.described["panels"])
    x, y = unpacked(alternating["x"]), unpacked(alternating["y"])
    assert len(x) <= 12 * live.COLUMNS
    assert (x[0], x[-1], y.min(), y.max()) == (0, 10_000, -50, 40)
    assert_array_equal(y, values[x.astype(int), 0])
    assert np.isinf(unpacked(rising["y"])).sum() == 1
