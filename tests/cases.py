"""Small configs that tests share, and the problems made of them: each changes the sections that it
is about.
"""

from pathlib import Path

from dynamics_cli.config import load_config
from dynamics_cli.config.reader import read_text
from dynamics_cli.training.problem import build_problem


def read(text, base=None):
    """Return what is written as in a config, in place of sections of another one."""
    return {**(base or {}), **read_text(text, "<cases>", Path()).data}


TOY = """\
name: toy
dataset: {kind: points, x: [[-0.5], [2.0]], y: [-1.0, 1.0], append_bias: true}
architecture: {kind: two_layer, width: 8}
initialization: {kind: balanced, scale: 0.1}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.01, iterations: 30}
"""
TWO_POINTS = read(TOY)
CONFIG = read("""
name: small
dtype: float64
dataset: {kind: points, x: [[0.3, 1.0], [-1.0, 0.4], [0.5, -0.2]], y: [1.0, -1.0, 1.0]}
architecture: {kind: two_layer, width: 4}
initialization: {kind: unbalanced, scale: 0.7}
loss: {kind: mse}
optimizer: {kind: gd, lr: 0.1, iterations: 5}
""")
POINTS = CONFIG["dataset"]


def config_of(**changes):
    """Return the config with other sections; an optimizer keeps the step and the iterations that
    it does not name.
    """
    optimizer = changes.get("optimizer", {})
    usual = {"kind": "gd", "lr": 0.1, "iterations": 5}
    if "epochs" in optimizer:
        del usual["iterations"]
    if "until" in optimizer:
        usual = {}
    return {**CONFIG, **changes, "optimizer": {**usual, **optimizer}}


def problem_of(**changes):
    """Return the problem of the config with other sections."""
    return build_problem(load_config(config_of(**changes)))
