"""Trains runs in forked children that are killed at random moments, then compares them with
uninterrupted ones.

Called by `tests/runs/test_attacks.py` in a process of its own: `python kill_script.py FOLDER
KILLS [RUN ...]`, all runs by default. A warm parent forks, so that a kill costs milliseconds.
Prints, by kind of run, how many children died in the middle of their work.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from dynamics_cli.config import load_config
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from tests.cases import read
from tests.runs.damage import arrays_of

BASE = read("""
dataset:
  kind: points
  x: [[-1.5], [-1.0], [0.0], [0.25], [2.0]]
  y: [0.7, -0.3, -0.3, 0.4, 0.2]
  append_bias: true
architecture: {kind: two_layer, width: 20}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
""")
CONVOLUTIONAL = read("""
architecture:
  kind: convolutional
  image: [1, 4, 4]
  convolutions: [[3, 3, 1, 1], [4, 2, 2, 0]]
  widths: [6]
initialization: {kind: default_scaled}
""")
"""Images of 4 x 4 pixels and a small network for them."""
CONVOLUTIONAL["dataset"] = {
    "kind": "points",
    "x": np.sin(1 + np.outer(range(5), range(3, 19))).round(3).tolist(),
    "y": BASE["dataset"]["y"],
}
RUNS = read("""
compiled:
  optimizer: {kind: gd, lr: 1e-3, iterations: 400000}
  record: {snapshots: {kind: every, interval: 20000}}
autograd:
  backend: torch
  optimizer: {kind: gd, lr: 1e-3, iterations: 600, loss_scaled: true}
  record: {snapshots: {kind: every, interval: 75}}
sgd:
  optimizer: {kind: sgd, lr: 1e-3, batch_size: 2, epochs: 9000}
  record: {snapshots: {kind: geometric, ratio: 1.3}, loss_every: 200}
adam:
  architecture: {kind: fully_connected, widths: [8, 8]}
  initialization: {kind: default_scaled}
  optimizer: {kind: adam, lr: 1e-3, iterations: 300, batch_size: 3}
  record:
    snapshots: {kind: every, interval: 101}  # an interruption at 100 is one update before a record
    loss_every: 10
    measures: [sharpness, {kind: update, of: cosine_last}]
convolutional:
  optimizer: {kind: adam, lr: 1e-3, iterations: 240, batch_size: 3}
  record: {snapshots: {kind: every, interval: 100}, loss_every: 20}
gradient_flow:
  optimizer: {kind: gradient_flow, until: 400.0, points: 600, rtol: 1e-3}
  record: {snapshots: {kind: every, interval: 100}}
instruments:
  architecture: {kind: fully_connected, widths: [6, 5], activation: tanh}
  initialization: {kind: default_scaled}
  optimizer: {kind: gd, lr: 0.05, iterations: 600, momentum: 0.5, layer_lr: {bias_2: 0.5}}
  record:
    snapshots: {kind: every, interval: 10}
    measures:
      - {kind: sharpness, top: 2}
      - kernel_distance
      - activation_flips
      - {kind: llc, burn_in: 2, draws: 3, batch_size: 2}
      - {kind: singular_values, layer: weight_2, at: {kind: every, interval: 25}}
gan:
  dataset: {kind: mixture, n: 60}
  architecture:
    {kind: gan, noise_dim: 2, generator_widths: [8], discriminator_widths: [8]}
  initialization: {kind: default_scaled}
  loss: {kind: hinge}
  optimizer: {kind: adam, lr: 1e-3, iterations: 240, batch_size: 7}
  record: {snapshots: {kind: every, interval: 60}, loss_every: 10}
""")
RUNS["convolutional"] |= CONVOLUTIONAL


def forked(work, said):
    """Fork a child that does some work, and says in a file why it could not; return its process
    id.
    """
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except BaseException as error:
        said.write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
    finally:
        os._exit(code)


def end_of(pid):
    """Return how a child ended: its exit code, or the negative number of the signal that killed
    it.
    """
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def train(name, directory):
    plan = plan_run(load_config({**BASE, **RUNS[name], "name": name}), directory)
    obtain_run(plan, resume=True)


def survive(name, directory, kills, rng):
    """Kill children until the run is complete, or `kills` of them have died; then finish. Return
    the dead.
    """
    dead = 0
    said = directory.with_suffix(".txt")
    while dead < kills:
        pid = forked(lambda: train(name, directory), said)
        deadline = time.monotonic() + 60 * (
            dead % 2
        )  # every other kill leaves a checkpoint to go on from
        while time.monotonic() < deadline and not (directory / "checkpoint.npz").exists():
            time.sleep(0.001)
        time.sleep(rng.expovariate(1 / 0.05))
        os.kill(pid, signal.SIGKILL)
        ended = end_of(pid)
        if ended == 0:
            return dead
        assert ended == -signal.SIGKILL, (
            f"{name}: child ended with {ended}: {said.read_text(encoding='utf-8')}"
        )
        dead += 1
    train(name, directory)
    return dead


def main():
    folder = Path(sys.argv[1])
    kills = int(sys.argv[2])
    names = sys.argv[3:] or [*RUNS]
    loop.CALL_SECONDS = 0.004
    loop.CHECKPOINT_SECONDS = 0.01
    rng = random.Random(0)
    for name in names:
        train(name, folder / f"{name}-whole")  # compiles what there is to compile
    dead = dict.fromkeys(names, 0)
    for name in names:
        rounds = 0
        while dead[name] < kills:  # a run may be complete before it has been killed so often
            directory = folder / f"{name}-{rounds}"
            dead[name] += survive(name, directory, kills - dead[name], rng)
            assert arrays_of(directory) == arrays_of(folder / f"{name}-whole"), (
                f"{name}: not the same bits"
            )
            rounds += 1
    print(json.dumps(dead))


if __name__ == "__main__":
    main()
