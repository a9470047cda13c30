"""Make the corpus of this version's files: `python tests/corpus/make.py NAME`.

Writes `tests/corpus/NAME/`: runs of each status and stepper, replicas, sweeps, a recorded loop, a
figure with its seeds and audit, each as small as it can be, and `made.json`, which says by which
commit. A corpus is never made again: what was once written is read for ever (`test_corpus.py`).
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import dynamics_cli as dyn
from dynamics_cli.errors import DynError

HERE = Path(__file__).parent

BASE = {
    "name": "corpus",
    "dataset": {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0], "append_bias": True},
    "architecture": {"kind": "two_layer", "width": 3},
    "initialization": {"kind": "balanced", "scale": 0.1},
    "loss": {"kind": "mse"},
    "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 8},
    "record": {
        "snapshots": {"kind": "list", "include": [0, 2, 8]},
        "measures": ["sharpness", "train_loss"],
    },
}
FIGURE = "boursier2022-fig2"
FLOW = {
    "dtype": "float64",
    "optimizer": {"kind": "gradient_flow", "until": 0.5, "points": 8, "rtol": 1e-5},
}
TORCH = {
    "backend": "torch",
    "dtype": "float64",
    "architecture": {"kind": "fully_connected", "widths": [3], "activation": "tanh"},
    "initialization": {"kind": "xavier"},
    "optimizer": {"kind": "adam", "lr": 0.01, "iterations": 8, "batch_size": 1},
}
DIVERGED = {"optimizer": {"kind": "gd", "lr": 1e30, "iterations": 8}}


def dyn_command(*arguments, **environment):
    """Run `dyn` in a process of its own, as a user does."""
    subprocess.run(
        [sys.executable, "-m", "dynamics_cli", *arguments],
        check=True,
        env=os.environ | environment,
    )


def make_runs(root):
    """Make runs of the formats that steppers write."""
    for name, changed in {
        "complete": {},
        "flow": FLOW,
        "torch": TORCH,
        "diverged": DIVERGED,
    }.items():
        dyn.train(BASE | changed, out=root / name)


def make_interrupted(root):
    """Make a run that was stopped on the way, with its checkpoint."""

    def stop(*_):
        os.kill(os.getpid(), signal.SIGINT)

    config = BASE | {
        "optimizer": {"kind": "gd", "lr": 1e-9, "iterations": 2_000_000_000},
        "record": {
            "snapshots": {"kind": "list", "include": [0, 2]},
            "loss_every": 1_000_000_000,
        },
    }
    with contextlib.suppress(DynError):  # that it was interrupted
        dyn.train(config, out=root / "interrupted", progress=stop)


def make_recorded(root):
    """Make the run of a loop that is not the program's."""
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    x = torch.tensor([[-0.5, 1.0], [2.0, 1.0]])
    y = torch.tensor([[-1.0], [1.0]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    recorder = dyn.Recorder(
        root / "recorded",
        model,
        x,
        y,
        loss="mse",
        measures=["sharpness"],
        every=2,
        parameters="all",
    )
    with recorder:
        for _ in range(8):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)


def main(name):
    """Make the corpus."""
    target = HERE / name
    if target.exists():
        sys.exit(f"{target} is there already; a corpus is made once")
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / name
        root.mkdir()
        make_runs(root)
        make_interrupted(root)
        make_recorded(root)
        dyn.sweep(BASE, {"initialization.scale": [0.1, 0.2]}, seeds=2, out=root / "sweep")
        dyn_command(
            "reproduce",
            FIGURE,
            "--out",
            str(root / "figures"),
            "--format",
            "png",
            DYN_OUTPUTS=folder + "/o",
        )
        dyn_command("audit", FIGURE, "--out", str(root / "figures"), DYN_OUTPUTS=folder + "/o")
        made = {"commit": commit.stdout.strip(), "version": dyn.__version__}
        (root / "made.json").write_text(json.dumps(made, indent=2) + "\n")
        shutil.copytree(root, target, ignore=shutil.ignore_patterns(".lock"))


if __name__ == "__main__":
    main(sys.argv[1])
