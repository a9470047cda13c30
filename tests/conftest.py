"""What holds for all tests."""

from __future__ import annotations

import os
import signal

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: threads of their own would only wait for one another. Read when torch is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, where shells let SIGINT be ignored, in all processes from here on. Tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
