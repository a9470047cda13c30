"""Sweeps by several processes: the script of the handbook, Dask, killed drivers, two drivers at
once.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import dynamics_cli as dyn
from dynamics_cli.cli import main
from dynamics_cli.runs.store.locks import run_lock
from dynamics_cli.sweeps.directory import Sweep, verify_sweep
from tests.runs.damage import contents
from tests.sweeps.test_grid import BASE

PAGE = Path(__file__).parents[2] / "docs/how-to/clusters.md"
KEPT = ("*.npy", "results.csv")
KILLS = int(os.environ.get("DYN_KILLS", "1"))
SHORT = {"overrides": ["optimizer.iterations=5"]}


def test_the_job_array_of_the_handbook_trains_a_sweep(tmp_path):
    _, _, rest = PAGE.read_text().partition(":caption: widths.sh\n\n")
    script = rest.partition("```")[0].replace(
        "--seeds 20", "--seeds 2 --set optimizer.iterations=20"
    )
    (tmp_path / "widths.sh").write_text(script)
    assert "#SBATCH --array=1-3\n" in script
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for k, ended in ((1, 2), (2, 6)):  # of two tasks, as each is a process
        array = {"SLURM_ARRAY_TASK_ID": str(k), "SLURM_ARRAY_TASK_COUNT": "2"}
        subprocess.run(
            ["bash", "widths.sh"],
            cwd=tmp_path,
            env={**os.environ, **array, "PATH": path},
            check=True,
        )
        part = Sweep(tmp_path / "widths")
        assert (len(part.rows), part.finished) == (ended, k == 2)  # which writes the table
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "widths").rglob("*.npy")}
    grid = {"architecture.width": [20, 40, 60]}
    done = dyn.sweep(
        "boursier2022/orthogonal",
        grid,
        seeds=2,
        overrides=["optimizer.iterations=20"],
        out=tmp_path / "widths",
    )
    assert (done.finished, done.counts()["complete"]) == (True, 6)
    assert {p: p.stat().st_mtime_ns for p in before} == before  # nothing is trained again


def test_the_workers_of_a_dask_scheduler_train(tmp_path):
    distributed = pytest.importorskip("distributed")
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(BASE))
    arguments = ["sweep", tmp_path / "c.yaml", "--seeds", 4, "--out"]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        by_dask = [*arguments, tmp_path / "dask", "--dask", cluster.scheduler_address]
        done = CliRunner().invoke(main, [*map(str, by_dask)])
    assert done.exit_code == 0, done.stderr
    here = dyn.sweep(tmp_path / "c.yaml", seeds=4, out=tmp_path / "here")
    there = Sweep(tmp_path / "dask")
    assert [len({row["path"] for row in sweep.rows}) for sweep in (there, here)] == [2, 1]
    assert there.table.read_bytes() == here.table.read_bytes()
    for job in range(4):
        assert there.run(job).losses.tobytes() == here.run(job).losses.tobytes()


@pytest.mark.parametrize("package", ["submitit", "executorlib"])
def test_executors_of_packages_train(package, tmp_path):
    module = pytest.importorskip(package)
    here = dyn.sweep(BASE, **SHORT, seeds=4, out=tmp_path / "here")
    with ExitStack() as stack:
        if package == "submitit":
            executor = module.AutoExecutor(folder=tmp_path / "log", cluster="local")
        else:
            executor = stack.enter_context(module.SingleNodeExecutor(max_workers=2))
        there = dyn.sweep(
            BASE, **SHORT, seeds=4, out=tmp_path / "there", executor=executor, workers=2
        )
    assert len({row["path"] for row in there.rows}) == 2
    assert there.table.read_bytes() == here.table.read_bytes()


def test_a_second_driver_waits_for_the_first(tmp_path):
    told = []
    done = threading.Thread(
        target=dyn.sweep,
        args=(BASE,),
        kwargs={**SHORT, "out": tmp_path / "s", "messages": told.append},
        daemon=True,
    )
    with run_lock(tmp_path / "s"):
        done.start()
        while not told:
            time.sleep(0.05)
        assert not (tmp_path / "s/sweep.json").exists()
    done.join(60)
    assert "waiting for it to finish" in told[0]
    assert Sweep(tmp_path / "s").finished


def test_a_killed_sweep_goes_on_with_the_same_command(tmp_path):
    """Local workers, a shard, and a driver beside it; `DYN_KILLS=30` kills more often."""
    grid = {"architecture.width": [2, 3, 4]}
    config = {
        **BASE,
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 100_000},
        "backend": "compiled",
        "record": {"loss_every": 1000},
        "sweep": {"grid": grid, "seeds": 2},
    }
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "dynamics_cli", "sweep", "c.yaml", "--quiet", "--out"]
    dyn.sweep(tmp_path / "c.yaml", out=tmp_path / "whole")
    chance = random.Random(KILLS)
    for _ in range(KILLS):
        drivers = [
            subprocess.Popen(
                [*command, "s", *more],
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            for more in (["--workers", "1"], ["--shard", "2/2"])
        ]
        time.sleep(chance.uniform(0.5, 4))
        for driver in drivers:
            driver.kill()
            driver.wait()
    dyn.sweep(tmp_path / "c.yaml", out=tmp_path / "s")
    assert contents(tmp_path / "s", *KEPT) == contents(tmp_path / "whole", *KEPT)
    assert verify_sweep(tmp_path / "s") == []
