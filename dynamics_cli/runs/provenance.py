"""Where, when and with which versions a run was made."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dynamics_cli


def provenance() -> dict[str, Any]:
    """Describe this process: versions, machine, threads, commit of the checkout if there is one, time in UTC.

    The version and the threads of torch are given when torch is loaded; nothing heavy is imported here.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions(), "commit": _own_commit(),
        "platform": platform.platform(), "machine": platform.machine(), "cpus": os.cpu_count(), "threads": threads(),
    }  # fmt: skip


def versions() -> dict[str, str]:
    """Versions of dyn, Python and the numerical packages in use."""
    found = {"dyn": dynamics_cli.__version__, "python": platform.python_version(), "numpy": np.__version__}
    for name in ("scipy", "torch", "numba"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version is not None:
            found[name] = str(version)
    return found


def threads() -> int | None:
    """Threads that numerical code may use: torch's number if it is loaded, else `OMP_NUM_THREADS`."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return int(torch.get_num_threads())
    text = os.environ.get("OMP_NUM_THREADS", "")
    return int(text) if text.isdecimal() else None


@cache
def _own_commit() -> str | None:
    return commit(Path(dynamics_cli.__file__).resolve().parent.parent)


def commit(root: Path) -> str | None:
    """Commit checked out in `root`, with `-dirty` when files differ from it; `None` outside a checkout."""
    if not (root / ".git").exists():
        return None
    # without optional locks: killed while it refreshes the index, git would leave its lock in a user's checkout
    describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    command = ["git", "--no-optional-locks", "-C", str(root), *describe]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
