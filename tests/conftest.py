"""What holds for all tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: threads of their own would only wait for one another. Read when torch is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, where shells let SIGINT be ignored, in all processes from here on. Tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def kinds_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let what a test registers, imports and remembers be gone after it."""
    from dynamics_cli.config import base, registry  # not before the number of threads is set

    for section in registry.SECTIONS:
        registry.all_kinds(section)
    monkeypatch.setattr(base, "_KINDS", {section: dict(of) for section, of in base._KINDS.items()})
    monkeypatch.setattr(registry, "_SOURCES", {})
    monkeypatch.setattr(registry, "_NEWEST", {})
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv(registry.WITH, "")
    modules = set(sys.modules)
    yield
    for name in set(sys.modules) - modules:
        if name.startswith(("dyn_parts_", "local_")):
            del sys.modules[name]
