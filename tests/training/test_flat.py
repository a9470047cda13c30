"""A long run holds as much memory and as many open files at its end as near its beginning;
clocks may go backwards.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from tests.training.kill_script import BASE

MIB = 2**20


def train(directory, iterations):
    """Train, in a process whose memory and open files are nobody else's, and print what it held
    on the way.
    """
    optimizer = {"kind": "gd", "lr": 1e-3, "iterations": iterations}
    record = {
        "snapshots": {"kind": "every", "interval": iterations // 200}
    }  # every loss is recorded
    plan = plan_run(
        load_config({**BASE, "optimizer": optimizer, "record": record, "name": "flat"}), directory
    )
    loop.CALL_SECONDS = 0.005
    loop.CHECKPOINT_SECONDS = 0.02
    process = psutil.Process()
    seen = []

    def look(iteration, _):
        if iteration >= len(seen) * iterations // 50:
            seen.append(
                (iteration, process.memory_info().rss, process.num_fds(), process.num_threads())
            )

    run = obtain_run(plan, progress=look).run
    print(
        json.dumps(
            {
                "seen": seen,
                "backend": plan.choice.backend,
                "losses": len(run.losses),
                "status": run.status,
            }
        )
    )


@pytest.mark.parametrize("iterations", [10**6, pytest.param(10**7, marks=pytest.mark.long)])
def test_memory_and_files_are_flat_over_a_million_iterations(tmp_path, iterations):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, str(tmp_path / "run"), str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["status"], told["losses"], told["backend"]) == (
        "complete",
        iterations + 1,
        "compiled",
    )
    steps, memory, files, threads = np.array(told["seen"]).T
    warm = steps > iterations / 5
    assert warm.sum() >= 30
    low = memory[warm].min() / MIB
    high = memory[warm].max() / MIB
    print(f"{iterations} iterations: {low:.1f} to {high:.1f} MiB, {files.max()} open files")
    # 16 bytes an iteration are recorded: of ten million, 160 MB
    assert memory[warm].max() - memory[warm][0] < 8 * MIB
    assert files[warm].max() == files[warm].min()
    assert threads[warm].max() == threads[warm].min()


if __name__ == "__main__":
    train(Path(sys.argv[1]), int(sys.argv[2]))
