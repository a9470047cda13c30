"""Trains many iterations and prints what the process held on the way: `python flat_script.py FOLDER ITERATIONS`.

Called by `test_flat.py` in a process of its own, whose memory and open files are nobody else's.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psutil

from dynamics_cli.config import load_config
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from tests.training.kill_script import BASE

if __name__ == "__main__":
    iterations = int(sys.argv[2])
    optimizer = {"kind": "gd", "lr": 1e-3, "iterations": iterations}
    record = {"snapshots": {"kind": "every", "interval": iterations // 200}}  # every loss is recorded
    plan = plan_run(load_config({**BASE, "optimizer": optimizer, "record": record, "name": "flat"}), Path(sys.argv[1]))
    loop.CALL_SECONDS, loop.CHECKPOINT_SECONDS = 0.005, 0.02
    process, seen = psutil.Process(), []

    def look(iteration: int, _: float) -> None:
        if iteration >= len(seen) * iterations // 50:
            seen.append((iteration, process.memory_info().rss, process.num_fds(), process.num_threads()))

    run = obtain_run(plan, progress=look).run
    # the largest moment of all, and the size of what was recorded meanwhile
    print(json.dumps({"seen": seen, "backend": plan.choice.backend, "losses": len(run.losses), "status": run.status}))
