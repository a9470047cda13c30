"""What holds for all tests."""

from __future__ import annotations

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: threads of their own would only wait for one another. Read when torch is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
