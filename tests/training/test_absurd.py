"""What a run needs is known before anything is allocated: absurd configs are refused at once."""

import resource

import psutil
import pytest

from dynamics_cli.config import load_config
from dynamics_cli.errors import DynError, InputError, RunError
from dynamics_cli.memory import GIB
from dynamics_cli.training.estimate import refuse_if_too_large
from dynamics_cli.training.session import obtain_run, plan_run
from tests.training.kill_script import BASE, CONVOLUTIONAL

GD = {"kind": "gd", "lr": 0.01, "iterations": 100}
LONG = {**GD, "iterations": 10**12}
FLOW = {"kind": "gradient_flow", "until": 1.0}
DEEP = {"initialization": {"kind": "default_scaled"}}
MEMORY = "GiB of memory, this machine has"
RECORDING = "the recording needs about"
STATES = "too many to list"
IMAGES = CONVOLUTIONAL["architecture"]
NO_LOSSES = {"loss_every": 10**9}
ABSURD = {
    "wide": ({"architecture": {"kind": "two_layer", "width": 10**10}}, MEMORY),
    "very deep": (
        {"architecture": {"kind": "residual", "width": 9, "depth": 10**9}, **DEEP},
        "depth",
    ),
    "pixels": (
        {**CONVOLUTIONAL, "architecture": {**IMAGES, "convolutions": [[4, 3, 1, 10**5]]}},
        MEMORY,
    ),
    "vgg": (
        {
            **CONVOLUTIONAL,
            "architecture": {"kind": "vgg16", "image": [1, 4, 4], "width_multiplier": 1e300},
        },
        "large",
    ),
    "losses": ({"optimizer": LONG}, RECORDING),
    "every state": (
        {"optimizer": LONG, "record": {"snapshots": {"kind": "every", "interval": 1}, **NO_LOSSES}},
        STATES,
    ),
    "times": (
        {"optimizer": {**FLOW, "points": 10**12}, "record": {"loss_every": 10**6}},
        "fewer optimizer.points",
    ),
    "epochs": (
        {"optimizer": {"kind": "sgd", "lr": 0.1, "epochs": 2**62}, "record": {"loss_every": 2**62}},
        "more than a run can count",
    ),
    "samples": ({"dataset": {"kind": "sphere_teacher", "n": 10**12, "dim": 3}}, MEMORY),
}


def plan(directory, **sections):
    return plan_run(load_config({**BASE, "optimizer": GD, "name": "toy", **sections}), directory)


@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_config_is_refused_before_anything_is_allocated(tmp_path, name):
    sections, message = ABSURD[name]
    plan(tmp_path / "warm")  # imports are not what is measured
    plan(tmp_path / "warm", **{**CONVOLUTIONAL, "optimizer": GD})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DynError, match=message) as caught:
        plan(tmp_path / "run", **sections)
    assert caught.value.exit_code == 3
    assert (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 2**16
    )  # KiB: 64 MiB; a gigabyte was refused
    assert not list(tmp_path.iterdir())


def test_memory_counts_what_convolutions_give(tmp_path):
    """Full batch, float32: weights four times, all layers' outputs twice, the largest twice, the
    data twice.
    """
    needs = plan(tmp_path, **{**CONVOLUTIONAL, "optimizer": GD}).needs
    first = 3 * 4 * 4
    second = 4 * 2 * 2
    hidden = 6
    output = 1
    weights = (3 * 9 + 3) + (4 * 3 * 4 + 4) + (16 * 6 + 6) + (6 + 1)
    numbers = 4 * weights + 2 * 5 * (first + second + hidden + output) + 2 * 5 * first + 2 * 5 * 16
    assert (needs.parameters, needs.memory_bytes) == (weights, 4 * numbers)


def test_the_machine_decides(tmp_path):
    fits = plan(
        tmp_path, architecture={"kind": "two_layer", "width": 10**6}, record={"parameters": "none"}
    )
    available = psutil.virtual_memory().total
    assert 0.05 < fits.needs.memory_bytes / GIB < 1 < available / GIB
    refuse_if_too_large(fits.problem, fits.needs, available_bytes=fits.needs.memory_bytes)
    with pytest.raises(InputError, match="3e\\+06 weights; take a smaller width or batch"):
        refuse_if_too_large(fits.problem, fits.needs, available_bytes=fits.needs.memory_bytes - 1)


@pytest.mark.parametrize(
    "error", [MemoryError("Unable to allocate 9 TiB"), RuntimeError("can't allocate memory")]
)
def test_memory_that_runs_out_is_told_in_one_message(tmp_path, monkeypatch, error):
    from dynamics_cli.training import course

    def build(*_):
        raise error

    config = plan(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(course, "build_stepper", build)
        with pytest.raises(RunError, match=f"the run failed at iteration 0: .*{error}") as caught:
            obtain_run(config)
    assert caught.value.exit_code == 7
    assert obtain_run(config, resume=True).run.status == "complete"
