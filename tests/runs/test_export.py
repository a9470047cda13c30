"""Runs as xarray, pandas, parquet, TensorBoard and safetensors have them give the recorded numbers."""

from __future__ import annotations

import errno
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import dynamics_cli as dyn
from dynamics_cli.cli import main
from dynamics_cli.errors import DynError, RunError, UsageError
from dynamics_cli.runs.store import files
from dynamics_cli.sweeps.directory import Sweep
from tests.kinds.cases import config_of

DEEP = {"kind": "fully_connected", "widths": [3, 2]}
STARTS = {"initialization": {"kind": "default_scaled"}}
RECORD = {"snapshots": {"kind": "every", "interval": 2}, "measures": ["weight_norm", "balancedness"]}
CASES: dict[str, tuple[dict[str, Any], dict[str, tuple[str, ...]]]] = {
    "two layers": ({}, {"hidden_weight": ("neuron", "input"), "output_weight": ("neuron",)}),
    "deep": ({"architecture": DEEP, **STARTS}, {
        "weight_1": ("layer_1", "input"), "bias_1": ("layer_1",), "weight_2": ("layer_2", "layer_1"),
        "weight_3": ("output", "layer_2"), "bias_3": ("output",)}),
    "diagonal": ({"architecture": {"kind": "diagonal_linear"}, "initialization": {"kind": "constant", "scale": 0.1},
                  "record": {**RECORD, "measures": ["predictor"]}}, {"u": ("u_0",), "v": ("v_0",)}),
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return dyn.train(config_of(record=RECORD), out=tmp_path_factory.mktemp("export") / "run")


@pytest.mark.parametrize("case", CASES)
def test_arrays_with_named_axes(case: str, tmp_path: Path) -> None:
    changes, axes = CASES[case]
    run = dyn.train(config_of(**{"record": RECORD, **changes}), out=tmp_path / "run")
    data = run.to_xarray()
    for name, of_weight in axes.items():
        assert data[name].dims == ("iteration", *of_weight)
        np.testing.assert_array_equal(data[name], run.parameters[name])
    for name, values in run.measures.items():
        np.testing.assert_array_equal(data[name], values)
    assert data.iteration.values.tolist() == run.snapshot_iterations.tolist()
    np.testing.assert_array_equal(data.loss.sel(loss_iteration=3), run.losses[3])
    assert (data.attrs["optimizer.lr"], data.attrs["hash"]) == (0.1, run.hash)
    data.to_netcdf(tmp_path / "run.nc", engine="scipy")


def test_tables_events_and_weights(run: Any, tmp_path: Path) -> None:
    import pandas
    from safetensors.torch import load_file
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    dyn.export(run, tmp_path / "run.parquet", to="parquet")
    table = pandas.read_parquet(tmp_path / "run.parquet")
    assert table.columns.tolist() == ["iteration", "loss", "weight_norm", "balancedness.1"]
    np.testing.assert_array_equal(table.loss, run.losses)
    even = table.iteration.isin(run.snapshot_iterations)
    np.testing.assert_array_equal(table.weight_norm[even], run.measures["weight_norm"])
    assert table.weight_norm[~even].isna().all()

    dyn.export(run.path, tmp_path / "events", to="tensorboard")
    events = EventAccumulator(str(tmp_path / "events")).Reload()
    np.testing.assert_allclose([one.value for one in events.Scalars("loss")], run.losses, rtol=1e-6)
    assert [one.step for one in events.Scalars("weight_norm")] == run.snapshot_iterations.tolist()

    dyn.export(run, tmp_path / "w.safetensors", to="safetensors", at=2)
    model = run.config.architecture.build(2).double()
    model.load_state_dict(load_file(tmp_path / "w.safetensors"))
    x = np.random.default_rng(0).standard_normal((4, 2))
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.from_numpy(x)), run.network(run.index_of(2))(x), rtol=1e-14)


def test_a_sweep_is_a_table_of_its_jobs(tmp_path: Path) -> None:
    import pandas

    sweep = dyn.sweep(config_of(), {"optimizer.lr": [0.1, 0.2]}, out=tmp_path / "sweep", workers=1)
    dyn.export(sweep, tmp_path / "sweep.parquet", to="parquet")
    assert pandas.read_parquet(tmp_path / "sweep.parquet")["optimizer.lr"].tolist() == [0.1, 0.2]
    with pytest.raises(UsageError, match="take one of its runs for safetensors, sweep:0"):
        dyn.export(sweep, tmp_path / "s", to="safetensors")


@pytest.mark.parametrize(("to", "package"), [
    ("parquet", "pandas"), ("parquet", "pyarrow"), ("tensorboard", "tensorboard"), ("safetensors", "safetensors.numpy"),
    ("xarray", "xarray"),
])  # fmt: skip
def test_a_missing_package_is_named(
    run: Any, to: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == package and "." in name]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    if to == "tensorboard":
        monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(UsageError, match=f"pip install .*{package.split('.', maxsplit=1)[0]}"):
        run.to_xarray() if to == "xarray" else dyn.export(run, tmp_path / "out", to=to)


@pytest.mark.parametrize(("options", "reason"), [
    ({"to": "csv"}, "there are parquet, tensorboard, safetensors"), ({"to": "parquet", "at": 3}, "exports all states"),
    ({"to": "parquet", "out": "."}, "is there already"),
])  # fmt: skip
def test_what_makes_no_sense(run: Any, options: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=reason):
        dyn.export(run, tmp_path / options.pop("out", "out"), **options)


ATTACKS = {
    "an edited table": lambda sweep: (sweep / "results.csv").write_text((sweep / "results.csv").read_text() + "7\n"),
    "a table that is gone": lambda sweep: (sweep / "results.csv").unlink(),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_table_that_is_not_what_the_sweep_wrote_is_told_and_never_read(attack: str, tmp_path: Path) -> None:
    sweep = dyn.sweep(config_of(), {"seed": [0, 1]}, out=tmp_path / "sweep")
    ATTACKS[attack](sweep.path)
    done = CliRunner().invoke(main, ["verify", str(sweep.path)])
    assert (done.exit_code, "results.csv: it is not the table that the sweep wrote" in done.stdout) == (7, True)
    assert Sweep(sweep.path).rows == sweep.rows


def test_no_command_reads_a_damaged_sweep(tmp_path: Path) -> None:
    sweep = dyn.sweep(config_of(), {"seed": [0, 1]}, out=tmp_path / "sweep").path
    (sweep / "sweep.json").write_text("")
    for command in (["export", sweep, tmp_path / "out", "--to", "parquet"], ["verify", sweep], ["plot", sweep],
                    ["show", sweep], ["show", f"{sweep}:0"], ["page", sweep, "-o", tmp_path / "p.html"]):  # fmt: skip
        done = CliRunner().invoke(main, [*map(str, command)])
        assert (done.exit_code, "Traceback" in done.stderr) == (7, False), command
        assert command[0] == "verify" or re.fullmatch(r"Error: \S+/sweep/\S+ is damaged: .*\n", done.stderr)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("to", ["parquet", "tensorboard", "safetensors"])
def test_exports_are_written_whole_or_not_at_all(
    run: Any, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_text("mine")
    (tmp_path / "link").symlink_to("kept")
    (tmp_path / "dangling").symlink_to("nothing")
    for name, reason in (("link", "is there already"), ("dangling", "is there already"), ("kept/out", "cannot write")):
        with pytest.raises(DynError, match=reason):
            dyn.export(run, tmp_path / name, to=to)
    dyn.export(run, tmp_path / "new/folder/out", to=to)
    with monkeypatch.context() as patched:
        patched.setattr(files, "replace", full_disk)
        with pytest.raises(RunError, match="disk full while writing .*full"):
            dyn.export(run, tmp_path / "full", to=to)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "kept", "link", "new"]
    assert (tmp_path / "kept").read_text() == "mine"


def full_disk(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
