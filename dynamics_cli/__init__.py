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

# Nothing else is imported here: until `__main__` is reached, Ctrl-C is answered by a traceback of
# Python's.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dynamics_cli.api import *  # noqa: F403
    from dynamics_cli.config.describe import explain as explain
    from dynamics_cli.config.describe import list_kinds as list_kinds
    from dynamics_cli.instruments.measure import measure as measure
    from dynamics_cli.kinds.registry import use as use
    from dynamics_cli.pages.make import page as page
    from dynamics_cli.pages.papers import site as site
    from dynamics_cli.recorder import Recorder as Recorder
    from dynamics_cli.reproduction.audit import audit as audit
    from dynamics_cli.reproduction.catalogue import list_configs as list_configs
    from dynamics_cli.reproduction.catalogue import list_figures as list_figures
    from dynamics_cli.reproduction.catalogue import list_papers as list_papers
    from dynamics_cli.reproduction.document import verify as verify
    from dynamics_cli.reproduction.reproduce import reproduce as reproduce
    from dynamics_cli.sweeps.find import list_runs as list_runs
    from dynamics_cli.sweeps.find import list_sweeps as list_sweeps

MODULES = {
    "api": (
        "add_data animate compare describe export fetch_data list_panels load_config load_run"
        " load_sweep picture plan_sweep plan_train plot predictions sweep train"
    ),
    "config.describe": "explain list_kinds",
    "instruments.measure": "measure",
    "kinds.registry": "use",
    "pages.make": "page",
    "pages.papers": "site",
    "recorder": "Recorder",
    "reproduction.audit": "audit",
    "reproduction.catalogue": "list_configs list_figures list_papers",
    "reproduction.document": "verify",
    "reproduction.reproduce": "reproduce",
    "sweeps.find": "list_runs list_sweeps",
}
HOMES = {name: module for module, names in MODULES.items() for name in names.split()}
"""Name of a function -> its module, which is imported when the function is first used: `dyn
--help` stays light.
"""


def __getattr__(name: str) -> "Any":
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*HOMES, "__version__"])
