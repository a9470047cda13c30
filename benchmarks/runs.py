"""Whole runs of the bundled configs beside JAX, run by hand: `python benchmarks/runs.py [CONFIG
…]`.

Of every config that JAX can express (`peers.py`), without its measures: `seconds` of the run that
`dyn train` makes (training, recording of weights and losses, checkpoints; neither data nor first
compilation) against a JAX loop that keeps the same weights and losses in memory and writes them at
its end. Runs of more than `--seconds` are cut. Both run in turns in one process, and of each the
fastest turn counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import jax
from jax_peer import Described, JaxRun
from peers import describe, expressible
from problems import CONFIGS

import dynamics_cli as dyn
from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError
from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import multiply_adds
from dynamics_cli.training.problem import build_problem

RATE = 3e10
"""Multiply-adds of a second, roughly: how long a run takes is not known before."""
LEAST = 20
"""Iterations of the shortest run that is timed."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("configs", nargs="*", help="such as cohen2021/classes; all by default")
    parser.add_argument("--seconds", type=float, default=1.0, help="longest run, roughly")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    names = options.configs or sorted(
        str(path.relative_to(CONFIGS))[:-5] for path in CONFIGS.glob("*/*.yaml")
    )
    print(f"JAX {jax.__version__}\n\n| config | iterations | dyn, s (backend) | JAX, s | x JAX |")
    print("| --- | --- | --- | --- | --- |")
    for name in names:
        try:
            row = timed(name, options.seconds, options.repeats)
        except DynError as error:  # such as data that are missing
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if row is None:
            continue
        cells = f"{row['iterations']:,} | {row['dyn']:.3g} ({row['backend']}) | {row['jax']:.3g}"
        print(f"| {name} | {cells} | {row['jax'] / row['dyn']:.2f} |", flush=True)


def timed(name: str, seconds: float, repeats: int) -> dict[str, Any] | None:
    """Return the fastest seconds of both; None where JAX cannot express the config."""
    path = CONFIGS / f"{name}.yaml"
    changes = ["record.measures=[]", "record.parameters=all"]
    if not expressible(problem := _problem(path, changes)):
        return None
    longest = int(seconds * RATE / max(1, multiply_adds(problem)))
    if problem.iterations > longest:
        key = "iterations" if problem.batch_size is None else "epochs"
        count = (
            max(LEAST, longest)
            if problem.batch_size is None
            else max(1, longest // problem.steps_per_epoch)
        )
        changes.append(f"optimizer.{key}={count}")
        problem = _problem(path, changes)
    peer = JaxRun(Described(*describe(problem)))
    best = {"dyn": float("inf"), "jax": float("inf")}
    states = [int(at) for at in problem.recorded_states]
    backend = ""
    for turn in range(repeats + 1):  # the first compiles
        with tempfile.TemporaryDirectory() as folder:
            run = dyn.train(path, changes, out=Path(folder) / "run")
            backend = str(run.info["backend"])
            seconds_of = {
                "dyn": float(run.info["seconds"]),
                "jax": peer.whole(states, problem.steps_per_epoch, Path(folder) / "jax.npz"),
            }
        if turn:
            best = {way: min(best[way], seconds_of[way]) for way in best}
    return {"config": name, "iterations": problem.iterations, "backend": backend, **best}


def _problem(path: Path, changes: list[str]) -> Problem:
    return build_problem(load_config(path, changes))


if __name__ == "__main__":
    if "OMP_WAIT_POLICY" not in os.environ:
        os.execve(
            sys.executable,
            [sys.executable, *sys.argv],
            {**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
    main()
