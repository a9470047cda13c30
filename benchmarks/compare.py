"""Side-by-side timings, run by hand: `python benchmarks/compare.py [--json FILE] [--only NAME] [--mnist DIR]`.

Microseconds per iteration with the loss recorded at every iteration (SGD: ours once an epoch, as its runs do): the
plain PyTorch loop (the faster of one thread and all), JAX where it can be imported, and our steppers. All run in turns
in one process, and of each the fastest turn counts, so that other users of the machine hit all alike. Take ratios.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peers import Timed, jax_scan, ours, plain
from problems import DEFAULT_MNIST, PROBLEMS, TARGETS

from dynamics_cli.kinds import Problem
from dynamics_cli.training.backends import by_engine, by_kernel


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
    options = parser.parse_args()
    wanted = options.only or list(PROBLEMS)
    results: dict[str, Any] = {"machine": machine(), "table": {}}
    for name in [name for name in PROBLEMS if name in wanted]:
        if name in ("mnist01", "sgd") and not options.mnist.is_dir():
            print(f"{name}: no MNIST at {options.mnist} (--mnist DIR)", file=sys.stderr)
            continue
        results["table"][name] = measure(
            PROBLEMS[name](options.mnist), options.repeats, options.turn
        )
        print(f"{name}: {results['table'][name]}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    print(markdown(results))


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
    }


def measure(problem: Problem, repeats: int, turn: float) -> dict[str, Any]:
    """Return microseconds per iteration of every way to train a problem, the fastest of some turns each."""
    able = [
        "torch",
        *(["engine"] if by_engine(problem) else []),
        *(["kernel"] if by_kernel(problem) else []),
    ]
    ways: dict[str, Timed | None] = {
        f"plain {k}": plain(problem, k) for k in {1, os.cpu_count() or 1}
    }
    ways |= {"jax": jax_scan(problem), **{f"ours {way}": ours(problem, way) for way in able}}
    runs = {name: run for name, run in ways.items() if run is not None}
    counts = {name: calibrate(run, turn) for name, run in runs.items()}
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            best[name] = min(best[name], run(counts[name]) / counts[name] * 1e6)
    best["plain"] = min(
        us for way, us in best.items() if way.startswith("plain ")
    )  # the user's luckier choice
    return {"chosen": able[-1], "microseconds": best}


def calibrate(run: Timed, turn: float) -> int:
    """Return how many iterations take about a `turn` of seconds; compiles what has to be compiled."""
    count = 1
    run(count)
    while (seconds := min(run(count) for _ in range(5))) < turn / 4 and count < 4_000_000:
        count *= 4
    count = max(1, int(count * turn / seconds))
    run(count)
    return count


def markdown(results: Mapping[str, Any]) -> str:
    """Return the table of docs/explanation/speed.md."""
    m = results["machine"]
    lines = [
        f"Microseconds per iteration, loss recorded at every iteration; {m['cores']} cores of {m['cpu']}, {m['date']}.",
        "",
        "| problem | plain PyTorch | JAX `scan` | `dyn` (way) | x plain | x JAX | wanted |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, row in results["table"].items():
        us, mine = row["microseconds"], row["microseconds"][f"ours {row['chosen']}"]
        cells = [number(us.get(way)) for way in ("plain", "jax")]
        ratios = [number(us[way] / mine) if way in us else "–" for way in ("plain", "jax")]
        least = " and ".join(f"{t:g}" if t else "–" for t in TARGETS[name])
        lines.append(
            f"| {name} | {' | '.join(cells)} | {number(mine)} ({row['chosen']}) | {' | '.join(ratios)} | {least} |"
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
