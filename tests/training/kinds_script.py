"""Kills a small run of every kind twice, goes on with it, and compares it with one that was left
alone.

Called by `test_interruption.py` in a process of its own: `python kinds_script.py FOLDER
[SECTION.KIND ...]`, all kinds by default. The configs are the examples of the kinds, shortened;
children are forked and kill themselves. Prints what came of each kind: `same`, or why there is
nothing to compare.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
from torch.optim import adamw  # noqa: F401 - what children would have to load each

from dynamics_cli.config import load_config
from dynamics_cli.config.describe import example
from dynamics_cli.kinds import all_kinds, get_kind
from dynamics_cli.kinds.registry import SECTIONS
from dynamics_cli.runs.run import Run
from dynamics_cli.runs.store import files
from dynamics_cli.training import loop
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.steppers import autograd, compiled, flow  # noqa: F401
from tests.runs.damage import arrays_of
from tests.training.kill_script import end_of, forked

STATES = 24
CHUNK = 5
SHORT = {"epochs": 12, "points": STATES}
"""Lengths of examples that have no iterations."""
VARIANTS = {
    "optimizer.gd with momentum": ("optimizer.gd", ["optimizer.momentum=0.9"]),
    "optimizer.sgd with momentum": (
        "optimizer.sgd",
        ["optimizer.momentum=0.9", "optimizer.weight_decay=0.1"],
    ),
    "optimizer.rmsprop with momentum": ("optimizer.rmsprop", ["optimizer.momentum=0.9"]),
    "dataset.teacher, fresh": (
        "dataset.teacher",
        ["optimizer={kind: sgd, lr: 0.01, samples: fresh, iterations: 24}"],
    ),
    "dataset.linear_map, fresh": (
        "dataset.linear_map",
        [
            "dataset.n=9",
            "optimizer={kind: adam, lr: 0.01, samples: fresh, batch_size: 5, iterations: 24}",
        ],
    ),
}
"""Name -> the kind and what is changed of its example."""


def every_kind():
    """Return the names of all kinds that a run is made of, and of the variants."""
    return [
        f"{section}.{name}"
        for section in SECTIONS
        if section != "theory"
        for name in all_kinds(section)
    ] + [*VARIANTS]


def config_of(name, folder):
    """Return the example of a kind, shortened to some states."""
    of, changes = VARIANTS.get(name, (name, []))
    section, _, kind = of.partition(".")
    file = folder / "example.yaml"
    file.write_text(example(get_kind(section, kind)), encoding="utf-8")
    optimizer = load_config(file, changes).optimizer
    if not any(change.startswith("optimizer={") for change in changes):
        lengths = [f"{key}={n}" for key, n in SHORT.items() if getattr(optimizer, key, None)]
        changes = [*changes, f"optimizer.{(lengths or [f'iterations={STATES}'])[0]}"]
    if section != "snapshots":
        changes = [*changes, "record.snapshots={kind: every, interval: 2}"]
    return load_config(file, [*changes, "name=kind"])


def killed_at(iteration):
    def progress(reached, loss):
        if reached >= iteration:
            os.kill(os.getpid(), signal.SIGKILL)

    return progress


def outcome(name, folder):
    """Train, kill and go on; return `same`, or what is different."""
    folder.mkdir(parents=True)
    said = folder / "said.txt"
    killed = folder / "killed"
    (folder / "data.csv").write_text("1.0,2.0,0.5\n0.3,-1.0,0.2\n-0.5,0.1,-0.7\n", encoding="utf-8")
    np.savetxt(folder / "series.csv", np.sin(np.arange(200) / 5))
    (folder / "book.txt").write_text("the cat sat on the mat. " * 100, encoding="utf-8")
    np.savez(folder / "weights.npz", hidden_weight=np.eye(60, 2), output_weight=np.ones(60))
    config = config_of(name, folder)

    def trained(directory, progress=None):
        # this process itself never starts threads
        return end_of(
            forked(
                lambda: obtain_run(plan_run(config, directory), resume=True, progress=progress),
                said,
            )
        )

    if trained(folder / "whole"):
        text = said.read_text(encoding="utf-8")
        return f"no data: {text}" if text.startswith("DataMissingError") else text
    last = Run(folder / "whole").iterations
    for iteration in (last // 3, 2 * last // 3):
        ended = trained(killed, killed_at(iteration))
        if ended != -signal.SIGKILL:
            return f"the child that was to die at iteration {iteration} ended with {ended}"
    if trained(killed):
        return said.read_text(encoding="utf-8")
    different = [
        key
        for key, found in arrays_of(folder / "whole").items()
        if arrays_of(killed).get(key) != found
    ]
    return f"different: {', '.join(different)}" if different else "same"


def main():
    folder = Path(sys.argv[1])
    names = sys.argv[2:] or every_kind()
    loop._next_chunk = lambda chunk, done, seconds: CHUNK
    loop.CHECKPOINT_SECONDS = -1.0  # after every chunk
    files.sync = files.sync_directory = lambda handle: (
        None
    )  # a kill leaves what the system has taken
    print(
        json.dumps({name: outcome(name, folder / str(number)) for number, name in enumerate(names)})
    )


if __name__ == "__main__":
    main()
