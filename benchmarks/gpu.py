"""Checks and timings of a device in one command, run by hand: `PYTHONPATH=. python
benchmarks/gpu.py --out DIR`.

DIR/gpu.json is written anew after every row, so that a cut leaves what was measured. Each section
has its share of `--minutes`; rows for which no time is left are listed as left out. With `--device
cpu` problems are smaller and the JSON says `"small": true`: torch's form of updates, which a device
takes, then runs on the CPU. The exit code is 1 if a check failed.

- tests: `pytest -m gpu`.
- equality: losses of every architecture, loss and optimizer with those of the CPU.
- bits: chunks and resumption, on one device, twice.
- memory: the most bytes that R networks take.
- times: R replicas side by side and one by one, and JAX's `vmap` in `lax.scan`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from compare import calibrate, machine, number
from peers import HAS_JAX, Timed, describe, expressible
from problems import DEFAULT_MNIST, PROBLEMS

from dynamics_cli.config import load_config
from dynamics_cli.config.describe import example
from dynamics_cli.kinds import Problem, all_kinds
from dynamics_cli.training.backends import Choice, build_stepper, choose, multiply_adds
from dynamics_cli.training.many.replicas import batch_key
from dynamics_cli.training.problem import build_problem
from dynamics_cli.training.steppers.autograd import AutogradStepper
from dynamics_cli.training.steppers.base import Stepper

if HAS_JAX:
    import jax
    from jax_peer import Described, JaxRun

ROOT = Path(__file__).resolve().parents[1]
SHARES = {
    "tests": 0.2,
    "times": 0.35,
    "equality": 0.25,
    "bits": 0.15,
    "memory": 0.05,
}
"""Sections in their order, each with its share of the time."""
TOLERANCES = {"float32": 1e-4, "float64": 1e-9}
"""Relative to the loss of a state."""
FLOORS = {"float32": 1e-5, "float64": 1e-12}
"""Share of the first loss below which a loss is compared with this share: of smaller ones rounding
leaves fewer digits.
"""
HEAVY = 2**24
"""Multiply-adds of an iteration beyond which a tenth of the iterations is compared."""
TIMED = ("orthogonal", "tanh", "relu_adam", "relu_sgd", "cohen2021/classes", "relu_large", "wide")
FAILURES = (RuntimeError, NotImplementedError, TypeError, ValueError, AssertionError)
"""What a row may raise, of torch, JAX or `dyn`; it is written down, and the others go on."""


class Results:
    """What was measured, written after every row."""

    def __init__(self, file: Path, about: dict[str, Any], minutes: float) -> None:
        self._file = file
        self._began = time.monotonic()
        self._seconds = 60 * minutes
        self._shared = 0.0
        self.found: dict[str, Any] = {**about, "sections": {}}

    def run(self, name: str, rows: Iterator[tuple[str, Callable[[], dict[str, Any]]]]) -> None:
        """Measure the rows of a section while it has time."""
        self._shared += SHARES[name] * self._seconds
        section: dict[str, Any] = {"rows": {}, "left_out": []}
        self.found["sections"][name] = section
        for row, measured in rows:
            if time.monotonic() - self._began > self._shared:
                section["left_out"].append(row)
                continue
            try:
                section["rows"][row] = measured()
            except FAILURES as error:
                told = traceback.format_exc(limit=-4)
                section["rows"][row] = {"ok": False, "error": repr(error)[:500], "trace": told}
            print(f"{name} {row}: {json.dumps(plain(section['rows'][row]))[:200]}", flush=True)
            self.write()
        section["seconds"] = time.monotonic() - self._began
        self.write()

    def left(self, name: str) -> float:
        """Return the seconds that a section may take from now on, before it runs."""
        return self._shared + SHARES[name] * self._seconds - (time.monotonic() - self._began)

    def write(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(plain(self.found), indent=1) + "\n")
        part.replace(self._file)

    def failed(self) -> list[str]:
        return [
            f"{name} {row}"
            for name, section in self.found["sections"].items()
            for row, value in section["rows"].items()
            if value.get("ok") is False
        ]


def plain(value: Any) -> Any:
    """Return a value for JSON, which has no infinite numbers."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="for gpu.json")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--minutes", type=float, default=7.5, help="at most, about")
    parser.add_argument(
        "--only", choices=list(SHARES), action="append", help="only these sections; repeatable"
    )
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("PyTorch finds no CUDA device; --device cpu runs smaller problems on the CPU")
    # before JAX takes a device, of whose memory it would take the most
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    device: str = options.device
    options.out.mkdir(parents=True, exist_ok=True)
    results = Results(options.out / "gpu.json", about(device), options.minutes)
    sections: dict[str, Callable[[], Iterator[Any]]] = {
        "tests": lambda: iter([("pytest -m gpu", partial(gpu_tests, results.left("tests")))]),
        "times": partial(times, device),
        "equality": partial(equality, device),
        "bits": partial(bits, device),
        "memory": partial(memory, device),
    }
    for name, rows in sections.items():
        if not options.only or name in options.only:
            results.run(name, rows())
    print(markdown(results.found))
    failed = results.failed()
    if failed:
        print(f"failed: {', '.join(failed)}")
        sys.exit(1)


def about(device: str) -> dict[str, Any]:
    """Return what the numbers were measured with."""
    found = {
        "device": "cpu",
        "small": device == "cpu",
        "machine": machine(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "jax": jax.__version__ if HAS_JAX else None,
        "jax_devices": [str(one) for one in jax.devices()] if HAS_JAX else [],
    }
    if device == "cuda":
        found["device"] = torch.cuda.get_device_name()
        found["cuda"] = torch.version.cuda
        found["cudnn"] = torch.backends.cudnn.version()
        found["bytes"] = torch.cuda.get_device_properties(0).total_memory
    return found


def gpu_tests(seconds: float) -> dict[str, Any]:
    """Run the tests that need a device, in a process of their own.

    A warning of another version of a library is no failure here.
    """
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/training/test_gpu.py"]
    command += ["-o", "addopts=--import-mode=importlib", "-rs", "--tb=short"]
    command += ["-W", "default", "-p", "no:cacheprovider"]
    try:
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=max(10, seconds), check=False
        )
    except subprocess.TimeoutExpired as error:
        return {"ok": None, "error": f"not done after {error.timeout:.0f} s"}
    counts = {
        what: int(count)
        for count, what in re.findall(r"(\d+) (passed|failed|skipped|error)", ended.stdout)
    }
    ok = ended.returncode == 0 if counts.get("passed") or ended.returncode else None
    return {"ok": ok, **counts, "output": (ended.stdout + ended.stderr)[-6000:]}


# --- problems


def examples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the example of every bundled architecture, loss and optimizer, as `dyn explain` shows
    it.
    """
    for section in ("architecture", "loss", "optimizer"):
        for kind, cls in all_kinds(section).items():
            yield f"{section}.{kind}", yaml.safe_load(example(cls))


def built(config: dict[str, Any], device: str, **changes: Any) -> Problem:
    """Return the problem of an example, small on a CPU."""
    shorter = dict(config)
    if device == "cpu" and config["dataset"].get("per_class"):
        shorter["dataset"] = {**config["dataset"], "per_class": 2}
    return build_problem(load_config({**shorter, **changes}))


def stepper(problems: Sequence[Problem], device: str) -> Any:
    """Return torch's stepper as it is on a device: updates by torch's form of the formula."""
    AutogradStepper.compiles = False
    try:
        return build_stepper(problems, Choice(device, "torch"))
    finally:
        AutogradStepper.compiles = True


# --- checks


def equality(device: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for dtype in TOLERANCES:
        for name, config in examples():
            yield f"{name} {dtype}", partial(compared, config, dtype, device)


def compared(config: dict[str, Any], dtype: str, device: str) -> dict[str, Any]:
    """Compare losses with those of the stepper that the CPU's users get."""
    problem = built(config, device, dtype=dtype)
    count = 100 if device == "cpu" else 1000
    if multiply_adds(problem) > HEAVY:
        count //= 10
    # batch normalisation amplifies rounding within some tens of updates
    if problem.config.optimizer.is_flow or problem.has_modes:
        count = 20
    count = min(count, problem.iterations)
    on_cpu = build_problem(problem.config.model_copy(update={"device": "cpu"}))
    began = time.perf_counter()
    found = path(stepper([problem], device), count)
    seconds = time.perf_counter() - began
    expected = path(build_stepper([on_cpu], choose([on_cpu])), count)
    most = apart(found, expected, FLOORS[dtype])
    result: dict[str, Any] = {
        "ok": len(found) == len(expected) and most <= TOLERANCES[dtype],
        "iterations": count,
        "most": most,
        "first": float(expected[0]),
        "last": float(expected[-1]),
        "last_found": float(found[-1]),
        "seconds": seconds,
    }
    if device == "cuda":  # how far rounding alone takes two ways on the CPU
        result["most_on_the_cpu"] = apart(
            path(stepper([on_cpu], "cpu"), count), expected, FLOORS[dtype]
        )
    return result


def apart(found: np.ndarray, expected: np.ndarray, floor: float) -> float:
    """Return the largest relative difference of losses, of states that both have."""
    size = min(len(found), len(expected))
    scale = np.maximum(np.abs(expected[:size]), floor * abs(expected[0]))
    return float((np.abs(found[:size] - expected[:size]) / scale).max())


def path(stepper: Stepper, count: int) -> np.ndarray:
    """Return the losses of ten parts of a run: where updates have none, those of the states
    between two parts.
    """
    losses = [stepper.look()]
    for part in np.diff(np.linspace(0, count, 11).astype(int)):
        losses.append(stepper.advance(int(part)))
        if not stepper.full_batch:
            losses.append(stepper.look())
    return np.concatenate(losses)


def bits(device: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for name, config in examples():
        yield name, partial(same_bits, config, device)
    for name, config in examples():
        yield f"{name}, replicas", partial(same_bits, config, device, count=3)


def same_bits(config: dict[str, Any], device: str, count: int = 1) -> dict[str, Any]:
    """Compare a run of 24 updates with itself, with one in parts, and with one that goes on from
    checkpoints.
    """
    problems = [built(config, device, backend="torch", seed=seed) for seed in range(count)]
    if count > 1 and batch_key(problems[0]) is None:
        return {"ok": None, "why": "networks of this kind are trained one by one"}
    make = partial(stepper, problems, device)
    whole = bits_of(make, [24])
    answers = {
        "again": bits_of(make, [24]) == whole,
        "in_parts": bits_of(make, [1, 2, 12, 9]) == whole,
        "resumed": bits_of(make, [7, 8, 9], resumed=True) == whole,
    }
    return {"ok": all(answers.values()), **answers}


def bits_of(
    make: Callable[[], Stepper], parts: Sequence[int], *, resumed: bool = False
) -> list[bytes]:
    """Return the bytes of losses and weights after parts of a run, each by a stepper of its own
    where asked.
    """
    current = make()
    losses = []
    for part in parts:
        losses.append(current.advance(part).ravel())
        if resumed:
            state = current.state_dict()
            current = make()
            current.load_state_dict(state)
    weights = [value.tobytes() for value in current.parameters().values()]
    return [np.concatenate(losses).tobytes(), current.look().tobytes(), *weights]


def memory(device: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    if device == "cpu":
        yield "any", lambda: {"ok": None, "why": "torch counts the bytes of devices alone"}
        return
    for name in ("tanh", "relu_adam", "relu_large"):
        for count in (1, 64, 1024):
            yield f"{name}, {count}", partial(bytes_of, name, count)


def bytes_of(name: str, count: int) -> dict[str, Any]:
    """Return the most bytes on the device while `count` networks do ten updates."""
    problems = replicas(name, count)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    stepper(problems, "cuda").advance(10)
    most = torch.cuda.max_memory_allocated() - before
    weights = problems[0].parameter_count * problems[0].dtype.itemsize
    return {"bytes": most, "weights": weights, "times_weights": most / (weights * count)}


# --- times


def replicas(name: str, count: int) -> list[Problem]:
    """Return networks of a problem of the table, of consecutive seeds on the same samples."""
    first = PROBLEMS[name](DEFAULT_MNIST)
    configs = [first.config.model_copy(update={"seed": seed}) for seed in range(count)]
    return [build_problem(config, first.dataset) for config in configs]


def counts(device: str) -> tuple[int, ...]:
    return (1, 8) if device == "cpu" else (1, 64, 1024)


def times(device: str) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for name in TIMED[:3] if device == "cpu" else TIMED:
        for count in counts(device):
            if count * (name in ("relu_large", "wide")) <= 64:
                yield f"{name}, {count}", partial(timed, name, count, device)


def timed(name: str, count: int, device: str) -> dict[str, Any]:
    """Return microseconds per iteration of `count` networks together."""
    problems = replicas(name, count)
    ways: dict[str, Timed] = {"torch": run_of(stepper(problems, device), device, problems[0])}
    if count == 1:
        ways["cpu"] = run_of(build_stepper(problems, choose(problems)), "cpu", problems[0])
    us = {way: fastest(run) for way, run in ways.items()}
    if HAS_JAX and expressible(problems[0]):
        us["jax"] = jax_together(problems)
    return {"microseconds": us, "networks": count}


def run_of(made: Stepper, device: str, problem: Problem) -> Timed:
    """Return what trains from the start for a number of iterations, and the seconds."""
    start = made.state_dict()

    def run(count: int) -> float:
        made.load_state_dict(start)
        began = time.perf_counter()
        made.advance(min(count, problem.iterations))
        if device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - began) * count / min(count, problem.iterations)

    return run


def fastest(run: Timed, turn: float = 0.2) -> float:
    """Return microseconds per iteration in the fastest of three turns."""
    count = calibrate(run, turn)
    return min(run(count) / count * 1e6 for _ in range(3))


def jax_together(problems: Sequence[Problem]) -> float:
    """Return microseconds per iteration of `jax.lax.scan` over `jax.vmap` of an update, in full
    precision, in the fastest of three turns.

    All networks have the same samples, and batches.
    """
    jax.config.update("jax_default_matmul_precision", "highest")
    runs = [JaxRun(Described(*describe(problem))) for problem in problems]
    start = jax.tree.map(
        lambda *parts: jax.numpy.stack(parts), *[(run.weights, run.memory) for run in runs]
    )
    first = runs[0]

    def one(carry: Any, t: Any) -> Any:
        weights, held = carry
        loss, slopes = first._gradient(weights, t)
        return first._update(weights, slopes, held, t, loss), loss

    # a scan is compiled for its length, which takes seconds
    length = 1000
    if len(problems) * multiply_adds(problems[0]) > HEAVY:
        length = 100
    step = jax.vmap(one, in_axes=(0, None))
    scanned = jax.jit(lambda state: jax.lax.scan(step, state, jax.numpy.arange(length)))
    jax.block_until_ready(scanned(start))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        jax.block_until_ready(scanned(start))
        seconds.append(time.perf_counter() - began)
    return min(seconds) / length * 1e6


def markdown(found: dict[str, Any]) -> str:
    """Return the tables of times, and what each check came to."""
    small = "; smaller problems" if found["small"] else ""
    lines = [
        f"{found['device']}, PyTorch {found['torch']}, JAX {found['jax']} on"
        f" {', '.join(found['jax_devices']) or 'none'}, {found['machine']['date']}{small}",
        "",
    ]
    for name, section in found["sections"].items():
        answers = [value.get("ok") for value in section["rows"].values()]
        told = f"{answers.count(True)} right, {answers.count(False)} wrong"
        lines.append(f"{name}: {len(answers)} rows, {told}, {len(section['left_out'])} left out")
    rows = found["sections"].get("times", {"rows": {}})["rows"]
    rows = {row: value for row, value in rows.items() if "microseconds" in value}
    alone = {row.partition(",")[0]: value for row, value in rows.items() if value["networks"] == 1}
    lines += [
        "",
        "Microseconds per iteration of all networks; x: times as fast as one by one, as JAX.",
        "",
        "| problem, networks | torch | x one by one | JAX | x JAX | on the CPU, one network |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row, value in rows.items():
        us = value["microseconds"]
        one = alone.get(row.partition(",")[0], value)["microseconds"]
        peer = us.get("jax")
        cells = [us["torch"], one["torch"] * value["networks"] / us["torch"], peer]
        cells += [None if peer is None else peer / us["torch"], one.get("cpu")]
        lines.append(f"| {row} | {' | '.join(map(number, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
