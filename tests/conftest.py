"""What holds for all tests."""

import gc
import os
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: threads of their own would only wait for one another. Read when torch
    # is loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background, where shells let SIGINT be ignored, in all processes from here on.
    # Tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def stranger_to_kinds():
    """Know bundled kinds only, and forget at the end what is registered, imported and remembered
    meanwhile.
    """
    from dynamics_cli.kinds import base, registry  # not before the number of threads is set

    for section in registry.SECTIONS:
        registry.all_kinds(section)
    modules = set(sys.modules)
    others = set(base.OTHERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "_KINDS", {section: dict(of) for section, of in base._KINDS.items()})
        patch.setattr(registry, "_SOURCES", {})
        patch.setattr(sys, "path", [*sys.path])
        patch.setenv(registry.WITH, "")
        yield patch
        registry.named_packages.cache_clear()
    registry.installed_packages.cache_clear()
    for name in set(sys.modules) - modules:
        if name.startswith("local_") or name.partition(".")[0] in base.OTHERS:
            del sys.modules[name]
    base.OTHERS.intersection_update(others)
    registry.named_packages.cache_clear()
    registry.installed_packages.cache_clear()


@contextmanager
def kinds_of(file, text):
    """Write a file of kinds and load it; forget them at the end."""
    from dynamics_cli.kinds.registry import use  # not before the number of threads is set

    file.write_text(text)
    with stranger_to_kinds():
        use(file)
        yield file


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Look for no garbage among modules and tests, which stay."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


@pytest.fixture
def kinds_as_before():
    """Let what a test registers, imports and remembers be gone after it."""
    with stranger_to_kinds():
        yield


@pytest.fixture
def in_memory(tmp_path):
    """A folder in memory where there is one: a sync costs nothing there, nor do thousands of
    files.
    """
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give every worker neighbouring tests, which share fixtures and kernels; who is done first
    takes from the rest.
    """
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log) if config.getvalue("dist") == "load" else None
