"""What makes two configs the same run, and what does not."""

import pytest

from dynamics_cli.api import plan_sweep
from dynamics_cli.config import identity as identity_module
from dynamics_cli.config import load_config, run_hash
from dynamics_cli.training.session import identity_of


def identity(config, device="cpu", backend="torch"):
    return run_hash(config, device=device, backend=backend)


def test_how_it_is_written_does_not_matter(base, write):
    usual = identity(load_config(base))
    backwards = {
        key: dict(reversed(v.items())) if isinstance(v, dict) else v
        for key, v in reversed(base.items())
    }
    assert identity(load_config(backwards)) == usual
    respelt = write(
        dataset="dataset: {kind: points, x: [[-5e-1], [2]], y: [-1, 1.00], append_bias: true}",
        initialization="initialization: {kind: balanced, scale: 0.000001, divide_by: sqrt_width}",
        optimizer="optimizer: {kind: gd, lr: 1e-3, iterations: 20000, loss_scaled: false}",
        loss=(
            "loss: {kind: mse, reduction: mean}\nrecord: {snapshots: {kind: geometric}, loss_every:"
            " ~}\nseed: 0"
        ),
    )
    assert identity(load_config(respelt)) == usual
    write("deep/parent.yaml", architecture="architecture: {kind: two_layer, width: 3, slope: 0.1}")
    child = write("child.yaml", "extends: deep/parent.yaml\narchitecture: {width: 60, slope: ~}\n")
    assert identity(load_config(child)) == usual
    assert identity(load_config(base, ["seed=4"], seed=0)) == usual
    sgd = write(optimizer="optimizer: {kind: sgd, lr: 1e-3, batch_size: 2, iterations: 9}")
    assert identity(load_config(sgd, ["optimizer.drop_last=false"])) == identity(load_config(sgd))
    assert identity(load_config(sgd, ["optimizer.drop_last=true"])) != identity(load_config(sgd))


@pytest.mark.parametrize(
    "override",
    [
        "name=other",
        "seed=1",
        "dtype=float64",
        "dataset.x=[[-0.5], [2.0000000000000004]]",
        "dataset.append_bias=false",
        "architecture.width=61",
        "architecture.train_output=false",
        "initialization.kind=unbalanced",
        "initialization.scale=1.0000000000000002e-6",
        "loss.kind=half_mse",
        "loss.reduction=sum",
        "optimizer.lr=2e-3",
        "optimizer.iterations=20001",
        "optimizer.stop_below=0",
        "record.loss_every=2",
        "record.snapshots.ratio=1.1",
    ],
)
def test_every_change_makes_another_run(override, base):
    assert identity(load_config(base, [override])) != identity(load_config(base))


def test_device_and_backend_are_the_resolved_ones(base):
    config = load_config(base)
    assert identity(config, device="cuda") != identity(config, device="cpu")
    assert identity(config, backend="other") != identity(config)
    asked = load_config(base, device="cpu", backend="torch")
    assert identity(asked) == identity(config)


def test_the_numerics_version_counts(base, monkeypatch):
    before = identity(load_config(base))
    monkeypatch.setattr("dynamics_cli.config.identity.NUMERICS_VERSION", -1)
    assert identity(load_config(base)) != before


def test_files_count_by_their_contents(write, here):
    (here / "d.csv").write_text("1,2\n")
    (here / "deep").mkdir()
    (here / "deep/e.csv").write_text("1,2\n")
    one = load_config(write(dataset="dataset: {kind: file, path: d.csv}"))
    two = load_config(write("deep/run.yaml", dataset="dataset: {kind: file, path: e.csv}"))
    assert one.dataset.path != two.dataset.path
    assert identity(one) == identity(two)
    (here / "d.csv").write_text("1,3\n")
    assert identity(one) != identity(two)


def test_a_file_that_many_configs_name_is_read_once(write, here, monkeypatch):
    (here / "d.csv").write_text("x,y\n1,2\n3,4\n")
    planned = plan_sweep(write(dataset="dataset: {kind: file, path: d.csv}"), seeds=5)
    known = [identity_of([job.config for job in planned], "cpu", "torch", {}), planned.hash]
    read = []
    digest = identity_module._file_hash
    monkeypatch.setattr(
        identity_module, "_file_hash", lambda *given: read.append(given) or digest(*given)
    )
    again = plan_sweep(here / "run.yaml", seeds=5)
    assert [identity_of([job.config for job in again], "cpu", "torch", {}), again.hash] == known
    assert len(read) == 2
