"""The mistakes of a user, each with its message and its exit code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynamics_cli.runs import load_run

from .conftest import CONFIG, Dyn

ALLOWED = "name, seed, device, backend, dtype, dataset, architecture, initialization, loss, optimizer, record, sweep"


def changed(old: str, new: str) -> str:
    assert old in CONFIG
    return CONFIG.replace(old, new)


CONFIGS = {
    "unknown key": (
        changed("width: 8", "width: 8, wdth: 9"),
        "bad.yaml:3: architecture.wdth: unknown key of kind 'two_layer'; allowed are kind, output_scale, centered, "
        "train, activation, slope, width, outputs, train_output (did you mean 'width'?)",
    ),
    "unknown section": (CONFIG + "foo: 1\n", f"bad.yaml:7: foo: unknown key; allowed are {ALLOWED}"),
    "wrong type": (
        changed("width: 8", 'width: "ten"'),
        "bad.yaml:3: architecture.width: must be an integer >= 1, not the text 'ten'",
    ),
    "width 0": (changed("width: 8", "width: 0"), "bad.yaml:3: architecture.width: must be an integer >= 1, not 0"),
    "negative step": (changed("lr: 0.01", "lr: -0.01"), "bad.yaml:6: optimizer.lr: must be a number > 0, not -0.01"),
    "iterations 0": (
        changed("iterations: 30", "iterations: 0"),
        "bad.yaml:6: optimizer.iterations: must be an integer >= 1, not 0",
    ),
    "unknown kind": (
        changed("two_layer", "two_layr"),
        "bad.yaml:3: architecture.kind: unknown kind 'two_layr'; allowed are 'convolutional', "
        "'diagonal_linear', 'fully_connected', 'gan', 'matrix_product', 'residual', 'transformer', 'two_layer', "
        "'vgg16' (did you mean 'two_layer'?); `dyn --with FILE` loads others",
    ),
    "duplicate key": (CONFIG + "name: again\n", "bad.yaml:7: name: duplicate key (first on line 1)"),
    "python object": (
        changed("loss: {kind: mse}", 'loss: !!python/object/apply:os.system ["touch hacked"]'),
        "bad.yaml:5: loss: the YAML tag '!!python/object/apply:os.system' is not allowed: "
        "a config holds only plain values",
    ),
    "nan in the config": (changed("[2.0]", "[.nan]"), "bad.yaml:2: dataset.x[1][0]: must be a finite number, not nan"),
    "x and y of different lengths": (
        changed("y: [-1.0, 1.0]", "y: [-1.0]"),
        "bad.yaml:2: dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
    ),
    "missing data file": (
        changed("points, x: [[-0.5], [2.0]], y: [-1.0, 1.0]", "file, path: no.csv"),
        "bad.yaml:2: dataset.path: there is no file {place}/no.csv",
    ),
}


@pytest.mark.parametrize(("text", "message"), CONFIGS.values(), ids=CONFIGS)
def test_config(text: str, message: str, dyn: Dyn, place: Path) -> None:
    (place / "bad.yaml").write_text(text)
    answer = dyn("train", "bad.yaml")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == message.format(place=place) + "\n"
    assert sorted(path.name for path in place.iterdir()) == ["bad.yaml", "toy.yaml"]


def test_all_problems_at_once(dyn: Dyn, place: Path) -> None:
    text = changed("width: 8", "width: 0").replace("lr: 0.01", "lr: -1").replace("kind: mse", "kind: msee")
    (place / "bad.yaml").write_text(text)
    answer = dyn("train", "bad.yaml", "--set", "dataset.y=[1.0]")
    assert answer.code == 3
    assert answer.err.splitlines() == [
        "bad.yaml:3: architecture.width: must be an integer >= 1, not 0",
        "bad.yaml:5: loss.kind: unknown kind 'msee'; allowed are 'cross_entropy', 'exponential', 'half_mse', "
        "'hinge', 'logistic', 'mse' (did you mean 'mse'?); `dyn --with FILE` loads others",
        "bad.yaml:6: optimizer.lr: must be a number > 0, not -1",
        "--set: dataset.y: has 1 label, but x has 2 samples; there must be one label per sample",
    ]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--seed", 2**63, f"--seed: must be an integer >= 0 and < 2^63, not {2**63}"),
        ("--backend", "autgrad", "--backend: must be "),
    ],
)
def test_options_are_named_as_they_were_given(option: str, value: object, message: str, dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", option, value)
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith(message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.yaml", "no.yaml: there is no such file, nor a bundled config of this name"),
        ("tooy.yaml", "tooy.yaml: there is no such file, nor a bundled config of this name (did you mean 'toy.yaml'?)"),
        (
            "boursier2022/orthogonl",
            "boursier2022/orthogonl: there is no such file, nor a bundled config of this name "
            "(did you mean 'boursier2022/orthogonal'?)",
        ),
        (".", ".: is a directory, not a config file"),
        ("", ".: is a directory, not a config file"),
    ],
)
def test_no_such_config(name: str, message: str, dyn: Dyn) -> None:
    answer = dyn("train", name)
    assert (answer.code, answer.out, answer.err) == (3, "", message + "\n")


DATA = {
    "empty csv": ("", "{file}: the file holds no samples"),
    "header only": ("x,y\n", "{file}: the file holds no samples"),
    "text in a csv": ("1,2\n3,four\n", "{file}:2: column 2 holds 'four', not a number"),
    "hole in a csv": ("1,2\n3,\n", "{file}:2: column 2 holds '', not a number"),
    "ragged csv": ("1,2\n3,4,5\n", "{file}:2: 3 columns, the lines before have 2"),
    "one column": ("1\n2\n", "{file}:1: one column only; needed are inputs and, last, the label"),
    "nan in a csv": ("1,2\n3,nan\n", "{file}:2: column 2 holds 'nan'; all values must be finite"),
    "inf in a csv": ("1,2\n-inf,3\n", "{file}:2: column 1 holds '-inf'; all values must be finite"),
}


@pytest.mark.parametrize(("text", "message"), DATA.values(), ids=DATA)
def test_csv(text: str, message: str, dyn: Dyn, place: Path) -> None:
    (place / "data.csv").write_text(text)
    answer = dyn("train", "toy.yaml", "--set", "dataset={kind: file, path: data.csv}")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "Error: " + message.format(file=place / "data.csv") + "\n"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.ones((3, 1)), "y": np.ones(2)}, "{file}: x has 3 samples but {file}: y has 2"),
        ({"x": np.ones((3, 1))}, "{file}: no array 'y'; the file holds x"),
        ({"x": np.full((1, 1), np.nan), "y": np.ones(1)}, "{file}: x holds nan at (0, 0); all values must be finite"),
    ],
)
def test_npz(arrays: dict[str, np.ndarray], message: str, dyn: Dyn, place: Path) -> None:
    np.savez(place / "data.npz", **arrays)
    answer = dyn("train", "toy.yaml", "--set", "dataset={kind: file, path: data.npz}")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err == "Error: " + message.format(file=place / "data.npz") + "\n"


def test_a_file_that_is_not_an_npz(dyn: Dyn, place: Path) -> None:
    (place / "data.npz").write_bytes(b"PK\x03\x04 no")
    answer = dyn("train", "toy.yaml", "--set", "dataset={kind: file, path: data.npz}")
    assert answer.code == 3
    assert answer.err.startswith(f"Error: {place}/data.npz: not a readable .npz file of plain arrays (")


def test_a_width_that_cannot_fit_is_refused_with_the_estimate(dyn: Dyn, place: Path) -> None:
    answer = dyn("train", "toy.yaml", "--set", "architecture.width=1000000000000", "--set", "record.parameters=none")
    assert (answer.code, answer.out) == (3, "")
    # 3e12 weights, gradients, update and margin in float32: 4 x 3e12 + 4 x 2 x 1e12 numbers of 4 bytes
    assert answer.err.startswith("Error: the run needs about 74505.8 GiB of memory, this machine has ")
    assert answer.err.endswith(" GiB free: the network has 3e+12 weights; take a smaller width or batch\n")
    assert not (place / "outputs").exists()


def test_sizes_beyond_64_bits_are_counted(dyn: Dyn, place: Path) -> None:
    answer = dyn("train", "toy.yaml", "--dry-run", "--set", f"architecture.width={2**63 - 1}")
    assert (answer.code, answer.out) == (3, "")
    assert answer.err.endswith(" GiB free: the network has 2.77e+19 weights; take a smaller width or batch\n")


@pytest.mark.parametrize("name", ["x" * 5000, "x/" * 3000, "run:" + "9" * 5000])
def test_names_that_no_file_has(name: str, dyn: Dyn) -> None:
    for command in (["train"], ["show"], ["plot"], ["config", "check"]):
        answer = dyn(*command, name)
        assert answer.code in (3, 7), command
        assert "there is no " in answer.err


def test_a_recording_beyond_its_limit_is_refused_with_the_estimate(dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", "--set", "record.limit_gib=0.000001")
    assert answer.code == 3
    assert answer.err.startswith(
        "Error: the recording needs about 0.0 GiB, record.limit_gib is 1e-06: record fewer of "
    )


def test_unknown_measures_and_parameters(dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", "--set", "record.measures=[weight_nrm]")
    assert answer.code == 3
    assert answer.err.startswith("--set: record.measures[0]: unknown kind 'weight_nrm'; allowed are ")
    assert answer.err.endswith("(did you mean 'weight_norm'?); `dyn --with FILE` loads others\n")
    answer = dyn("train", "toy.yaml", "--set", "record.parameters=[bias]")
    assert answer.code == 3
    told = "record.parameters: no parameter 'bias'; this network has hidden_weight, output_weight"
    assert answer.err == f"Error: {told}\n"


def test_cuda_asked_for_but_absent(dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    answer = dyn("train", "toy.yaml", "--device", "cuda")
    assert (answer.code, answer.out) == (3, "")
    told = "device: cuda is asked for, but PyTorch finds no CUDA device; use --device cpu or auto"
    assert answer.err == f"Error: {told}\n"


@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("toy.yaml", 2, "toy.yaml is a file, not a directory; give --out another name"),
        (
            "toy.yaml/run",
            7,
            "the run directory toy.yaml/run cannot be made (Not a directory); give --out a place that can be written",
        ),
        (
            "/proc/no/run",
            7,
            "the run directory /proc/no/run cannot be made (No such file or directory); "
            "give --out a place that can be written",
        ),
    ],
)
def test_an_output_directory_that_cannot_be_made(out: str, code: int, message: str, dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", "--out", out)
    assert (answer.code, answer.out, answer.err) == (code, "", f"Error: {message}\n")


def test_an_output_directory_that_may_not_be_written(dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write everywhere, so the refusal comes from a stand-in for the operating system."""

    def mkdir(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    answer = dyn("train", "toy.yaml", "--out", "here")
    told = "the run directory here cannot be made (Permission denied); give --out a place that can be written"
    assert (answer.code, answer.err) == (7, f"Error: {told}\n")


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from dynamics_cli.cli import main
from dynamics_cli.training import loop
loop.HELD_SECONDS = -1.0  # every block is written at once
main(sys.argv[1:])
"""


def test_disk_full_keeps_what_was_acknowledged(shell: Dyn, dyn: Dyn, place: Path) -> None:
    """No file may grow beyond 20 kB: the losses of 3 000 iterations do not fit."""
    options = ["train", "toy.yaml", "--out", "here", "--set", "optimizer.iterations=3000"]
    answer = shell(*options, "--quiet", code=LIMITED)
    assert (answer.code, answer.out) == (7, "")
    assert answer.err.startswith("Error: disk full while writing here/")
    assert answer.err.endswith(": what was acknowledged is kept; free space and continue with --resume\n")
    run = load_run(place / "here")
    assert run.status == "interrupted"
    assert len(run.losses) > 10
    assert np.isfinite(run.losses).all()
    resumed = dyn(*options, "--resume", "--json")
    assert (resumed.code, resumed.json["status"], resumed.json["iterations"]) == (0, "complete", 3000)


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (["train", "toy.yaml"], "continue with --resume"),
        (["reproduce", "boursier2022-fig2", "--set", "optimizer.iterations=50"], "continue with the same command"),
    ],
)
def test_what_continues_is_what_the_command_knows(
    command: list[str], remedy: str, dyn: Dyn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dynamics_cli.runs.store import files

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_at", full)
    answer = dyn(*command, "--quiet")
    assert (answer.code, answer.err.endswith(f"free space and {remedy}\n")) == (7, True), answer.err


@pytest.mark.parametrize(("backend", "lr", "dim"), [("torch", 1e38, 3), ("compiled", 1e300, 3), ("compiled", 1e300, 6)])
def test_no_warning_of_a_step_that_is_too_large(backend: str, lr: float, dim: int, dyn: Dyn) -> None:
    """Warnings are errors here; numbers beyond those of the precision are told of in words alone."""
    huge = ["--set", f"optimizer.lr={lr}", "--set", f"dataset={{kind: orthonormal, n: 2, dim: {dim}}}"]
    answer = dyn("train", "toy.yaml", *huge, "--backend", backend, "--quiet")
    assert answer.code == 7
    assert answer.err.startswith("Error: the loss is not finite at iteration ")


def test_too_little_space_is_told_before_any_work(dyn: Dyn, monkeypatch: pytest.MonkeyPatch) -> None:
    from dynamics_cli.runs.store import files

    monkeypatch.setattr(files, "free_bytes", lambda path: 100)
    for options in ([], ["--dry-run"]):
        answer = dyn("train", "toy.yaml", "--out", "here", *options)
        assert (answer.code, answer.out) == (7, "")
        assert "are free where here is: free space, record less, or give --out elsewhere" in answer.err


DIVERGING = ["--set", "architecture.activation=linear", "--set", "optimizer.lr=10"]


def test_a_diverging_loss_stops_and_keeps_everything(dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", *DIVERGING, "--out", "here", "--quiet")
    assert answer.code == 7
    run = load_run("here")
    told = (
        f"the loss is not finite at iteration {run.iterations}; everything up to it is kept. "
        "Try a smaller step, e.g. --set optimizer.lr=1"
    )
    assert answer.err == f"Error: {told}\n"
    assert "status      diverged\n" in answer.out
    assert "final loss  nan\n" in answer.out
    assert run.status == "diverged"
    assert 0 < run.iterations < 30
    assert len(run.losses) == run.iterations + 1
    assert np.isfinite(run.losses[:-1]).all()
    assert not np.isfinite(run.losses[-1])


def test_a_network_whose_neurons_all_die_says_so(dyn: Dyn) -> None:
    answer = dyn("train", "toy.yaml", "--set", "optimizer.lr=100", "--out", "here")
    assert answer.code == 0
    assert "the same output for every training sample (0): all neurons are dead" in answer.err
    assert "all neurons are dead" in load_run("here").info["messages"][0]


def test_a_diverged_run_says_so_again(dyn: Dyn) -> None:
    first = dyn("train", "toy.yaml", *DIVERGING, "--json")
    again = dyn("train", "toy.yaml", *DIVERGING, "--json")
    assert (first.code, again.code) == (7, 7)
    assert first.json == again.json
    assert (first.json["status"], first.json["final_loss"]) == ("diverged", None)
    assert first.err == again.err
    assert first.err.startswith("Error: the loss is not finite at iteration ")
