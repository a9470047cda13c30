"""The run directory: `RunWriter` writes it so that nothing is lost, `Run` reads it, `verify_run` checks it.

`training` writes runs; sweeps, figures, panels and commands read them. Begin with `store/arrays.py` and
`store/checkpoints.py`, which describe the files, then `writer.py`. Names are loaded when they are first used: data
sets and configs can share `runs.store`, which knows nothing of them, without the rest of this room, which does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics_cli.runs.errors import CorruptRunError, LockedRunError, NotARunError
    from dynamics_cli.runs.find import runs_below
    from dynamics_cli.runs.info import Status
    from dynamics_cli.runs.run import Run
    from dynamics_cli.runs.store.checkpoints import Checkpoint
    from dynamics_cli.runs.store.layout import clear_run, is_run, outputs_root, runs_root
    from dynamics_cli.runs.store.locks import is_locked, run_lock
    from dynamics_cli.runs.verify import Finding, verify_run
    from dynamics_cli.runs.writer import RunWriter, check_space

# fmt: off
_NAMES = {
    "errors": ("CorruptRunError", "LockedRunError", "NotARunError"),
    "find": ("runs_below",),
    "info": ("Status",),
    "run": ("Run",),
    "store.checkpoints": ("Checkpoint",),
    "store.layout": ("clear_run", "is_run", "outputs_root", "runs_root"),
    "store.locks": ("is_locked", "run_lock"),
    "verify": ("Finding", "verify_run"),
    "writer": ("RunWriter", "check_space"),
}
__all__ = [
    "Checkpoint", "CorruptRunError", "Finding", "LockedRunError", "NotARunError", "Run", "RunWriter",
    "Status", "check_space", "clear_run", "is_locked", "is_run", "outputs_root",
    "run_lock", "runs_below", "runs_root", "verify_run",
]
# fmt: on


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
