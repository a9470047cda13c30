"""A real Slurm on this machine: jobs of a sweep requeued, cancelled and preempted; the same command again goes on.

Needs root and Debian's packages: `apt-get install slurm-wlm munge`; then `pytest -m long -s tests/sweeps/test_slurm.py`
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.sweeps.test_grid import BASE

ROOT = Path(__file__).parents[2]
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)) or os.geteuid() != 0, reason="needs root, slurm-wlm and munge"
    ),
]
CONF = """\
ClusterName=dyn
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=2,bf_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=5
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=low Nodes={host} PriorityTier=1 Default=YES MaxTime=INFINITE State=UP
PartitionName=high Nodes={host} PriorityTier=9 MaxTime=INFINITE State=UP
"""
CONFIG = {
    **BASE,
    "optimizer": {"kind": "gd", "lr": 0.001, "iterations": 20},
    "backend": "compiled",
    "sweep": {"grid": {"architecture.width": [2, 3, 4, 5]}, "seeds": 2},
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Start munged, slurmctld and slurmd with all their files and ports their own; end them at the end."""
    for folder in ("state", "spool", "munge"):
        (tmp_path / folder).mkdir()
    tmp_path.chmod(0o755)
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF.format(host=socket.gethostname(), place=tmp_path, ports=ports, cpus=os.cpu_count()))
    key = tmp_path / "munge" / "key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    monkeypatch.setenv("SLURM_CONF", str(conf))
    names = {name: str(tmp_path / f"munge.{name}") for name in ("socket", "pid-file", "log-file", "seed-file")}
    munge = [f"--{name}={value}" for name, value in names.items()]
    running = [subprocess.Popen(["munged", "--foreground", "--force", f"--key-file={key}", *munge])]
    try:
        until((tmp_path / "munge.socket").exists, 20)
        for daemon in (["slurmctld", "-D"], ["slurmd", "-D", "-N", socket.gethostname()]):
            running.append(subprocess.Popen([*daemon, "-f", str(conf)], stderr=subprocess.DEVNULL))
        until(lambda: ask("sinfo", "-h", "-p", "low", "-o", "%T") in ("idle", "mixed"), 200)
        yield tmp_path
    finally:
        subprocess.run(["scancel", "--user=root"], check=False)
        for one in reversed(running):
            one.terminate()
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()


def ask(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()


def until(true, seconds):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.3)


def dyn(place, *arguments):
    command = [sys.executable, "-m", "dynamics_cli", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_requeued_cancelled_and_preempted(cluster):
    (cluster / "toy.yaml").write_text(yaml.safe_dump(CONFIG))
    sweep = ["sweep", "toy.yaml", "--set", "optimizer.iterations=24000000"]
    dyn(cluster, *sweep, "--out", "whole", "--quiet")
    by_slurm = [*sweep, "--out", "s", "--engine", "slurm", "--partition", "low", "--time", "01:00:00", "--mem", "100M"]

    def states():
        lines = ask("squeue", "-h", "-r", "-o", "%K %T", "-p", "low").splitlines()
        return dict(line.split() for line in lines)

    def restarts(k):
        return f"Restarts={k}" in ask("scontrol", "show", "job", job)

    def begun(k):
        """Whether a part has trained for a while and is at it."""
        recorded = cluster / f"s/batches/{2 * (k - 1):06d}/losses.npy"
        return states().get(str(k)) == "RUNNING" and recorded.exists()

    def now():
        for k, state in states().items():
            if state == "PENDING":  # Slurm lets what it requeues wait for two minutes
                ask("scontrol", "update", f"JobId={job}_{k}", "StartTime=now")

    told = dyn(cluster, *by_slurm, "--array", "4%2")
    job = told.split("job ")[1].split(",")[0]
    assert "4 of 4 parts" in told
    until(lambda: begun(2), 400)
    ask("scancel", f"{job}_2")
    until(lambda: begun(1), 400)
    ask("scontrol", "requeue", f"{job}_1")
    assert "in the queue: " in dyn(cluster, *by_slurm, "--array", "4%2")  # nothing is submitted twice
    assert "slurm " in dyn(cluster, *by_slurm, "--status")
    until(lambda: states().get("1") == "PENDING" and "2" not in states(), 200)
    until(lambda: "RUNNING" in states().values(), 60)  # part 3, which is preempted
    until(lambda: begun(3), 400)
    ask("scontrol", "hold", f"{job}_1")
    high = ask("sbatch", "--parsable", "--partition=high", f"--cpus-per-task={os.cpu_count()}", "--output=/dev/null",
               "--wrap=sleep 3")  # fmt: skip
    until(lambda: states().get("3") == "PENDING", 200)
    assert restarts(1)
    until(lambda: high not in ask("squeue", "-h", "-o", "%i", "-p", "high"), 200)
    ask("scontrol", "release", f"{job}_1")

    def over():
        now()
        return not states()

    until(over, 300)
    again = dyn(cluster, *by_slurm, "--array", "4%2")
    assert "1 of 4 parts" in again  # the one that was cancelled
    until(over, 300)
    done = dyn(cluster, *by_slurm, "--array", "4%2")
    assert "jobs   8 complete" in done
    assert (cluster / "s/results.csv").read_bytes() == (cluster / "whole/results.csv").read_bytes()
    resumed = [path.parent.name for path in (cluster / "s").rglob("run.json") if "resumptions" in path.read_text()]
    print(f"job {job}: part 1 requeued, 2 cancelled, 3 preempted; gone on with: {sorted(resumed)}; table byte-equal")
    assert {"000000", "000002", "000004"} <= set(resumed)
