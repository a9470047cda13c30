"""Training configs in processes of their own, which save and leave when their parent is interrupted, or dies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics_cli.config import RunConfig
from dynamics_cli.errors import DynError
from dynamics_cli.training.session import obtain_run, plan_run
from dynamics_cli.training.signals import EXIT_CODES, Interrupted, SignalWatch

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

_LOOK_SECONDS = 0.1
"""Time between two looks for a signal while the workers work."""
_Futures = dict["Future[str]", int]


def run_in_processes(
    todo: Sequence[tuple[RunConfig, Path]], *, executor: Executor | None = None, workers: int | None = None
) -> Iterator[tuple[int, str]]:
    """Train configs in their directories, in any order; yield the place of each as it ends, and why it failed or "".

    Args:
        todo: configs and their run directories.
        executor: where they run; by default spawned processes of one thread each, one per core.
        workers: number of those processes.

    Raises:
        Interrupted: SIGINT or SIGTERM came; what was done is kept, and the same call goes on from there.

    """
    if not todo:
        return
    if executor is not None:
        yield from _collect(_submit(executor, todo))
        return
    context = multiprocessing.get_context("spawn")
    stop, stopped = context.Pipe(duplex=False)
    busy = context.Value("i", 0)
    count = min(workers or os.cpu_count() or 1, len(todo))
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(stop, busy))
    try:
        with _held_back():
            futures = _submit(pool, todo)
        yield from _collect(futures, stopped, busy)
    except BaseException:
        # interrupted, and all has been saved; or a second signal, or a fault, after which nothing more is saved
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        stopped.close()
        stop.close()
        pool.shutdown(wait=True, cancel_futures=True)


def _submit(executor: Executor, todo: Sequence[tuple[RunConfig, Path]]) -> _Futures:
    return {executor.submit(run_job, config, directory): k for k, (config, directory) in enumerate(todo)}


def _collect(
    futures: _Futures, stopped: Connection | None = None, busy: Synchronized[int] | None = None
) -> Iterator[tuple[int, str]]:
    """Yield what ends; after a signal tell the workers by closing `stopped`, and wait until none is `busy` saving."""
    pending, number, stopping = set(futures), None, False
    with SignalWatch() as watch:
        while pending and not (stopping and busy is not None and busy.value == 0):
            ended, pending = wait(pending, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            for future in ended:
                try:
                    yield futures[future], future.result()
                except Interrupted as error:  # a terminal signals parent and workers alike
                    number = error.number
            number = watch.received or number
            if number is None or stopping:
                continue
            stopping = True
            pending = {future for future in pending if not future.cancel()}
            if stopped is not None:
                stopped.close()
    if number is not None:
        message = "interrupted; what is done is kept, the states of the others are saved: the same command goes on"
        raise Interrupted(message, number)


def run_job(config: RunConfig, directory: Path) -> str:
    """Train one job, or go on with it; return "" or why it failed. Called in another process."""
    if _worker.stopping:
        raise Interrupted("not begun", signal.SIGINT)
    _worker.note(1)
    try:
        obtain_run(plan_run(config, directory), resume=True)
    except Interrupted:
        raise
    except DynError as error:
        return str(error)
    finally:
        _worker.note(-1)
    return ""


@dataclass
class _Worker:
    """What a worker process knows of itself."""

    busy: bool = False
    stopping: bool = False
    all_busy: Synchronized[int] | None = None
    """Number of workers that are busy; shared by all and their parent."""

    def note(self, change: int) -> None:
        """Begin a job (1) or end it (-1)."""
        self.busy = change > 0
        if self.all_busy is not None:
            with self.all_busy.get_lock():
                self.all_busy.value += change


_worker = _Worker()


@contextmanager
def _held_back() -> Iterator[None]:
    """Hold signals back while processes are started, which begin their lives with them held back too."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_CODES)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _begin(stop: Connection, all_busy: Synchronized[int]) -> None:
    """Prepare a worker: one core, which its siblings leave it, and a thread that waits for word of its parent."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    import torch

    torch.set_num_threads(1)
    for number in EXIT_CODES:  # outside of training there is nothing to save: the parent ends this process
        signal.signal(number, _ignore)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_CODES)
    _worker.all_busy = all_busy
    threading.Thread(target=_obey, args=(stop,), daemon=True).start()


def _ignore(number: int, frame: object) -> None:
    """Take no notice; a function, since what is ignored by the system would stay so in processes started from here."""


def _obey(stop: Connection) -> None:
    """When the parent closes its end of the pipe, or dies, interrupt the training until this process has ended."""
    stop.poll(None)
    _worker.stopping = True
    parent = multiprocessing.parent_process()
    while _worker.busy or (parent is not None and parent.is_alive()):
        if os.name == "posix":
            os.kill(os.getpid(), signal.SIGINT)  # to the main thread, which may be asleep
        else:
            signal.raise_signal(signal.SIGINT)
        time.sleep(_LOOK_SECONDS)
    os._exit(0)  # an orphan would wait for its next job for ever
