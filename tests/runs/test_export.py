"""Runs as xarray and pandas have them give the recorded numbers; damaged sweeps are refused."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dynamics_cli as dyn
from dynamics_cli.cli import main
from dynamics_cli.errors import UsageError
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


def test_a_table_has_a_row_for_each_recorded_iteration(run: Any) -> None:
    table = run.to_pandas()
    assert table.columns.tolist() == ["iteration", "loss", "weight_norm", "balancedness.1"]
    np.testing.assert_array_equal(table.loss, run.losses)
    even = table.iteration.isin(run.snapshot_iterations)
    np.testing.assert_array_equal(table.weight_norm[even], run.measures["weight_norm"])
    assert table.weight_norm[~even].isna().all()


@pytest.mark.parametrize("package", ["pandas", "xarray"])
def test_a_missing_package_is_named(run: Any, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UsageError, match=f"pip install .*{package}"):
        getattr(run, f"to_{package}")()


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
    for command in (["verify", sweep], ["plot", sweep], ["show", sweep],
                    ["show", f"{sweep}:0"], ["page", sweep, "-o", tmp_path / "p.html"]):  # fmt: skip
        done = CliRunner().invoke(main, [*map(str, command)])
        assert (done.exit_code, "Traceback" in done.stderr) == (7, False), command
        assert command[0] == "verify" or re.fullmatch(r"Error: \S+/sweep/\S+ is damaged: .*\n", done.stderr)
