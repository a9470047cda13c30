"""A resolved config reads back as itself."""

from dynamics_cli.config import load_config, run_hash, to_yaml


def test_a_dumped_config_is_the_same_run(base, here):
    (here / "d.csv").write_text("1,2\n")
    base["dataset"] = {"kind": "file", "path": "d.csv"}
    config = load_config(base)
    (here / "elsewhere").mkdir()
    (here / "elsewhere/config.yaml").write_text(to_yaml(config), encoding="utf-8")
    again = load_config("elsewhere/config.yaml")
    assert again == config
    assert run_hash(again, device="cpu", backend="torch") == run_hash(
        config, device="cpu", backend="torch"
    )


def test_the_text(base):
    assert (
        to_yaml(load_config(base))
        == "name: two-points\nseed: 0\ndevice: auto\nbackend: auto\ndtype: float32\ndataset:\n "
        " kind: points\n  x:\n  - [-0.5]\n  - [2.0]\n  y: [-1.0, 1.0]\n  append_bias:"
        " true\narchitecture: {kind: two_layer, activation: relu, width: 60, train_output:"
        " true}\ninitialization: {kind: balanced, scale: 1.0e-06, divide_by: sqrt_width,"
        " output_signs: random}\nloss: {kind: mse, reduction: mean}\noptimizer: {kind: gd, lr:"
        " 0.001, iterations: 20000, loss_scaled: false}\nrecord:\n  snapshots:\n    kind:"
        " geometric\n    include: []\n    ratio: 1.05\n  parameters: all\n  limit_gib: 4.0\n"
    )
