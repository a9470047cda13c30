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

from dynamics_cli.version import __version__

# Nothing else is imported here: until `__main__` is reached, Ctrl-C is answered by a traceback of Python's.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dynamics_cli.api import *  # noqa: F403
    from dynamics_cli.config.describe import explain, list_kinds
    from dynamics_cli.instruments import measure
    from dynamics_cli.kinds.registry import use
    from dynamics_cli.pages.make import page
    from dynamics_cli.reproduction.audit import audit
    from dynamics_cli.reproduction.catalogue import list_configs, list_figures, list_papers
    from dynamics_cli.reproduction.document import verify
    from dynamics_cli.reproduction.reproduce import reproduce
    from dynamics_cli.sweeps.find import compare, describe, load_run
    from dynamics_cli.sweeps.summary import describe_sweep, list_runs, list_sweeps

# fmt: off
__all__ = [  # noqa: F405 - names of `dynamics_cli.api`
    "__version__", "add_data", "animate", "audit", "compare", "describe", "describe_sweep", "explain", "export",
    "fetch_data", "list_configs", "list_figures", "list_kinds", "list_panels", "list_papers", "list_runs",
    "list_sweeps", "load_config", "load_run", "measure", "page", "plan", "plan_sweep", "plan_sweep_needs", "plot",
    "predictions",
    "reproduce", "sweep", "train", "use", "verify",
]
# fmt: on
_ELSEWHERE = {
    "config.describe": ("explain", "list_kinds"),
    "instruments": ("measure",),
    "kinds.registry": ("use",),
    "pages.make": ("page",),
    "reproduction.audit": ("audit",),
    "reproduction.catalogue": ("list_configs", "list_figures", "list_papers"),
    "reproduction.document": ("verify",),
    "reproduction.reproduce": ("reproduce",),
    "sweeps.find": ("compare", "describe", "load_run"),
    "sweeps.summary": ("describe_sweep", "list_runs", "list_sweeps"),
}
"""Module -> the functions that stand there, because `dynamics_cli.api` would only forward to them."""


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    # when first used, so that `dyn --help` stays light
    module = next((module for module, names in _ELSEWHERE.items() if name in names), "api")
    return getattr(import_module(f"dynamics_cli.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
