"""What the processes of a stage are forked from has imported."""

import contextlib

import numba  # noqa: F401
import torch  # noqa: F401

import dynamics_cli.sweeps.sweep
import dynamics_cli.training.kernels  # noqa: F401
from dynamics_cli.kinds.registry import loaded_kinds

for section in ("dataset", "architecture", "initialization", "loss", "optimizer", "snapshots", "measure"):
    loaded_kinds(section)
with contextlib.suppress(ImportError):
    import distributed  # noqa: F401
