"""Runs as pandas has them give the recorded numbers; damaged sweeps are refused."""

import os
import re
import stat
import subprocess
import sys
import threading

import pandas
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal

import dynamics_cli as dyn
from dynamics_cli.cli import main
from dynamics_cli.errors import RunError, UsageError
from dynamics_cli.sweeps.directory import Sweep
from tests.cases import config_of, read

RECORD = read("""
snapshots: {kind: every, interval: 2}
measures: [weight_norm, balancedness]
""")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return dyn.train(config_of(record=RECORD), out=tmp_path_factory.mktemp("export") / "run")


def test_a_table_has_a_row_for_each_recorded_iteration(run):
    table = run.to_pandas()
    assert table.columns.tolist() == ["iteration", "loss", "weight_norm", "balancedness.1"]
    assert_array_equal(table.loss, run.losses)
    even = table.iteration.isin(run.snapshot_iterations)
    assert_array_equal(table.weight_norm[even], run.measures["weight_norm"])
    assert table.weight_norm[~even].isna().all()


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_tables_of_runs_and_sweeps_are_written(run, end, tmp_path):
    read = {"csv": pandas.read_csv, "parquet": pandas.read_parquet}[end]
    dyn.export(run.path, tmp_path / f"run.{end}")
    pandas.testing.assert_frame_equal(read(tmp_path / f"run.{end}"), run.to_pandas())
    sweep = dyn.sweep(config_of(), {"optimizer.lr": [0.1, 0.2]}, out=tmp_path / "sweep")
    dyn.export(sweep, tmp_path / f"sweep.{end}")
    assert read(tmp_path / f"sweep.{end}")["optimizer.lr"].tolist() == [0.1, 0.2]
    with pytest.raises(UsageError, match="is there already"):
        dyn.export(run, tmp_path / f"run.{end}")
    with pytest.raises(UsageError, match="is written as .csv or .parquet"):
        dyn.export(run, tmp_path / "run.txt")


def test_a_missing_package_is_named(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="pip install .*pandas"):
        run.to_pandas()


def test_csv_needs_no_package_and_has_the_text_that_pandas_writes(run, monkeypatch, tmp_path):
    """float32 and float64, numbers that were not recorded, text and mappings."""
    sweep = dyn.sweep(config_of(), {"optimizer.lr": [0.1, 0.2]}, out=tmp_path / "sweep")
    expected = {
        "run": run.to_pandas().to_csv(index=False),
        "sweep": sweep.to_pandas().to_csv(index=False),
    }
    placed = ["path", "replica", "hash"]
    table = sweep.to_pandas().drop(columns=placed).to_csv(index=False)
    assert sweep.table.read_text() == table  # which depends on no division into batches
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name, what in (("run", run), ("sweep", sweep)):
        file = tmp_path / f"{name}.csv"
        done = CliRunner().invoke(main, ["export", str(what.path), str(file)])
        assert (done.exit_code, file.read_text()) == (0, expected[name])
    with pytest.raises(UsageError, match="pip install pandas"):
        dyn.export(run, tmp_path / "run.parquet")


@pytest.mark.parametrize("command", ["page --output pipe.html", "export pipe.csv"])
@pytest.mark.parametrize("made", ["pipe", "device"])
def test_a_pipe_and_a_device_are_written_into(run, command, made, tmp_path):
    name, *options = command.split()
    place = tmp_path / options.pop()
    if made == "pipe":
        os.mkfifo(place)
    else:
        try:
            os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 3))  # as /dev/null
        except PermissionError:
            pytest.skip("only root makes devices")
    before = place.stat()
    received = []
    reader = threading.Thread(target=lambda: received.append(place.read_bytes()))
    if made == "pipe":
        reader.start()
    words = [sys.executable, "-m", "dynamics_cli", name, str(run.path), *options, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "Error" in done.stderr) == (0, False)
    assert (place.stat().st_mode, place.stat().st_rdev) == (before.st_mode, before.st_rdev)
    if made == "pipe":
        reader.join(60)
        (contents,) = received
        assert contents.startswith((b"<!doctype html>", b"iteration,loss,"))
        assert contents.endswith((b"</html>\n", b"\n"))


def test_nobody_waits_for_the_reader_of_a_pipe(run, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RunError, match="cannot write .*pipe: no process reads this pipe"):
        dyn.page(run).save(tmp_path / "pipe")


def test_the_csv_file_of_a_sweep_is_never_read(tmp_path):
    sweep = dyn.sweep(config_of(), {"seed": [0, 1]}, out=tmp_path / "sweep")
    (sweep.path / "results.csv").unlink()
    assert Sweep(sweep.path).rows == sweep.rows


def test_no_command_reads_a_damaged_sweep(tmp_path):
    sweep = dyn.sweep(config_of(), {"seed": [0, 1]}, out=tmp_path / "sweep").path
    (sweep / "sweep.json").write_text("")
    for command in (
        ["verify", sweep],
        ["plot", sweep],
        ["show", sweep],
        ["show", f"{sweep}:0"],
        ["page", sweep, "-o", tmp_path / "p.html"],
    ):
        done = CliRunner().invoke(main, [*map(str, command)])
        assert (done.exit_code, "Traceback" in done.stderr) == (7, False), command
        assert command[0] == "verify" or re.fullmatch(
            r"Error: \S+/sweep/\S+ is damaged: .*\n", done.stderr
        )
