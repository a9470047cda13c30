"""Settings of the process that bits depend on, and how threads share them.

A process has one default dtype, one number of threads of torch, one style of Matplotlib, and one
global generator of PyTorch, NumPy and Python each. Runs may train in several threads, beside a
loop of the user's. What all runs want alike is `Shared`: the first thread that needs it sets it,
the last one puts it back. What each wants for itself is held by one thread at a time: `alone`.
`docs/explanation/bit-exactness.md` lists every such setting.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

SMALL_WORK = 2**20
"""Multiply-adds of an iteration up to which one thread does it all."""
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Variables of the environment of processes that train side by side."""
THREADS = "DYN_THREADS"
"""Variable that tells such a process how many threads torch has in the one that started it; empty
where that has not loaded torch.
"""
_ALONE = threading.RLock()
_NESTED = threading.local()
"""Whether this thread has set its number of threads."""


@cache
def cores() -> int:
    """Return the number of cores that this process may use.

    It is the least of the machine, affinity, control groups and `SLURM_CPUS_PER_TASK`.
    """
    counts = [os.cpu_count() or 1, *_quotas(Path("/"))]
    if hasattr(os, "sched_getaffinity"):
        counts.append(len(os.sched_getaffinity(0)))
    if (told := os.environ.get("SLURM_CPUS_PER_TASK", "")).isdecimal():
        counts.append(int(told))
    return max(1, min(counts))


def _quotas(system: Path) -> Iterator[int]:
    """Yield the cores that each control group of this process, and those around it, may use."""
    try:
        groups = (system / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, group = line.split(":", 2)
        place = system / "sys/fs/cgroup"
        files = ["cpu.max"]
        if controllers:  # version 1
            if "cpu" not in controllers.split(","):
                continue
            place /= "cpu"
            files = ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        inner = place / group.lstrip("/")
        for folder in (inner, *inner.parents):
            with suppress(OSError, ValueError):  # there is none, or it says "max"
                texts = [(folder / file).read_text() for file in files]
                quota, period = map(int, " ".join(texts).split())
                if quota > 0:
                    yield math.ceil(quota / period)


@contextmanager
def alone() -> Iterator[None]:
    """Let one thread at a time use what the process has once and no two threads can share."""
    with _ALONE:
        yield


@contextmanager
def ignored_warnings(category: type[Warning] = Warning, *, module: str = "") -> Iterator[None]:
    """Ignore warnings of a category and of modules; filters belong to the process."""
    with alone(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=category, module=module)
        yield


class Shared:
    """A setting of the process that several threads hold at once."""

    def __init__(self, setting: Callable[[], AbstractContextManager[Any]]) -> None:
        """Take the context that sets it, and puts back what was."""
        self._setting = setting
        self._lock = threading.Lock()
        self._holders = 0
        self._open = ExitStack()
        self._value: Any = None

    @contextmanager
    def held(self) -> Iterator[Any]:
        """Hold the setting; give what its context gave to the first thread that holds it."""
        with self._lock:
            if not self._holders:
                self._value = self._open.enter_context(self._setting())
            self._holders += 1
        try:
            yield self._value
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._open.close()


@contextmanager
def _plain_settings() -> Iterator[None]:
    """Give torch the settings that it has in a new process."""
    if "torch" not in sys.modules:  # nobody has set anything, and importing it takes long
        yield
        return
    import torch

    cuda = torch.backends.cuda
    onednn: Any = torch.backends.mkldnn
    einsum: Any = torch.backends.opt_einsum

    def deterministic() -> tuple[bool, bool]:
        warns = torch.is_deterministic_algorithms_warn_only_enabled()
        return torch.are_deterministic_algorithms_enabled(), warns

    def set_deterministic(both: tuple[bool, bool]) -> None:
        torch.use_deterministic_algorithms(both[0], warn_only=both[1])

    # how to read it, how to set it, what it is in a new process
    settings: list[tuple[Callable[[], Any], Callable[[Any], Any], Any]] = [
        (torch.get_default_dtype, torch.set_default_dtype, torch.float32),
        (deterministic, set_deterministic, (False, False)),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "highest"),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly, False),
        (lambda: onednn.enabled, lambda on: setattr(onednn, "enabled", on), True),
        (lambda: einsum.enabled, lambda on: setattr(einsum, "enabled", on), einsum.is_available()),
        # the ways to compute attention
        (cuda.flash_sdp_enabled, cuda.enable_flash_sdp, True),
        (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp, True),
        (cuda.math_sdp_enabled, cuda.enable_math_sdp, True),
    ]
    with ExitStack() as back:
        for read, write, plain in settings:
            former = read()
            if former != plain:
                write(plain)
                back.callback(write, former)
        yield


_PLAIN = Shared(_plain_settings)


@contextmanager
def own_modes(device: str = "cpu") -> Iterator[None]:
    """Compute in the modes of runs, whatever modes the calling thread has.

    They are gradients, no inference mode, no autocast, and tensors on a `device` by default.
    """
    if "torch" not in sys.modules:
        yield
        return
    import torch

    with ExitStack() as modes:
        if torch.is_inference_mode_enabled():
            modes.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            modes.enter_context(torch.enable_grad())
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                modes.enter_context(torch.autocast(kind, enabled=False))
        # by default it is the CPU, also for a network elsewhere
        if torch.get_default_device().type not in ("cpu", torch.device(device).type):
            modes.enter_context(torch.device(device))
        yield


@contextmanager
def plain_process() -> Iterator[None]:
    """Compute as in a new process with one thread of BLAS, whatever the user has set.

    A run is named by its config, so that nothing else may change its numbers.
    """
    with _PLAIN.held(), one_blas_thread(), own_modes():
        yield


@contextmanager
def _number_of_threads() -> Iterator[int]:
    """Give the number of threads that torch has before any run changes it."""
    import torch

    yield torch.get_num_threads()


_THREADS = Shared(_number_of_threads)


def torch_threads() -> str:
    """Return the value of `THREADS` for processes that this one starts."""
    if "torch" not in sys.modules:
        return os.environ.get("OMP_NUM_THREADS", "")
    import torch

    return str(torch.get_num_threads())


@cache
def _threads_alone(told: str) -> int:
    """Return torch's number of threads in a process that trains alone, given `THREADS`."""
    if not told:
        free = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
        ask = "import torch; print(torch.get_num_threads())"
        told = subprocess.check_output([sys.executable, "-c", ask], env=free, text=True)
    return int(told)


@contextmanager
def threads_for(multiply_adds: int | None) -> Iterator[None]:
    """Have torch use one thread where a second would slow `multiply_adds`.

    None stands for convolutions. Sums of torch over many numbers, and convolutions, depend on how
    many threads take part: more work is done on as many as in a process that trains alone. The
    number belongs to the calling thread, but a new thread begins with the last number that any
    thread has set.
    """
    import torch

    with _THREADS.held() as given:
        nested = getattr(_NESTED, "nested", False)
        former = torch.get_num_threads() if nested else given
        count = former
        if multiply_adds is not None and multiply_adds <= SMALL_WORK:
            count = 1
        elif THREADS in os.environ:
            count = _threads_alone(os.environ[THREADS])
        _set_threads(count)
        _NESTED.nested = True
        try:
            yield
        finally:
            _NESTED.nested = nested
            _set_threads(former)


def _set_threads(count: int) -> None:
    import torch

    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


@contextmanager
def _exact_convolutions() -> Iterator[None]:
    import torch

    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=cudnn.enabled, deterministic=True, allow_tf32=False):
        yield


_EXACT = Shared(_exact_convolutions)


def exact_convolutions() -> AbstractContextManager[None]:
    """Have cuDNN round convolutions of float32 as float32, with the same bits from call to call.

    By default PyTorch lets it round their inputs to 10 bits (TF32), and choose algorithms whose
    bits differ between calls. Products of matrices need no such request.
    """
    return _EXACT.held()


@cache
def _blas() -> Any:
    import scipy.linalg  # noqa: F401 - numba's `np.dot` calls its BLAS, which a controller made before would not know
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _one_blas_thread() -> AbstractContextManager[Any]:
    return _blas().limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


_ONE_BLAS_THREAD = Shared(_one_blas_thread)


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context of products on one thread.

    Bits do not depend on the machine then, and small products are faster.
    """
    return _ONE_BLAS_THREAD.held()
