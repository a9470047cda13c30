"""The mistakes of a user, each with its message and its exit code."""

from pathlib import Path

import pytest

from dynamics_cli.runs.run import Run


@pytest.mark.parametrize(
    ("width", "size", "weights"),
    # 3e12 weights, gradients, update and margin in float32: 4 x 3e12 + 4 x 2 x 1e12 numbers of 4
    # bytes
    [(10**12, "74505.8", "3e+12"), (2**63 - 1, "687194767360.0", "2.77e+19")],
)
def test_a_width_that_cannot_fit_is_refused_with_the_estimate(width, size, weights, dyn, place):
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


def test_cuda_asked_for_but_absent(dyn, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer = dyn("train", "toy.yaml", "--device", "cuda")
    assert (answer.code, answer.out) == (3, "")
    told = "device: cuda is asked for, but PyTorch finds no CUDA device; use --device cpu or auto"
    assert answer.err == f"Error: {told}\n"


@pytest.mark.parametrize(
    ("out", "way"), [("here", "give --out"), ("outputs/here", "set DYN_OUTPUTS to")]
)
def test_an_output_directory_that_may_not_be_written(out, way, dyn, monkeypatch):
    """Root may write everywhere, so the refusal comes from a stand-in for the operating system."""

    def mkdir(self, *_, **__):
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
def test_no_warning_of_a_step_that_is_too_large(backend, lr, dim, dyn):
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


def test_a_diverging_loss_is_told_of_each_time(dyn):
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
