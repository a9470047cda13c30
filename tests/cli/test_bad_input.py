"""The mistakes of a user, each with its message and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamics_cli.config.text import listing
from dynamics_cli.kinds.registry import general_kinds
from dynamics_cli.runs.run import Run

from .conftest import CONFIG, Dyn

BAD = (
    CONFIG.replace("width: 8", "width: 0, wdth: 9")
    .replace("lr: 0.01", "lr: -1")
    .replace("kind: mse", "kind: msee")
)
PYTHON = CONFIG.replace(
    "loss: {kind: mse}", 'loss: !!python/object/apply:os.system ["touch hacked"]'
)
FILE = ["--set", "dataset={kind: file, path: data.csv}"]
NO_CONFIG = "there is no such file, nor a bundled config of this name"
NO_PLACE = "give --out a place that can be written"
UNKNOWN = "--set: record.measures[0]: unknown kind 'weight_nrm'; allowed are "
# contents of the files, arguments of `dyn train`, exit code, the start of the message or all of it
MISTAKES = [
    (
        BAD,
        ["bad.yaml", "--set", "dataset.y=[1.0]"],
        3,
        (
            "bad.yaml:3: architecture.width: must be >= 1, not 0\nbad.yaml:3: architecture.wdth:"
            " unknown key of kind 'two_layer'; allowed are kind, output_scale, centered, train,"
            " activation, slope, width, outputs, train_output (did you mean 'width'?)\nbad.yaml:5:"
            f" loss.kind: unknown kind 'msee'; allowed are {listing([*general_kinds('loss')])} (did"
            " you mean 'mse'?); `dyn --with PATH`, or `dyn.use(PATH)` in Python, loads"
            " others\nbad.yaml:6: optimizer.lr: must be > 0, not -1\n--set: dataset.y: has 1"
            " label, but x has 2 samples; there must be one label per sample\n"
        ),
    ),
    (
        PYTHON,
        ["bad.yaml"],
        3,
        "bad.yaml:5: loss: the YAML tag '!!python/object/apply:os.system' is not allowed: ",
    ),
    (
        "",
        ["toy.yaml", "--set", "dataset={kind: file, path: no.csv}"],
        3,
        "--set: dataset.path: there is no file {place}/no.csv\n",
    ),
    (
        "1,2\n3,four\n",
        ["toy.yaml", *FILE],
        3,
        "Error: {place}/data.csv:2: column 2 holds 'four', not a number\n",
    ),
    (
        "PK\3\4 no",
        ["toy.yaml", "--set", "dataset={kind: file, path: bad.npz}"],
        3,
        "Error: {place}/bad.npz: not a readable .npz file of plain arrays (",
    ),
    ("", ["toy.yaml", "--seed", 2**63], 3, f"--seed: must be < 9223372036854775808, not {2**63}\n"),
    ("", ["toy.yaml", "--set", "backend=autgrad"], 3, "--set: backend: must be "),
    ("", ["no.yaml"], 3, f"no.yaml: {NO_CONFIG}\n"),
    ("", ["tooy.yaml"], 3, f"tooy.yaml: {NO_CONFIG} (did you mean 'toy.yaml'?)\n"),
    (
        "",
        ["boursier2022/orthogonl"],
        3,
        f"boursier2022/orthogonl: {NO_CONFIG} (did you mean 'boursier2022/orthogonal'?)\n",
    ),
    ("", ["."], 3, ".: is a directory, not a config file\n"),
    (
        "",
        ["toy.yaml", "--set", "record.limit_gib=0.000001"],
        3,
        "Error: the recording needs about 0.0 GiB, record.limit_gib is 1e-06: record fewer of ",
    ),
    ("", ["toy.yaml", "--set", "record.measures=[weight_nrm]"], 3, UNKNOWN),
    (
        "",
        ["toy.yaml", "--set", "record.parameters=[bias]"],
        3,
        (
            "Error: record.parameters: no parameter 'bias'; this network has hidden_weight,"
            " output_weight\n"
        ),
    ),
    (
        "",
        ["toy.yaml", "--out", "toy.yaml"],
        2,
        "Error: toy.yaml is a file, not a directory; give --out another name\n",
    ),
    (
        "",
        ["toy.yaml", "--out", "toy.yaml/run"],
        7,
        f"Error: the run directory toy.yaml/run cannot be made (Not a directory); {NO_PLACE}\n",
    ),
    (
        "",
        ["toy.yaml", "--out", "/proc/no/run"],
        7,
        (
            "Error: the run directory /proc/no/run cannot be made (No such file or directory);"
            f" {NO_PLACE}\n"
        ),
    ),
]


@pytest.mark.parametrize(("text", "arguments", "code", "told"), MISTAKES)
def test_mistakes(
    text: str, arguments: list[object], code: int, told: str, dyn: Dyn, place: Path
) -> None:
    for name in ("bad.yaml", "data.csv", "bad.npz"):
        (place / name).write_text(text)
    before = sorted(place.iterdir())
    answer = dyn("train", *arguments)
    told = "".join(
        f"Error: {line}"
        for line in told.replace("{place}", str(place)).removeprefix("Error: ").splitlines(True)
    )
    assert (answer.code, answer.out) == (code, "")
    assert answer.err == told if told.endswith("\n") else answer.err.startswith(told)
    assert answer.err.count("\n") == max(1, told.count("\n"))
    assert sorted(place.iterdir()) == before  # no code of the config ran, and nothing was begun


@pytest.mark.parametrize(
    ("width", "size", "weights"),
    # 3e12 weights, gradients, update and margin in float32: 4 x 3e12 + 4 x 2 x 1e12 numbers of 4
    # bytes
    [(10**12, "74505.8", "3e+12"), (2**63 - 1, "687194767360.0", "2.77e+19")],
)
def test_a_width_that_cannot_fit_is_refused_with_the_estimate(
    width: int, size: str, weights: str, dyn: Dyn, place: Path
) -> None:
    answer = dyn(
        "train",
        "toy.yaml",
        "--set",
        f"architecture.width={width}",
        "--set",
        "record.parameters=none",
    )
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(
        f"Error: the run needs about {size} GiB of memory, this machine has "
    )
    assert answer.err.endswith(
        f" GiB free: the network has {weights} weights; take a smaller width or batch\n"
    )
    assert not (place / "outputs").exists()


def test_cuda_asked_for_but_absent(dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer = dyn("train", "toy.yaml", "--device", "cuda")
    assert (answer.code, answer.out) == (3, "")
    told = "device: cuda is asked for, but PyTorch finds no CUDA device; use --device cpu or auto"
    assert answer.err == f"Error: {told}\n"


@pytest.mark.parametrize(
    ("out", "way"), [("here", "give --out"), ("outputs/here", "set DYN_OUTPUTS to")]
)
def test_an_output_directory_that_may_not_be_written(
    out: str, way: str, dyn: Dyn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the refusal comes from a stand-in for the operating system."""

    def mkdir(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    answer = dyn("train", "toy.yaml", "--out", out)
    told = (
        f"the run directory {out} cannot be made (Permission denied); {way} a place that can be"
        " written"
    )
    assert (answer.code, answer.err) == (7, f"Error: {told}\n")


@pytest.mark.parametrize(
    ("backend", "lr", "dim"), [("torch", 1e38, 3), ("compiled", 1e300, 3), ("compiled", 1e300, 6)]
)
def test_no_warning_of_a_step_that_is_too_large(
    backend: str, lr: float, dim: int, dyn: Dyn
) -> None:
    """Warnings are errors here; numbers beyond those of the precision are told of in words
    alone.
    """
    huge = [
        "--set",
        f"optimizer.lr={lr}",
        "--set",
        f"dataset={{kind: sphere_teacher, n: 2, dim: {dim}}}",
    ]
    answer = dyn("train", "toy.yaml", *huge, "--set", f"backend={backend}", "--quiet")
    assert answer.code == 7
    assert answer.err.startswith("Error: the loss is not finite at iteration ")


DIVERGING = ["--set", "architecture.activation=linear", "--set", "optimizer.lr=10"]


def test_a_diverging_loss_is_told_of_each_time(dyn: Dyn) -> None:
    """tests/training/test_loop.py: everything up to it is kept."""
    for options in (["--quiet"], ["--json"], ["--json"]):
        answer = dyn("train", "toy.yaml", *DIVERGING, "--out", "here", *options)
        told = (
            f"the loss is not finite at iteration {Run('here').iterations}; everything up to it is"
            " kept. Try a smaller step, e.g. --set optimizer.lr=1"
        )
        assert (answer.code, answer.err) == (7, f"Error: {told}\n")
        if options == ["--quiet"]:
            assert "status      diverged\n" in answer.out
            assert "final loss  nan\n" in answer.out
        else:
            assert (answer.json["status"], answer.json["final_loss"]) == ("diverged", None)
    assert f"\nmessage: {told}\n" in dyn("show", "here").out
    assert dyn("show", "here", "--json").json["messages"] == [told]
