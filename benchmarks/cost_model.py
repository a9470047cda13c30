"""Predicted against measured time of an iteration: `python benchmarks/cost_model.py [CONFIG ...] [--turn SECONDS]`.

For bundled configs (all by default) whose data are there, each way to train that a CPU has: microseconds that the cost
model predicts (`training/backends.py`), those measured, and their ratio. `*` marks the choice of `auto`. On a busy
machine `NUMBA_NUM_THREADS=1 OMP_NUM_THREADS=1` measures the time of one thread; predictions are for two cores.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from dynamics_cli.config import load_config
from dynamics_cli.errors import DataMissingError
from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import Choice, build_stepper, choose, possible
from dynamics_cli.training.problem import build_problem

CLOCK = time.thread_time if os.environ.get("NUMBA_NUM_THREADS") == "1" else time.perf_counter
CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*", metavar="CONFIG", help="such as boursier2022/high_dim")
    parser.add_argument("--turn", type=float, default=0.05, metavar="SECONDS", help="time of one measurement")
    parser.add_argument("--ways", nargs="*", metavar="NAME", help="only these ways to train")
    options = parser.parse_args()
    names = options.configs or sorted(str(p.relative_to(CONFIGS).with_suffix("")) for p in CONFIGS.rglob("*.yaml"))
    ratios = []
    print(f"{'config':28} {'way':12} {'predicted us':>12} {'measured us':>12} {'ratio':>6}")
    for name in names:
        try:
            problem = build_problem(load_config(CONFIGS / f"{name}.yaml", ["record.measures=[]", "sweep=null"]))
        except DataMissingError:
            continue
        if problem.config.optimizer.kind == "gradient_flow":  # its points in time differ by orders of magnitude
            continue
        best = choose([problem])
        for choice in possible(problem):
            way = choice.variant or choice.backend
            if choice.device != "cpu" or (options.ways and way not in options.ways):
                continue
            seconds = measured(problem, choice, options.turn)
            ratios.append(choice.seconds_per_iteration / seconds)
            mark = "*" if choice == best else ""
            print(
                f"{name:28} {way + mark:12} {1e6 * choice.seconds_per_iteration:12.2f} "
                f"{1e6 * seconds:12.2f} {ratios[-1]:6.2f}",
                flush=True,
            )
    spread = np.exp(np.abs(np.log(ratios)))
    print(f"{len(ratios)} rows: off by {np.median(spread):.2f} (median), {spread.max():.2f} (most)")


def measured(problem: Problem, choice: Choice, turn: float) -> float:
    """Return the seconds of an iteration, the fastest of three turns."""
    stepper = build_stepper([problem], choice)
    stepper.advance(2)
    count, times = 1, list[float]()
    while len(times) < 4 and not stepper.halted:
        began, before = CLOCK(), stepper.iteration
        stepper.advance(count)
        seconds = CLOCK() - began
        if seconds > turn / 2 or stepper.halted:
            times.append(seconds / (stepper.iteration - before))
        elif not times:
            count *= 2
    return min(times)


if __name__ == "__main__":
    main()
