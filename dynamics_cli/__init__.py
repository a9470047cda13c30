"""`dyn`: train, plot and reproduce experiments on the learning dynamics of neural networks.

The functions here do what the commands do:

>>> import tempfile
>>> import dynamics_cli as dyn
>>> config = dyn.load_config({
...     "name": "two-points",
...     "dataset": {"kind": "points", "x": [[-0.5], [2.0]], "y": [-1.0, 1.0], "append_bias": True},
...     "architecture": {"kind": "two_layer", "width": 60},
...     "initialization": {"kind": "balanced", "scale": 1e-6, "divide_by": "sqrt_width"},
...     "loss": {"kind": "mse"},
...     "optimizer": {"kind": "gd", "lr": 1e-3, "iterations": 20000},
... })
>>> with tempfile.TemporaryDirectory() as folder:
...     run = dyn.train(config, out=f"{folder}/run")
...     again = dyn.load_run(f"{folder}/run")
...     print(run.status, len(run.losses), run.final_loss < 1e-6)
...     print([round(float(h), 2) for h in again.network(-1)([[-0.5, 1.0], [2.0, 1.0]])])
complete 20001 True
[-1.0, 1.0]
"""

from dynamics_cli.version import __version__ as __version__

# Nothing else is imported here: until `__main__` is reached, Ctrl-C is answered by a traceback of Python's.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dynamics_cli.api import *  # noqa: F403


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    api = import_module("dynamics_cli.api")  # when a function is first used, so that `dyn --help` stays light
    if name not in api.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(api, name)


def __dir__() -> list[str]:
    from importlib import import_module

    return sorted([*import_module("dynamics_cli.api").__all__, "__version__"])
