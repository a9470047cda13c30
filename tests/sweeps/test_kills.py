"""Sweeps whose drivers, workers and Dask schedulers are killed at random: nothing is lost, nothing is there twice.

`DYN_KILLS=200 pytest -m long -s tests/sweeps/test_kills.py` kills so often in each test; by default 20 times.
"""

from __future__ import annotations

import os
import socket
import sys
from functools import partial

import pytest

from dynamics_cli.sweeps.sweep import by_dask, run_sweep
from tests.sweeps import stage

KILLS = int(os.environ.get("DYN_KILLS", "20"))
MOST = 8
"""Kills during one sweep."""
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of the sweep that nobody disturbs."""
    directory = tmp_path_factory.mktemp("whole") / "s"
    stage.drive(str(directory), None, None, None, str(directory.parent / "log"), keep=True)
    return files_of(directory)


@pytest.fixture
def scene(tmp_path):
    one = stage.Stage(tmp_path / "log", seed=KILLS)
    yield one
    one.close()


def files_of(directory):
    kept = [*directory.rglob("*.npy"), directory / "results.csv", directory / "columns.npz"]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept}


def play(scene, tmp_path, whole, kills, drivers, last=(), pause=(0.05, 1.0)):
    """Kill in one sweep after the other; `drivers` are what each sweep is driven by, `last` what completes it."""
    sweeps = 0
    while scene.kills < kills:
        directory, sweeps = tmp_path / f"s{sweeps}", sweeps + 1
        for name in [name for name in scene.running if name.startswith("driver")]:
            del scene.running[name]
        for k, arguments in enumerate(drivers):
            scene.start(f"driver {k}", stage.drive, str(directory), *arguments)
        names = [f"driver {k}" for k in range(len(drivers))]
        most = min(MOST, kills - scene.kills)
        assert scene.play(names, most, pause=pause), (tmp_path / "log").read_text()[-2000:]
        for arguments in last:
            stage.drive(str(directory), *arguments, str(tmp_path / "log"), keep=True)
        assert stage.sealed(directory)
        assert files_of(directory) == whole
    print(f"{scene.kills} kills in {sweeps} sweeps: all tables and arrays are those of the undisturbed sweep")


def dask(scene, workers=2):
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    scene.start("scheduler", stage.schedule, port)
    for k in range(workers):
        scene.start(f"worker {k}", stage.serve, port)
    return f"tcp://127.0.0.1:{port}", None, None


LOCAL = (None, None, None)
SHARDS = [(None, (k, 3), None) for k in (1, 2, 3, 2)]


@pytest.mark.parametrize(
    ("kills", "drivers", "last", "longest"),
    [
        pytest.param(3, [LOCAL] * 2, [], 0.3, id="a killed driver and another at work"),
        pytest.param(KILLS, [LOCAL] * 2, [], 0.5, id="local drivers", marks=pytest.mark.long),
        pytest.param(KILLS, SHARDS, [LOCAL], 0.5, id="shards", marks=pytest.mark.long),
    ],
)
def test_drivers(scene, tmp_path, whole, kills, drivers, last, longest):
    play(scene, tmp_path, whole, kills, drivers, last, pause=(0.05, longest))


@pytest.mark.long
@pytest.mark.parametrize("drivers", [1, 2])
def test_dask(scene, tmp_path, whole, drivers):
    pytest.importorskip("distributed")
    play(scene, tmp_path, whole, KILLS, [dask(scene)] * drivers)


def test_a_sweep_says_that_all_dask_workers_are_gone_and_goes_on_when_one_comes(scene, tmp_path):
    pytest.importorskip("distributed")
    address, *_ = dask(scene, workers=0)
    told = []

    def come(text):
        told.append(text)
        scene.start("worker", stage.serve, int(address.rpartition(":")[2]))

    sweep = run_sweep(stage.plan(), out=tmp_path / "s", engine=by_dask(address, come))
    assert sweep.results.counts()["complete"] == 32
    assert told == [f"no Dask worker is at {address}: the sweep waits, and goes on when one comes"]


@pytest.mark.long
def test_two_thousand_jobs_by_one_worker_by_eight_and_after_kills(scene, tmp_path):
    drive, log = partial(stage.drive, seeds=125), str(tmp_path / "log")
    for workers in (1, 8):
        drive(str(tmp_path / str(workers)), None, None, workers, log, keep=True)
    for k in range(2):
        scene.start(f"driver {k}", drive, str(tmp_path / "killed"), None, None, None)
    assert scene.play(["driver 0", "driver 1"], KILLS, pause=(0.2, 2.0)), (tmp_path / "log").read_text()[-2000:]
    print(f"{scene.kills} kills")
    one = files_of(tmp_path / "1")
    assert one["results.csv"].count(b"\n") == 2001
    assert files_of(tmp_path / "8") == one == files_of(tmp_path / "killed")
