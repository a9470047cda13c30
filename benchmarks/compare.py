"""Side-by-side timings, run by hand: `python benchmarks/compare.py [--isa avx2] [--busy N]
[--jax-python PYTHON] [--json FILE] [--only NAME]`.

Microseconds per iteration with the loss recorded at every iteration (SGD: ours once an epoch, as
its runs do): the plain PyTorch loop (the faster of one thread and all), JAX where it can be
imported, and our steppers. All run in turns in one process, and of each the fastest turn counts, so
that other users of the machine hit all alike. Take ratios. `--isa avx2` measures twice, in child
processes: with all instructions of the processor, and with all libraries held to AVX2. `--busy N`
measures beside N other processes that compute all the time. `--jax-python` takes the JAX of another
interpreter, whose process waits while others have their turns.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peers import JaxChild, Timed, jax_scan, jax_version, ours, plain
from problems import DEFAULT_MNIST, PROBLEMS, TARGETS

from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import by_engine, by_kernel, has_large_layers

HELD = {
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        # without them Numba takes those of this processor beside the name
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+popcnt,+movbe",
        "XLA_FLAGS": "--xla_cpu_max_isa=AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
}
"""Instruction set -> environment in which Numba, JAX, OpenBLAS and PyTorch use no later one."""
PEERS = {"plain": "plain", "jax": "JAX", "jax exact": "JAX as exact"}
"""Ways that ours are divided by, and their titles. As exact: tanh within 3 units in the last place,
curvature in float64, as ours are; where JAX is by itself, the cell is empty."""
BUSY = "while True: sum(range(10**6))"
"""A program that takes a core."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    parser.add_argument(
        "--only", choices=list(PROBLEMS), action="append", help="only these; repeatable"
    )
    parser.add_argument(
        "--mnist",
        type=Path,
        default=DEFAULT_MNIST,
        metavar="DIR",
        help="where MNIST's IDX files are",
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--turn", type=float, default=0.1, metavar="SECONDS", help="short ones on a busy machine"
    )
    parser.add_argument("--isa", choices=list(HELD), help="beside all instructions, hold to these")
    parser.add_argument(
        "--busy", type=int, default=0, metavar="N", help="beside N other processes that compute"
    )
    parser.add_argument(
        "--jax-python", metavar="PYTHON", help="the interpreter whose JAX is measured"
    )
    options = parser.parse_args()
    if options.isa:
        compare_sets(options)
        return
    with others(options.busy):
        compare(options)


@contextmanager
def others(count: int) -> Iterator[None]:
    """Have other processes compute meanwhile."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def compare(options: argparse.Namespace) -> None:
    """Measure in this process, and print the table."""
    wanted = options.only or list(PROBLEMS)
    about = machine() | {"busy": options.busy, "jax": jax_version(options.jax_python)}
    results: dict[str, Any] = {"machine": about, "table": {}}
    for name in [name for name in PROBLEMS if name in wanted]:
        if name in ("mnist01", "sgd") and not options.mnist.is_dir():
            print(f"{name}: no MNIST at {options.mnist} (--mnist DIR)", file=sys.stderr)
            continue
        results["table"][name] = measure(
            PROBLEMS[name](options.mnist), options.repeats, options.turn, options.jax_python
        )
        print(f"{name}: {results['table'][name]}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(markdown(results))


def compare_sets(options: argparse.Namespace) -> None:
    """Measure with all instructions and with those of a set, each in a child process, and print
    both beside.
    """
    results = {}
    for name, held in (("all", {}), (options.isa, HELD[options.isa])):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "times.json"
            command = [sys.executable, __file__, "--json", str(file)]
            command += ["--mnist", str(options.mnist), "--repeats", str(options.repeats)]
            command += ["--turn", str(options.turn), "--busy", str(options.busy)]
            if options.jax_python:
                command += ["--jax-python", options.jax_python]
            for problem in options.only or []:
                command += ["--only", problem]
            subprocess.run(
                command, env={**os.environ, **held}, check=True, stdout=subprocess.DEVNULL
            )
            results[name] = json.loads(file.read_text())
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(beside(results))


def beside(results: Mapping[str, Any]) -> str:
    """Return a table of microseconds and ratios with all instructions and with those of a set."""
    m = results["all"]["machine"]
    columns = ("us", *(f"x {title}" for title in PEERS.values()))
    titles = [f"{column}, {name}" for name in results for column in columns]
    lines = [
        f"{m['cores']} cores of {m['cpu']}, {m['date']}; load {m['load']:.1f}; {peers_of(m)}.",
        "",
        f"| problem | {' | '.join(titles)} | wanted |",
        "| --- " * (len(titles) + 2) + "|",
    ]
    for problem in results["all"]["table"]:
        cells = []
        for result in results.values():
            row = result["table"][problem]
            us = row["microseconds"]
            mine = us[f"ours {row['chosen']}"]
            cells.append(number(mine))
            cells += [number(us[way] / mine) if way in us else "–" for way in PEERS]
        least = " and ".join(f"{t:g}" if t else "–" for t in TARGETS[problem])
        lines.append(f"| {problem} | {' | '.join(cells)} | {least} |")
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
            model,
        )
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "date": datetime.date.today().isoformat(),
        "load": load,
        "torch": torch.__version__,
    }


def measure(
    problem: Problem, repeats: int, turn: float, jax_python: str | None = None
) -> dict[str, Any]:
    """Return microseconds per iteration of every way to train a problem, the fastest of some
    turns each.
    """
    able = [
        "torch",
        *(["engine"] if by_engine(problem) else []),
        *(["kernel"] if by_kernel(problem) else []),
    ]
    ways: dict[str, Timed | None] = {
        f"plain {k}": plain(problem, k) for k in {1, os.cpu_count() or 1}
    }
    ways |= {
        "jax": jax_scan(problem, jax_python),
        "jax exact": jax_scan(problem, jax_python, exact=True),
        **{f"ours {way}": ours(problem, way) for way in able},
    }
    runs = {name: run for name, run in ways.items() if run is not None}
    counts = {name: calibrate(run, turn) for name, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], run(counts[name]) / counts[name] * 1e6)
    for run in runs.values():
        if isinstance(run, JaxChild):
            run.close()
    best["plain"] = min(
        us for way, us in best.items() if way.startswith("plain ")
    )  # the user's luckier choice
    chosen = "torch" if has_large_layers(problem) else able[-1]
    return {"chosen": chosen, "microseconds": best}


def calibrate(run: Timed, turn: float) -> int:
    """Return how many iterations take about a `turn` of seconds; compiles what has to be
    compiled.
    """
    count = 1
    run(count)
    while (seconds := min(run(count) for _ in range(5))) < turn / 4 and count < 4_000_000:
        count *= 4
    count = max(1, int(count * turn / seconds))
    run(count)
    return count


def peers_of(about: Mapping[str, Any]) -> str:
    """Return the versions of the peers, and how many processes computed beside them, in words."""
    beside = f", beside {about['busy']} busy processes" if about["busy"] else ""
    return f"PyTorch {about['torch']}, JAX {about['jax'] or 'not there'}{beside}"


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table of docs/explanation/speed.md."""
    m = results["machine"]
    lines = [
        (
            f"Microseconds per iteration, loss recorded at every iteration; {m['cores']} cores of"
            f" {m['cpu']}, {m['date']}; {peers_of(m)}."
        ),
        "",
        "| problem | plain PyTorch | JAX `scan` | JAX as exact | `dyn` (way) | x plain | x JAX"
        " | x JAX as exact | wanted |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in results["table"].items():
        us = row["microseconds"]
        mine = row["microseconds"][f"ours {row['chosen']}"]
        cells = [number(us.get(way)) for way in PEERS]
        ratios = [number(us[way] / mine) if way in us else "–" for way in PEERS]
        least = " and ".join(f"{t:g}" if t else "–" for t in TARGETS[name])
        lines.append(
            f"| {name} | {' | '.join(cells)} | {number(mine)} ({row['chosen']}) |"
            f" {' | '.join(ratios)} | {least} |"
        )
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Return a number with two digits, or a dash."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}" if value >= 100 else f"{value:.1f}"


if __name__ == "__main__":
    if "OMP_WAIT_POLICY" not in os.environ:
        # PyTorch and the kernels have a pool of threads each, and must not spin against each other
        os.execve(
            sys.executable,
            [sys.executable, *sys.argv],
            {**os.environ, "OMP_WAIT_POLICY": "passive"},
        )
    main()
