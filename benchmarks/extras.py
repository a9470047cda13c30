"""Growth, memory, sweeps, commands and compilation."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from others import ours, plain
from problems import CONFIGS, PROBLEMS, random_problem

from dynamics_cli.kinds import Problem
from dynamics_cli.sweeps.grid import parse_axis
from dynamics_cli.sweeps.jobs import PlannedSweep
from dynamics_cli.sweeps.sweep import run_sweep
from dynamics_cli.training.backends import choose
from dynamics_cli.training.steppers.compiled import CompiledStepper

Table = dict[str, str]
ROOT = CONFIGS.parents[1]
PEAK = """
import re, sys, tempfile
from pathlib import Path
from dynamics_cli.api import train
with tempfile.TemporaryDirectory() as directory:
    train(sys.argv[1], [f"optimizer.iterations={sys.argv[2]}"], out=Path(directory) / "run")
# not `ru_maxrss`, which on Linux begins with that of the process that started this one
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""
FIRST_CALL = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from problems import random_problem
from dynamics_cli.training.backends import Choice, build_stepper
shape = {"few_columns": (2, 2, 60), "engine": (5, 20, 60)}[sys.argv[2]]
stepper = build_stepper([random_problem(*shape)], Choice("cpu", "compiled", 0.0, sys.argv[2]))
began = time.perf_counter()
stepper.advance(1)
print(time.perf_counter() - began)
"""


def fastest(problem: Problem, count: int, repeats: int = 7) -> float:
    """Return the seconds of `count` iterations on the stepper that `auto` chooses."""
    chosen = choose([problem])
    run = ours(problem, chosen.variant or chosen.backend)
    run(2)
    return min(run(count) for _ in range(repeats))


def growth() -> Table:
    """Time against iterations, width, samples and replicas."""
    orthogonal = PROBLEMS["orthogonal"](Path())
    run, counts = ours(orthogonal, "few_columns"), [200_000, 400_000, 800_000, 1_600_000]
    run(10)
    times = [float("inf")] * len(counts)
    for _ in range(9):
        times = [min(t, run(count)) for t, count in zip(times, counts, strict=True)]
    each = [t / count * 1e6 for t, count in zip(times, counts, strict=True)]
    spread = max(each) / min(each) - 1
    table = {"us per iteration, orthogonal, 2e5 to 1.6e6 iterations": f"{_list(each)}, spread {spread:.1%}"}
    widths = [60, 600, 6000, 60_000, 600_000]
    table[f"us per iteration, (3, 2, m), m = {widths}"] = _list(
        [fastest(random_problem(3, 2, m), 200) / 200 * 1e6 for m in widths]
    )
    samples = [2, 20, 200, 2000]
    table[f"us per iteration, (n, 2, 60), n = {samples}"] = _list(
        [fastest(random_problem(n, 2, 60), 500) / 500 * 1e6 for n in samples]
    )
    replicas = [1, 10, 100, 1000]
    table[f"us per iteration, orthogonal, R = {replicas}"] = _list([_replicas(orthogonal, R) for R in replicas])
    return table


def _replicas(problem: Problem, count: int) -> float:
    stepper = CompiledStepper([problem] * count)
    start, best = stepper.state_dict(), float("inf")
    for _ in range(5):
        stepper.load_state_dict(start)
        began = time.perf_counter()
        stepper.advance(1000)
        best = min(best, (time.perf_counter() - began) / 1000 * 1e6)
    return best


def _list(values: list[float]) -> str:
    return ", ".join(f"{v:.3g}" for v in values)


def memory() -> Table:
    """Peak memory of whole runs, recording included."""
    config = str(CONFIGS / "boursier2022" / "orthogonal.yaml")
    table = {}
    for count in (20_000, 200_000, 2_000_000):
        peak = float(_python("-c", PEAK, config, str(count)))
        table[f"peak MiB of a run of orthogonal, {count:,} iterations"] = f"{peak:.0f}"
    return table


def sweeps() -> Table:
    """Sweeps as `dyn sweep` does them, in a fresh directory, everything included."""
    orthogonal = str(CONFIGS / "boursier2022" / "orthogonal.yaml")
    phase = {
        "name": "phase",
        "dataset": {"kind": "points", "x": [[1.0]], "y": [1.0]},
        "architecture": {"kind": "two_layer", "width": 1},
        "initialization": {"kind": "values", "hidden_weight": [[0.0]], "output_weight": [0.0]},
        "loss": {"kind": "mse"},
        "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 5000},
    }
    axes = [parse_axis(f"initialization.{key}=-2:2:100") for key in ("hidden_weight.0.0", "output_weight.0")]

    def seconds(action: Callable[[Path], object]) -> str:
        best = float("inf")
        for _ in range(3):
            with tempfile.TemporaryDirectory() as directory:
                began = time.perf_counter()
                action(Path(directory) / "sweep")
                best = min(best, time.perf_counter() - began)
        return f"{best:.2f}"

    return {
        "s, 1 000 replicas of orthogonal, 20 000 iterations": seconds(
            lambda out: run_sweep(PlannedSweep(orthogonal, seeds=1000), out=out)
        ),
        "s, 100 x 100 initial weights of one neuron, 5 000 iterations": seconds(
            lambda out: run_sweep(PlannedSweep(phase, [], axes), out=out)
        ),
    }


def commands() -> Table:
    """The command line, each call a fresh process."""
    with tempfile.TemporaryDirectory() as outputs:
        environment = {"DYN_OUTPUTS": outputs}
        _python("-m", "dynamics_cli", "reproduce", "boursier2022-fig3", **environment)

        def seconds(*arguments: str) -> str:
            best = float("inf")
            for _ in range(5):
                began = time.perf_counter()
                _python("-m", "dynamics_cli", *arguments, **environment)
                best = min(best, time.perf_counter() - began)
            return f"{best:.2f}"

        return {
            "s, `dyn --help`": seconds("--help"),
            "s, `dyn reproduce boursier2022-fig3`, run finished": seconds("reproduce", "boursier2022-fig3"),
        }


def compilation() -> Table:
    """The first call of each kernel with nothing cached, then with the cache."""
    table = {}
    for kernel in ("few_columns", "engine"):
        with tempfile.TemporaryDirectory() as cache:
            here = str(Path(__file__).parent)
            first, again = (float(_python("-c", FIRST_CALL, here, kernel, NUMBA_CACHE_DIR=cache)) for _ in range(2))
        table[f"s, first call of {kernel}: compiled, cached"] = f"{first:.2f}, {again:.2f}"
    return table


def autograd() -> Table:
    """Autograd forced, against the plain loop; one thread each, in turns, of each the fastest."""
    table = {}
    for name in ("deep_linear", "relu", "relu_adam", "relu_sgd"):
        problem = PROBLEMS[name](Path())
        runs, count = (plain(problem, 1), ours(problem, "torch")), 50
        turns = [[run(count) / count * 1e6 for run in runs] for _ in range(30)][1:]
        loop, mine = (min(one) for one in zip(*turns, strict=True))
        table[f"us per iteration, {name}: plain loop, dyn by autograd"] = f"{loop:.0f}, {mine:.0f}"
    return table


def _python(*arguments: str, **environment: str) -> str:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


EXTRAS: dict[str, Callable[[], Table]] = {
    "growth": growth,
    "memory": memory,
    "sweeps": sweeps,
    "commands": commands,
    "compilation": compilation,
    "autograd": autograd,
}
