"""Configs: how they are read and checked, and when two of them are the same run.

`api`, runs, sweeps and papers call `load_config`. Begin with `load`, which goes from a file to a
validated config: `reader` makes plain data of it whose origins `source` knows, `schema` and
`explain` put mistakes into words, and `identity` makes the hash of a run.

>>> from dynamics_cli.config import load_config
>>> config = load_config({
...     "name": "one-point",
...     "dataset": {"kind": "points", "x": [[1.0]], "y": [1.0]},
...     "architecture": {"kind": "two_layer", "width": 10},
...     "initialization": {"kind": "balanced", "scale": 1e-3},
...     "loss": {"kind": "mse"},
...     "optimizer": {"kind": "gd", "lr": 0.01, "iterations": 100},
... }, ["architecture.width=20"], seed=3)
>>> config.architecture.width, config.seed, config.dtype
(20, 3, 'float32')
"""

from __future__ import annotations

from dynamics_cli.config.dump import to_yaml
from dynamics_cli.config.errors import ConfigError, Mistake
from dynamics_cli.config.identity import NUMERICS_VERSION, run_directory_name, run_hash
from dynamics_cli.config.load import load_config
from dynamics_cli.kinds import RunConfig

__all__ = [
    "NUMERICS_VERSION",
    "ConfigError",
    "Mistake",
    "RunConfig",
    "load_config",
    "run_directory_name",
    "run_hash",
    "to_yaml",
]
